//! Engines with a planted fault, for the tests of the faults.

use crate::servers::{open, start_engine};
use isolde_engines::engine::Engine;
use isolde_engines::fault::{Fault, Planted, Strikes, plant_counted};
use isolde_engines::runner::Runner;
use isolde_model::History;

/// A target without a fault. Engines with a fault share its server.
pub struct Bench {
    pub target: &'static str,
    pub clean: Runner,
}

impl Bench {
    /// Opens the target, or records a skip.
    pub fn open(target: &'static str) -> Option<Bench> {
        Some(Bench { target, clean: open(target)? })
    }

    /// A runner on the same server with a planted fault, and the count of its
    /// strikes.
    pub fn faulted(&self, fault: &'static Fault, rate: f64, seed: u64) -> (Runner, Strikes) {
        let target = same_server(self.target, self.clean.engine.as_ref());
        let (engine, strikes) = plant_counted(start_engine(&target), Planted { fault, rate, seed });
        (Runner::new(engine), strikes)
    }

    /// Why the fault cannot be planted in this engine.
    pub fn lacks(&self, fault: &Fault) -> Option<&'static str> {
        let engine = &self.clean.engine;
        fault.unsupported_on(&engine.info().engine, engine.profile())
    }
}

/// A target that leads to the server of an engine which was opened as `target`,
/// or a new database of the same kind where the engine has no server.
pub fn same_server(target: &str, engine: &dyn Engine) -> String {
    let family = target.split(['@', '+']).next().unwrap();
    match engine.client() {
        Some(at) => {
            let password = at.password.as_ref().map_or("", |p| p.reveal());
            let login = format!("{}:{password}", at.user);
            format!("{family}://{login}@{}:{}/{}", at.host, at.port, at.database)
        }
        None => target.into(),
    }
}

/// The final rows of a run.
pub fn rows(history: &History) -> String {
    isolde_model::value::show_rows(&history.final_state[0].rows)
}

/// All that a client observes of a run, without the name and version of the
/// target.
pub fn observations(history: &History) -> String {
    let parts = (&history.events, &history.transactions, &history.final_state);
    format!("{parts:#?}")
}

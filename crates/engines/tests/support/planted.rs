//! Engines with a planted fault, for the tests of the faults.

#![allow(dead_code)]

use crate::support::open;
use isolde_core::History;
use isolde_engines::fault::{Fault, Planted, Strikes, plant_counted};
use isolde_engines::fetch::install::Cache;
use isolde_engines::runner::Runner;
use isolde_engines::target::{Options, Target};

/// A target opened once; its engines with a fault share its server.
pub struct Bench {
    pub target: &'static str,
    pub clean: Runner,
}

impl Bench {
    pub fn open(target: &'static str) -> Option<Bench> {
        Some(Bench { target, clean: open(target)? })
    }

    pub fn faulted(&self, fault: &'static Fault, rate: f64, seed: u64) -> (Runner, Strikes) {
        let family = self.target.split(['@', '+']).next().unwrap();
        let target = match self.clean.engine.client() {
            Some(at) => {
                let password = at.password.as_ref().map_or("", |p| p.reveal());
                let login = format!("{}:{password}", at.user);
                format!("{family}://{login}@{}:{}/{}", at.host, at.port, at.database)
            }
            None => self.target.into(),
        };
        let options = Options { cache: Cache::open(), via: None };
        let engine = Target::parse(&target).unwrap().open(&options);
        let engine = engine.unwrap_or_else(|e| panic!("{target}: {e}"));
        let (engine, strikes) = plant_counted(engine, Planted { fault, rate, seed });
        (Runner::new(engine), strikes)
    }

    pub fn lacks(&self, fault: &Fault) -> Option<&'static str> {
        let engine = &self.clean.engine;
        fault.unsupported_on(&engine.info().engine, engine.profile())
    }
}

pub fn rows(history: &History) -> String {
    isolde_core::value::show_rows(&history.final_state[0].rows)
}

/// All that a client can see, without what it ran on.
pub fn seen(history: &History) -> String {
    let parts = (&history.events, &history.transactions, &history.final_state);
    format!("{parts:#?}")
}

//! The labelled cases on an engine with a planted fault.

use crate::bench::Bench;
use crate::cases::Labelled;
use crate::matrix::Matrix;
use isolde_core::History;
use isolde_engines::fault::{Concerns, FAULTS, Fault, Planted, Strikes, plant_counted};
use isolde_engines::fetch::install::Cache;
use isolde_engines::runner::Runner;
use isolde_engines::target::{Options, Target};
use isolde_hunt::cause::Label;
use isolde_hunt::executor::Executor;
use std::collections::BTreeMap;

/// Runs each case with each fault. Where the fault has struck and changed what
/// clients saw in the sound run into what oracles reject, it is a bug.
pub fn label_all(
    bench: &Bench,
    cases: &[Labelled],
    sound: &BTreeMap<&str, History>,
    matrix: &mut Matrix,
    wrong: &mut Vec<String>,
) {
    for fault in FAULTS.iter().filter(|f| f.concerns != Concerns::Server) {
        let engine = bench.engine();
        if fault.unsupported_on(&engine.info().engine, engine.profile()).is_some() {
            continue;
        }
        let (mut faulty, strikes) = faulted(bench, fault);
        for labelled in cases {
            let before = strikes.count();
            let Some(run) = faulty.run(labelled) else { continue };
            let struck = strikes.count() != before;
            let changed = sound.get(labelled.name).is_none_or(|sound| differs(sound, &run.history));
            if !struck || !changed || !run.checked.violated() {
                continue;
            }
            let label = faulty.label(&run);
            matrix.add("planted fault", label.name());
            if label != Label::Bug {
                let (name, transcript) = (label.name(), run.transcript());
                wrong.push(format!("{}: {}: {name}\n{transcript}", fault.name, labelled.name));
            }
        }
    }
}

/// Whether a client could tell two runs from each other.
fn differs(one: &History, other: &History) -> bool {
    one.events != other.events || one.final_state != other.final_state
}

fn faulted(bench: &Bench, fault: &'static Fault) -> (Bench, Strikes) {
    let family = bench.target.split(['@', '+']).next().unwrap();
    let target = match bench.engine().client() {
        Some(at) => {
            let password = at.password.as_ref().map_or("", |p| p.reveal());
            let login = format!("{}:{password}", at.user);
            format!("{family}://{login}@{}:{}/{}", at.host, at.port, at.database)
        }
        None => bench.target.clone(),
    };
    let options = Options { cache: Cache::open(), via: None };
    let engine = Target::parse(&target).unwrap().open(&options);
    let engine = engine.unwrap_or_else(|e| panic!("{target}: {e}"));
    let (engine, strikes) = plant_counted(engine, Planted { fault, rate: 1.0, seed: 1 });
    (Bench { target, executor: Executor::new(Runner::new(engine)) }, strikes)
}

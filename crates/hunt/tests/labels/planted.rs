//! The labelled cases on an engine with a planted fault.

use crate::bench::Bench;
use crate::cases::Labelled;
use crate::matrix::Matrix;
use isolde_engines::fault::{Concerns, FAULTS, Fault, Planted, Strikes, plant_counted};
use isolde_engines::runner::Runner;
use isolde_hunt::cause::Verdict;
use isolde_hunt::executor::Executor;
use isolde_model::History;
use isolde_testing::planted::same_server;
use isolde_testing::servers::start_engine;
use std::collections::BTreeMap;

/// Runs each case with each fault. A run is a bug where the fault has struck, the
/// observations differ from those of the sound run, and an oracle rejects them.
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
            if !matches!(label, Verdict::Bug | Verdict::Locking) {
                let (name, transcript) = (label.name(), run.transcript());
                wrong.push(format!("{}: {}: {name}\n{transcript}", fault.name, labelled.name));
            }
        }
    }
}

/// Whether a client can distinguish two runs.
fn differs(one: &History, other: &History) -> bool {
    one.events != other.events || one.final_state != other.final_state
}

fn faulted(bench: &Bench, fault: &'static Fault) -> (Bench, Strikes) {
    let target = same_server(&bench.target, bench.engine());
    let (engine, strikes) =
        plant_counted(start_engine(&target), Planted { fault, rate: 1.0, seed: 1 });
    (Bench { target, executor: Executor::new(Runner::new(engine)) }, strikes)
}

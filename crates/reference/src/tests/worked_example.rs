//! The worked example in the header of the crate, replayed.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, changed, error, rows};
use crate::model::ReferenceModel;
use crate::search::{Choices, EvalCache};
use crate::subject::Subject;
use crate::world::{FIRST_ROWS, Place, Version, World};
use isolde_model::Level::{self, ReadCommitted, RepeatableRead};
use isolde_model::Value;
use isolde_model::history::{ErrorClass, Event, EventKind};
use isolde_model::inquiry::Inquiry;

const ROW: Place = Place { table: 0, chain: 0 };

/// The events of the example: each with its text, and how many events of the
/// history there are after it.
fn example(level: Level) -> (ScriptedRun, Vec<(&'static str, usize)>) {
    let mut run = ScriptedRun::on("postgres", level, &[(1, 10)])
        .does("s1", "begin", EventKind::Done)
        .does("s2", "begin", EventKind::Done);
    let mut events = Vec::new();
    let mut note = |run: &ScriptedRun, text| events.push((text, run.history.events.len()));
    run = run.does("s2", "select v from t where id = 1", rows(&[10]));
    note(&run, "s2 SELECT v: 10");
    run = run.does("s1", "update t set v = v + 1 where id = 1", changed(1));
    note(&run, "s1 UPDATE v = v + 1: 1 row");
    run = run.waits("s2", "update t set v = v + 5 where id = 1");
    note(&run, "s2 UPDATE v = v + 5: blocked");
    run = run.does("s1", "commit", EventKind::Done);
    note(&run, "s1 COMMIT");
    if level == ReadCommitted {
        run = run.replies("s2", changed(1));
        note(&run, "s2 UPDATE continues: 1 row");
        run = run.does("s2", "commit", EventKind::Done);
        note(&run, "s2 COMMIT");
    } else {
        run = run.replies("s2", error(ErrorClass::Serialization));
        note(&run, "s2 UPDATE fails: 40001");
    }
    (run, events)
}

/// The version chain of the row, its lock holder and the version that s2 sees.
fn state(world: &World) -> String {
    let text = |v: &Version| {
        let Value::Int(value) = v.row[1] else { panic!("{v:?}") };
        match v.by {
            FIRST_ROWS => value.to_string(),
            by if world.is_open(by) => format!("{value} ({}, open)", world.session(by)),
            by => format!("{value} ({})", world.session(by)),
        }
    };
    let chain: Vec<String> = world.chain(ROW).versions.iter().map(text).collect();
    let holder = world.locks().find(|l| l.place == ROW).map_or("-", |l| world.session(l.by));
    let seen = world.tx_of("s2").and_then(|tx| {
        // Without a snapshot of its own, a new statement would take one now.
        let snapshot = world.snapshot_of(tx).unwrap_or(world.now() + 1);
        world.visible(ROW, tx, snapshot).map(|v| v.row[1].to_string())
    });
    let chain = chain.join(" <- ");
    format!("{chain:<32}{holder:<6}{}", seen.as_deref().unwrap_or("-"))
}

/// The table of the example, one line per event.
fn table(level: Level) -> Vec<String> {
    let (run, events) = example(level);
    let subject = Subject::new(&run.history, &run.reading);
    let subject = &subject;
    let events = &events;
    run.answered(Inquiry::new(|channel| async move {
        let (mut cache, mut choices) = (EvalCache::default(), Choices::default());
        let mut model = ReferenceModel::new(subject, &channel, &mut cache, &mut choices);
        model.load().await.expect("the initial rows are read");
        let (mut lines, mut done) = (Vec::new(), 0);
        for (number, (text, until)) in events.iter().enumerate() {
            for event in done..*until {
                model.world.tick();
                model.event(event).await.expect("the rules allow it");
            }
            done = *until;
            lines.push(format!("{}  {text:<31}{}", number + 1, state(&model.world)));
        }
        lines
    }))
}

#[test]
fn crate_documentation_shows_the_states_of_the_model() {
    let header = include_str!("../lib.rs");
    for level in [ReadCommitted, RepeatableRead] {
        let (run, _) = example(level);
        assert_allowed(&run);
        for line in table(level) {
            let drawn = format!("//! {}\n", line.trim_end());
            assert!(header.contains(&drawn), "{level:?} is not drawn as it is:\n{drawn}");
        }
    }
}

#[test]
fn breaches_in_the_crate_documentation_are_reported() {
    let (run, _) = example(ReadCommitted);
    assert_allowed(&run.leaves(&[(1, 16)]));
    let (run, _) = example(ReadCommitted);
    breaks(&run.leaves(&[(1, 15)]), None);
    let (mut run, _) = example(RepeatableRead);
    let failed = |e: &&mut Event| matches!(e.what, EventKind::Error(_));
    run.history.events.iter_mut().find(failed).expect("it fails").what = changed(1);
    assert_eq!(breaks(&run, Some("s2.3")), "P7w");
}

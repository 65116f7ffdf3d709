//! Recordings as text: what stays, what shares a block, what is judged.

use super::*;
use crate::case::{format, parse};

const TEXT: &str = "case: x\n\ns1> begin;\ns1> select 1;\ns2> begin;\ns2> select 2;\n";

fn claims(text: &str) -> Vec<Claim> {
    let whole = format!("{TEXT}\nexpect sqlite@1 at serializable:\n{text}\n");
    parse(&whole).unwrap().expectations[0].claims.clone()
}

fn place(target: &str, version: &str, level: Level) -> RecordingTarget {
    RecordingTarget::new(target, version, level)
}

#[test]
fn places_that_showed_the_same_share_a_block_and_recording_again_changes_nothing() {
    let mut case = parse(TEXT).unwrap();
    let (rc, rr) = (Level::ReadCommitted, Level::RepeatableRead);
    let waits = || vec![claims("  s1.2 waits")];
    let new = || {
        vec![
            (place("mysql", "9.7.4", rr), waits()),
            (place("mysql", "9.7.4", rc), waits()),
            (place("mysql", "5.7.19", rc), waits()),
            (place("mysql", "5.7.19", rr), waits()),
            (place("mariadb", "10.11.19-MariaDB", rr), vec![claims("  s1.2 rows (1)")]),
        ]
    };
    record(&mut case, new());
    let text = format(&case);
    assert!(
        text.contains(
            "expect mysql@5.7.19, mysql@9.7.4 at read committed, repeatable read:\n  s1.2 waits\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches("expect").count(), 2);
    let mut again = parse(&text).unwrap();
    record(&mut again, new());
    assert_eq!(format(&again), text);
}

#[test]
fn targets_that_did_not_run_and_hand_written_blocks_stay() {
    let text = format!(
        "{TEXT}\nexpect postgres:\n  s1.2 ok\n\nexpect mysql@5.7.19, mysql@9.7.4 at repeatable read:\n  s1.2 waits\n"
    );
    let mut case = parse(&text).unwrap();
    let level = Level::RepeatableRead;
    record(&mut case, vec![(place("mysql", "9.7.4", level), vec![claims("  s1.2 rows (1)")])]);
    let at = |version: &str| recorded_at(&case, "mysql", version, level).unwrap();
    assert_eq!(at("5.7.19"), [claims("  s1.2 waits")]);
    assert_eq!(at("9.7.4"), [claims("  s1.2 rows (1)")]);
    assert!(case.expectations[0].on[0].engine == "postgres");
}

#[test]
fn condition_is_evaluated_on_the_recording() {
    let recorded =
        claims("  s1.2 waits\n  s1.2 rows (1, 'a') (2, 'b')\n  s2.2 error 1213\n  s2 aborts");
    for (claim, holds) in [
        ("s1.2 waits for s2", true),
        ("s2.2 does not wait", true),
        ("s1.2 rows (2, 'b') (1, 'a')", true),
        ("s1.2 has (2, 'b')", true),
        ("s1.2 counts 3", false),
        ("s1.2 counts 2", true),
        ("s1.2 contains 'b'", true),
        ("s1.2 contains 'c'", false),
        ("s1.2 ok", true),
        ("s2.2 ok", false),
        ("s2.2 error", true),
        ("s2.2 error 1205", false),
        ("s2 does not commit", true),
    ] {
        let claim_of = &claims(&format!("  {claim}"))[0];
        assert_eq!(implied(&Case::default(), claim_of, &recorded), holds, "{claim}");
    }
}

#[test]
fn successful_autocommit_statement_has_committed() {
    let text = "case: x\n\ns1> update t set a = 1;\ns1> set names utf8;\ns2> begin;\n\
                s2> select 1;\ns3> select 1;\n\nexpect sqlite@1:\n  s1.1 waits\n  s1.1 affects 1\n  \
                s1.2 ok\n  s2.2 rows (1)\n  s3.1 error 1\n";
    let case = parse(text).unwrap();
    let recorded = &case.expectations[0].claims;
    for (session, ending, holds) in [
        ("s1", Expected::Commits, true),
        ("s1", Expected::DoesNotCommit, false),
        ("s2", Expected::Commits, false),
        ("s2", Expected::DoesNotCommit, false),
        ("s3", Expected::Commits, false),
        ("s3", Expected::DoesNotCommit, true),
        ("s3", Expected::Aborts, true),
    ] {
        let claim = Claim { subject: Subject::Session(session.into()), expected: ending };
        assert_eq!(implied(&case, &claim, recorded), holds, "{claim}");
    }
}

/// A run's claims about the two selects.
fn run(first: &str, second: &str) -> Vec<Claim> {
    claims(&format!("  s1.2 rows ({first})\n  s2.2 rows ({second})"))
}

#[test]
fn ever_changing_value_is_not_recorded() {
    let runs = [run("1", "17"), run("1", "18"), run("1", "19"), run("1", "19")];
    assert_eq!(settle(&runs[..2]), [claims("  s1.2 rows (1)")]);
    assert_eq!(settle(&runs), [claims("  s1.2 rows (1)")]);
    assert!(unsettled(&runs) && !unsettled(&runs[..1]));
}

#[test]
fn recurring_values_give_several_outcomes() {
    let runs = [run("2", "2"), run("1", "1"), run("2", "2"), run("1", "1")];
    assert_eq!(settle(&runs), [run("1", "1"), run("2", "2")]);
    assert!(!unsettled(&runs));
    let with_a_counter = [run("2", "7"), run("1", "8"), run("2", "9")];
    assert_eq!(settle(&with_a_counter), [claims("  s1.2 rows (1)"), claims("  s1.2 rows (2)")]);
}

#[test]
fn a_step_that_reads_a_clock_after_a_wait_keeps_the_wait() {
    let at = |clock: &str| claims(&format!("  s1.2 waits\n  s1.2 rows ({clock})"));
    assert_eq!(settle(&[at("1"), at("2")]), [claims("  s1.2 waits")]);
}

#[test]
fn earlier_outcomes_are_kept_with_new_ones() {
    let old = vec![claims("  s1.2 rows (1)"), run("3", "3")];
    assert_eq!(united(&old, vec![run("1", "1")]), [run("1", "1"), run("3", "3")]);
}

#[test]
fn outcomes_that_vary_are_one_block_and_survive_the_text() {
    let mut case = parse(TEXT).unwrap();
    let level = Level::RepeatableRead;
    let both = vec![run("1", "1"), run("2", "2")];
    let new = vec![
        (place("tidb", "6.6.0", level), both.clone()),
        (place("tidb", "8.5.0", level), both.clone()),
    ];
    record(&mut case, new.clone());
    let text = format(&case);
    assert_eq!((text.matches("expect ").count(), text.matches("\nor:\n").count()), (1, 1));
    let mut again = parse(&text).unwrap();
    assert_eq!(again, case);
    assert_eq!(recorded_at(&again, "tidb", "8.5.0", level), Some(both));
    record(&mut again, new);
    assert_eq!(format(&again), text);
}

#[test]
fn comments_on_recordings_stay_when_they_are_made_anew() {
    let text = format!(
        "{TEXT}\n# both are old\nexpect mysql@5.7.19, mysql@9.7.4 at repeatable read:\n  s1.2 waits\n"
    );
    let mut case = parse(&text).unwrap();
    let level = Level::RepeatableRead;
    let rows = || vec![claims("  s1.2 rows (1)")];
    record(&mut case, vec![(place("mysql", "9.7.4", level), rows())]);
    assert_eq!(format(&case).matches("# both are old\nexpect mysql@").count(), 2);
    record(&mut case, vec![(place("mysql", "5.7.19", level), rows())]);
    let united = format(&case);
    assert_eq!(united.matches("# both are old").count(), 1, "{united}");
    let nothing = |version| (place("mysql", version, level), vec![Vec::new()]);
    record(&mut case, vec![nothing("5.7.19"), nothing("9.7.4")]);
    assert!(format(&case).ends_with("\n# both are old\n"));
}

//! Tests of whole pages, from output folders made of recorded runs.

use super::*;
use isolde_hunt::cause::{Explained, Verdict};
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::Shard;
use isolde_hunt::tally::{Coverage, Refusal};
use isolde_model::Value;
use isolde_model::history::{EventKind, FailureKind, SentStep, ServerFailure};
use isolde_testing::samples::{hunt, made, summary};
use std::fs;

const EVIL: &str = "</script></style><img src=x onerror=alert(1)>\"'&\u{202e}";

fn read(dir: &Path) -> String {
    fs::read_to_string(write(dir).unwrap()).unwrap()
}

#[test]
fn page_has_summary_and_findings_and_needs_no_network() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), 3, 3);
    let page = read(dir.path());
    for wanted in [
        "<title>mariadb 10.11.19",
        "<dt>seed</dt><dd>7</dd>",
        "<dt>prepared</dt><dd>yes</dd>",
        "97.3 %",
        "61.3",
        "waits for s1",
        "✗ aborted by the engine",
        "href=\"https://jira.mariadb.org/browse/MDEV-26642\"",
        "semi-consistent-read",
        "delete-using",
        "reduced from 17 to 9 statements",
        "Script for the engine",
        "serially: 3 rows",
        "isolde replay findings/000002/case.case",
        "isolde replay case.case --on mariadb<",
        "<p class=\"sentences\">The statements ran concurrently",
        "Initial tables",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    // Self-contained: no file of the folder is linked.
    for forbidden in [
        "<link",
        "src=",
        "@import",
        "url(",
        "javascript:",
        "href=\"findings",
        ".jsonl",
        "schedule.txt",
        "`",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(!page.contains("<dt>ddl</dt>") && !page.contains("<dt>cases not run</dt>"));
    assert_eq!(page.matches("<section class=\"group\"").count(), 3);
    assert!(!dir.path().join("report.html.new").exists());
}

#[test]
fn policy_of_the_page_allows_its_script() {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(include_bytes!("script.js"));
    let hash = base64::engine::general_purpose::STANDARD.encode(digest);
    assert_eq!(hash, include_str!("script.sha256").trim(), "put it into script.sha256");
}

#[test]
fn page_escapes_foreign_text_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create(dir.path()).unwrap();
    let mut evidence = made(1, "deadlock", Verdict::Bug, EVIL);
    for step in &mut evidence.concurrent.steps {
        *step =
            SentStep { label: EVIL.into(), session: EVIL.into(), sql: EVIL.into(), anyway: false };
    }
    for event in &mut evidence.concurrent.events {
        event.session = EVIL.into();
        match &mut event.what {
            EventKind::Error(error) => (error.code, error.message) = (EVIL.into(), EVIL.into()),
            EventKind::NotSent { why } => *why = EVIL.into(),
            EventKind::Waiting { on } => *on = vec![EVIL.into()],
            _ => {}
        }
    }
    evidence.concurrent.final_state[0].query = EVIL.into();
    evidence.concurrent.final_state[0].rows = vec![vec![Value::Text(EVIL.into())]];
    let (how, why) = (FailureKind::Died, EVIL.to_string());
    evidence.concurrent.death = Some(ServerFailure { how, why, log: Some(EVIL.into()) });
    evidence.serial = vec![("serial-tx".into(), evidence.concurrent.clone())];
    let finding = &mut evidence.finding;
    (finding.title, finding.target, finding.case) = (EVIL.into(), EVIL.into(), EVIL.into());
    finding.explanation = vec![EVIL.into()];
    finding.oracles = vec![EVIL.into()];
    finding.known = vec![EVIL.into(), format!("mysql/{EVIL}")];
    finding.cause.behaviour =
        Some(Explained { name: EVIL.into(), about: EVIL.into(), link: format!("https://{EVIL}") });
    folder.write(&evidence).unwrap();
    folder.note_documented(&evidence.finding).unwrap();
    let mut odd = evidence.finding.clone();
    odd.id = EVIL.into();
    folder.note_finding(&odd).unwrap();
    let mut summary = summary(7, Shard::WHOLE, 1);
    let identity = &mut summary.identity;
    (identity.target, identity.server_version, identity.version) =
        (EVIL.into(), EVIL.into(), EVIL.into());
    identity.settings.insert(EVIL.into(), EVIL.into());
    identity.options.insert(EVIL.into(), EVIL.into());
    identity.levels.push(EVIL.into());
    identity.oracles.push(EVIL.into());
    summary.by_level.insert(EVIL.into(), Default::default());
    summary.by_oracle.insert(EVIL.into(), Default::default());
    summary.by_behaviour.insert(EVIL.into(), 1);
    summary.features.insert(EVIL.into(), Coverage::default());
    summary
        .refusals
        .insert(EVIL.into(), Refusal { count: 1, message: EVIL.into(), sql: EVIL.into() });
    folder.write_summary(&summary).unwrap();
    let page = read(dir.path());
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("</script>").count(), 1, "its own");
    assert_eq!(page.matches("</style>").count(), 1, "its own");
    assert!(page.matches("&lt;img src=x onerror=alert(1)&gt;&quot;'&amp;").count() > 30);
}

#[test]
fn page_reports_missing_and_damaged_folders_in_place() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), 4, 4);
    let at = |path: &str| dir.path().join("findings").join(path);
    fs::remove_dir_all(at("000000")).unwrap();
    fs::write(at("000001/concurrent.json"), b"\xff{").unwrap();
    fs::write(at("000001/serial-tx.json"), "{}").unwrap();
    fs::remove_file(at("000003/script.sql")).ok();
    fs::write(dir.path().join("documented.jsonl"), "nonsense\n").unwrap();
    let page = read(dir.path());
    assert!(page.contains("the folder findings/000000 is missing"));
    assert!(page.contains("concurrent.json is damaged"));
    assert!(page.contains("serial-tx.json is damaged"));
    assert!(page.contains("documented.jsonl: line 1"));
    fs::write(dir.path().join("findings.jsonl"), "{}\n".repeat(9)).unwrap();
    assert!(write(dir.path()).unwrap_err().to_string().contains("findings.jsonl: line 1"));
    fs::write(dir.path().join("hunt.json"), "{").unwrap();
    assert!(write(dir.path()).unwrap_err().to_string().contains("hunt.json"));
    fs::remove_file(dir.path().join("hunt.json")).unwrap();
    assert!(write(dir.path()).unwrap_err().to_string().contains("hunt.json"));
}

#[test]
fn page_of_a_thousand_findings_is_grouped_and_small() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), 1000, 40);
    let page = read(dir.path());
    assert_eq!(page.matches("<section class=\"group\"").count(), 40);
    assert_eq!(page.matches("<details class=\"finding\"").count(), 120);
    assert_eq!(page.matches("<details class=\"finding\" open>").count(), 1);
    assert!(page.contains("22 more findings of this group"));
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    let bug = page.find("data-cause=\"bug\"").unwrap();
    assert!(bug < page.find("data-cause=\"undecided\"").unwrap());
}

#[test]
fn page_of_a_hunt_without_findings() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create(dir.path()).unwrap();
    folder.write_summary(&summary(7, Shard { part: 2, of: 4 }, 0)).unwrap();
    let page = read(dir.path());
    assert!(page.contains("No violation, except those that the documentation allows"));
    assert!(page.contains("2/4 (1 of 4 present)") && page.contains("none to show"));
}

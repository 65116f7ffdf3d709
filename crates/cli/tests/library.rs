//! The library of known bugs: `isolde test` and `isolde list`.

use isolde_testing::processes::{signal, wait_until};
use isolde_testing::program::{command, isolde, stdout};
use isolde_testing::servers;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// A new folder with one case, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn with(name: &str, case: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("isolde-library-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("some")).unwrap();
        std::fs::write(path.join("some/case.case"), case).unwrap();
        Folder(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn case(&self) -> String {
        std::fs::read_to_string(self.0.join("some/case.case")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const CASE: &str = "case: some/case
title: A wait
kind: scenario

setup:
  create table t (a int);
  insert into t values (1);

s1> begin;
s1> update t set a = 2;
s2> begin;
s2> update t set a = 3;
s1> commit;
s2> commit;
s2> select random() as r;

shows when:
  s2.2 waits
";

#[test]
fn the_library_behaves_on_sqlite_as_recorded() {
    let cases = library();
    let output = isolde(&["test", "--on", "sqlite", "--cases", cases.to_str().unwrap()]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("hermitage/p4"), "{text}");
    assert!(text.contains(" 0 differ, 0 not recorded"), "{text}");
}

#[test]
fn recording_again_changes_nothing_and_omits_random_values() {
    let folder = Folder::with("record", CASE);
    let record = || isolde(&["test", "--on", "sqlite", "--record", "--cases", folder.path()]);
    let first = record();
    assert!(first.status.success());
    let recorded = folder.case();
    assert!(recorded.contains("  s2.2 waits\n  s2.2 affects 1\n"), "{recorded}");
    assert!(!recorded.contains("s2.4 "), "a random number was recorded: {recorded}");
    assert!(stdout(&record()).contains("0 files changed"));
    assert_eq!(folder.case(), recorded);
    let listed = stdout(&isolde(&["list", "--cases", folder.path()]));
    assert!(listed.contains("some/case") && listed.contains(" SER"), "{listed}");
}

#[test]
fn comments_on_recordings_survive_a_new_recording() {
    let folder = Folder::with("comments", CASE);
    let record = || isolde(&["test", "--on", "sqlite", "--record", "--cases", folder.path()]);
    record();
    let noted = folder.case().replace("expect sqlite", "# seen in spring\nexpect sqlite");
    let wrong = noted.replace("final (3)", "final (4)");
    assert!(wrong != noted && noted.contains("# seen in spring"));
    std::fs::write(folder.0.join("some/case.case"), wrong).unwrap();
    assert!(stdout(&record()).contains("1 files changed"));
    assert_eq!(folder.case(), noted);
}

#[test]
fn an_interrupted_recording_keeps_completed_cases() {
    let folder = Folder::with("interrupt", CASE);
    // The second case is slow, so that the interrupt arrives while it runs.
    let slow = "case: some/second\ntitle: Slow\nkind: scenario\n\ns1> with recursive c(x) as (select 1 \
                union all select x + 1 from c where x < 2000000) select count(*) from c;\n";
    std::fs::write(folder.0.join("some/second.case"), slow).unwrap();
    let mut child =
        command(&["test", "--on", "sqlite", "--record", "--repeat", "1000", "some/second|A wait"])
            .args(["--cases", folder.path()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
    wait_until("the first case is recorded", || folder.case().contains("expect sqlite"));
    signal(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(folder.case().contains("  final (3)\n"), "{}", folder.case());
    let names = std::fs::read_dir(folder.0.join("some")).unwrap();
    assert_eq!(names.count(), 2, "a temporary file is left");
}

#[test]
fn alternative_recorded_outcomes_are_all_accepted() {
    let folder = Folder::with("open", CASE);
    isolde(&["test", "--on", "sqlite", "--record", "--cases", folder.path()]);
    let recorded = folder.case();
    let claims = recorded.split_once("at serializable:\n").unwrap().1;
    let other = claims.replace("final (3)", "final (4)");
    let write = |text: String| std::fs::write(folder.0.join("some/case.case"), text).unwrap();
    let test = || isolde(&["test", "--on", "sqlite", "--cases", folder.path()]);
    write(recorded.replace(claims, &format!("{other}or:\n{claims}")));
    assert!(test().status.success(), "{}", stdout(&test()));
    // Any other outcome still differs from the nearest recorded one.
    let third = claims.replace("final (3)", "final (5)");
    write(recorded.replace(claims, &format!("{other}or:\n{third}")));
    assert_eq!(test().status.code(), Some(1));
    assert!(stdout(&test()).contains("expected final (4), observed (3)"), "{}", stdout(&test()));
}

#[test]
fn repeated_recording_finds_every_outcome_of_a_case_that_varies() {
    let coin = CASE.replace("random() as r", "abs(random() % 2) as r");
    let folder = Folder::with("coin", &coin);
    let record = |often: &str| {
        isolde(&["test", "--on", "sqlite", "--record", "--repeat", often, "--cases", folder.path()])
    };
    // Forty equal random outcomes are practically impossible.
    assert!(record("40").status.success());
    let recorded = folder.case();
    assert_eq!(recorded.matches("\nor:\n").count(), 1, "{recorded}");
    assert!(recorded.contains("  s2.4 rows (0)\n") && recorded.contains("  s2.4 rows (1)\n"));
    for _ in 0..3 {
        assert!(isolde(&["test", "--on", "sqlite", "--cases", folder.path()]).status.success());
    }
    assert!(stdout(&record("3")).contains("0 files changed"));
}

#[test]
fn a_case_with_server_options_is_refused_on_engines_without_them() {
    let text = CASE.replace("kind: scenario\n", "kind: scenario\nserver options: --x=1\n");
    let folder = Folder::with("options", &text);
    let output = isolde(&["test", "--on", "sqlite", "--cases", folder.path()]);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        printed.contains("some/case skipped on sqlite") && printed.contains("--x=1"),
        "{printed}"
    );
    let file = folder.0.join("some/case.case");
    let output = isolde(&["replay", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--x=1"));
}

#[test]
fn a_wrong_expectation_is_shown_and_exits_1() {
    let folder = Folder::with("wrong", CASE);
    isolde(&["test", "--on", "sqlite", "--record", "--cases", folder.path()]);
    let wrong = folder
        .case()
        .replace("final (3)", "final (4)")
        .replace("  s2.2 waits\n  s2.2 a", "  s2.2 a");
    std::fs::write(folder.0.join("some/case.case"), wrong).unwrap();
    let junit = folder.0.join("junit.xml");
    let output = isolde(&[
        "test",
        "--on",
        "sqlite",
        "--cases",
        folder.path(),
        "--junit",
        junit.to_str().unwrap(),
    ]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("some/case at SERIALIZABLE: expected final (4), observed (3)"), "{text}");
    assert!(text.contains("expected s2.2 does not wait, observed waits"), "{text}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("<failure message=\"expected final (4), observed (3)\">"), "{xml}");
}

#[test]
fn a_bad_regex_and_a_bad_case_have_their_exit_codes() {
    assert_eq!(isolde(&["list", "("]).status.code(), Some(2));
    assert_eq!(isolde(&["list", "no such case"]).status.code(), Some(2));
    let folder = Folder::with("bad", "case: x\n\ns1> begin;\n\nexpect sqlite:\n  s1.1 sings\n");
    let output = isolde(&["test", "--on", "sqlite", "--cases", folder.path()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 6, column 8"));
}

#[test]
fn the_page_of_known_bugs_is_current() {
    let cases = library();
    let made = stdout(&isolde(&["list", "--markdown", "--cases", cases.to_str().unwrap()]));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/known-bugs.md");
    let kept = std::fs::read_to_string(page).expect("docs/known-bugs.md is there");
    assert!(made == kept, "run `isolde list --markdown > docs/known-bugs.md`");
}

#[test]
fn the_page_of_rules_is_current() {
    let made = stdout(&isolde(&["list", "--rules"]));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/semantics.md");
    let kept = std::fs::read_to_string(page).expect("docs/semantics.md is there");
    assert!(made == kept, "run `isolde list --rules > docs/semantics.md`");
}

#[test]
fn the_list_as_json_has_every_case() {
    let output = isolde(&["list", "--json", "--cases", library().to_str().unwrap()]);
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cases = all["cases"].as_array().unwrap();
    assert!(cases.len() > 100, "{}", cases.len());
    assert!(cases.iter().all(|c| c["kind"].is_string()));
}

/// Also on MySQL where it was fetched.
#[test]
fn the_library_behaves_on_servers_as_recorded() {
    let targets = servers::available(&["postgres", "mariadb", "mysql@9.7"]);
    let Some(first) = targets.first() else { return };
    let cases = library();
    let folder = ["--cases", cases.to_str().unwrap()];
    let output = isolde(&[&["test", "--on"], &targets[..], &folder].concat());
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("hermitage/p4") && text.contains(first), "{text}");
    assert!(text.contains(" 0 differ"), "{text}");
}

#[test]
fn list_of_forms_names_the_versions_that_have_each() {
    let output = isolde(&["list", "--forms"]);
    let text = stdout(&output);
    let cells = |form: &str| -> Vec<String> {
        let row =
            text.lines().find(|line| line.starts_with(form)).unwrap_or_else(|| panic!("{form}"));
        row[form.len()..].split_whitespace().map(str::to_string).collect()
    };
    let engines: Vec<&str> = text.lines().next().unwrap().split_whitespace().skip(1).collect();
    let of = |form: &str, engine: &str| {
        cells(form)[engines.iter().position(|name| *name == engine).unwrap()].clone()
    };
    assert_eq!((of("merge", "postgres"), of("merge", "mysql")), ("15".into(), "–".into()));
    assert_eq!(of("lateral", "mysql"), "8.0.14");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&isolde(&["list", "--forms", "--json"]))).unwrap();
    let merge = json["forms"].as_array().unwrap().iter().find(|f| f["form"] == "merge").unwrap();
    assert_eq!(
        (&merge["engines"]["postgres"], &merge["engines"]["tidb"]),
        (&"15".into(), &false.into())
    );
}

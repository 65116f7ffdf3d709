//! The command line: output, exit codes, errors.

use isolde_testing::program::{command, isolde, stderr, stdout};
use std::io::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn hermitage(name: &str) -> String {
    root().join(format!("cases/hermitage/{name}.case")).display().to_string()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".case").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

const WRONG_EXPECTATION: &str = "case: wrong\n\nsetup:\n  create table t (a int);\n\n\
    s1> insert into t values (1);\n\nexpect:\n  s1.1 affects 2\n";

#[test]
fn the_matrix_of_the_embedded_default_is_a_table_with_a_legend() {
    let output = isolde(&["matrix"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("sqlite+wal")
            && text.contains("SERIALIZABLE")
            && text.contains("✓ prevented")
    );
    assert!(!text.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn quiet_matrix_prints_only_the_table() {
    let output = isolde(&["matrix", "sqlite", "--quiet"]);
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn the_matrix_as_json_has_the_documented_fields() {
    let output = isolde(&["matrix", "sqlite+shared-cache", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = value["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 20);
    for cell in cells {
        for key in ["target", "version", "level", "anomaly", "outcome", "how"] {
            assert!(cell[key].is_string(), "{key} in {cell}");
        }
    }
    let dirty = cells.iter().find(|c| c["level"] == "READ UNCOMMITTED" && c["anomaly"] == "G1a");
    assert_eq!(dirty.unwrap()["outcome"], "possible");
}

#[test]
fn matrix_explain_shows_the_transcript_that_decided() {
    let output = isolde(&["matrix", "sqlite+shared-cache", "--explain", "RU/G1a"]);
    let text = stdout(&output);
    assert!(text.contains("G1a is possible") && text.contains("s1> rollback;"), "{text}");
    assert!(text.contains("(1, 101)"), "{text}");
    assert_eq!(isolde(&["matrix", "sqlite", "--explain", "G9"]).status.code(), Some(2));
    assert_eq!(isolde(&["matrix", "sqlite", "--explain", "RC/P4"]).status.code(), Some(2));
}

#[test]
fn a_replay_shows_steps_levels_waits_and_the_final_state() {
    let output =
        isolde(&["replay", &hermitage("p4"), "--on", "sqlite+shared-cache", "--level", "all"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["READ UNCOMMITTED", "SERIALIZABLE", "waits", "s1 ended", "final rows: select", "*"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_replay_writes_json_and_markdown() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.md");
    let path = report.display().to_string();
    let output = isolde(&["replay", &hermitage("g0"), "--json", "--out", &path]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let history = &value["runs"][0]["history"];
    assert_eq!(history["engine"], "sqlite");
    assert!(history["events"].as_array().unwrap().len() > 8);
    assert!(history["settings"]["journal_mode"].is_string() && history["version"].is_string());
    let markdown = std::fs::read_to_string(report).unwrap();
    assert!(markdown.contains("| `s1> begin;` | ok |"), "{markdown}");
}

#[test]
fn an_unmet_expectation_is_exit_code_1_with_the_observed_outcome() {
    let file = file(WRONG_EXPECTATION);
    let output = isolde(&["replay", &file.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("expected s1.1 affects 2, observed 1 row"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn usage_errors_are_exit_code_2_with_the_valid_values() {
    for (args, hint) in [
        (vec!["matrix", "oracle"], "name an engine"),
        (vec!["matrix", "sqlite+fast"], "sqlite+wal"),
        (vec!["matrix", "sqlite", "--level", "chaos"], "repeatable read"),
        (vec!["nonsense"], "unrecognized subcommand"),
        (vec!["fetch", "postgres://x/"], "cannot be fetched"),
    ] {
        let output = isolde(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
    }
    let path = hermitage("p4");
    let wrong_level = isolde(&["replay", &path, "--level", "read committed"]);
    assert_eq!(wrong_level.status.code(), Some(2));
    assert!(
        stderr(&wrong_level).contains("sqlite has no level READ COMMITTED; it has SERIALIZABLE")
    );
}

#[test]
fn an_unreachable_target_is_exit_code_4_and_its_password_stays_secret() {
    for url in ["postgres://me:hunter2@127.0.0.1:1/x", "mysql://me:hunter2@127.0.0.1:1/x"] {
        let output = isolde(&["matrix", url]);
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        let all = stdout(&output) + &stderr(&output);
        assert!(!all.contains("hunter2") && all.contains("me:***@127.0.0.1:1"), "{all}");
    }
    let missing = isolde(&["matrix", "postgres@3.1"]);
    assert_eq!(missing.status.code(), Some(4));
    assert!(stderr(&missing).contains("isolde fetch postgres@3.1"), "{}", stderr(&missing));
    assert_eq!(isolde(&["matrix", "driver:/no/such/program"]).status.code(), Some(4));
    assert_eq!(isolde(&["matrix", "cockroach"]).status.code(), Some(4));
}

#[test]
fn a_container_runtime_that_cannot_run_is_exit_code_4() {
    let output = isolde(&["matrix", "postgres@17", "--via", "podman"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("via podman"), "{}", stderr(&output));
}

#[test]
fn every_malformed_file_is_exit_code_5_with_its_position() {
    let folder = root().join("crates/model/tests/malformed");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path().display().to_string())
        .collect();
    files.sort();
    for path in files.iter().step_by(10) {
        let output = isolde(&["replay", path]);
        assert_eq!(output.status.code(), Some(5), "{path}: {}", stderr(&output));
        let text = stderr(&output);
        assert!(
            text.contains(path.as_str()) && text.contains("line ") && text.contains('^'),
            "{text}"
        );
    }
    // All files in one command: each one is named.
    let mut args = vec!["fmt", "--check"];
    args.extend(files.iter().map(String::as_str));
    let output = isolde(&args);
    assert_eq!(output.status.code(), Some(5));
    let named = files.iter().filter(|f| stderr(&output).contains(f.as_str())).count();
    assert_eq!(named, files.len());
    assert_eq!(isolde(&["replay", "/no/such/file.case"]).status.code(), Some(5));
}

#[test]
fn a_setup_that_the_engine_rejects_names_its_line() {
    let file = file(
        "case: x\n\nsetup:\n  create table t (a int);\n  insert into u values (1);\n\ns1> begin;\n",
    );
    let output = isolde(&["replay", &file.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("setup failed at line 5"), "{}", stderr(&output));
}

#[test]
fn fmt_is_stable_and_check_changes_nothing() {
    let messy = "case: x\ntitle:   spaced\nsetup:\n      create table t(a int);\ns1>   begin;\ns1>commit;\n";
    let file = file(messy);
    let path = file.path().display().to_string();
    assert_eq!(isolde(&["fmt", "--check", &path]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), messy);
    assert_eq!(isolde(&["fmt", &path]).status.code(), Some(0));
    let once = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        once,
        "case: x\ntitle: spaced\n\nsetup:\n  create table t(a int);\n\ns1> begin;\ns1> commit;\n"
    );
    assert_eq!(isolde(&["fmt", "--check", &path]).status.code(), Some(0));
}

#[test]
fn sqlite_works_in_a_new_file_only_and_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let target = format!("sqlite:{}", path.display());
    let output = isolde(&["matrix", &target, "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    std::fs::write(&path, "precious").unwrap();
    let refused = isolde(&["matrix", &target]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(stderr(&refused).contains("exists"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn help_explains_targets_and_exit_codes_and_completions_exist() {
    let help = stdout(&isolde(&["--help"]));
    assert!(help.contains("Exit codes:") && help.contains("matrix") && help.contains("replay"));
    let matrix = stdout(&isolde(&["matrix", "--help"]));
    assert!(matrix.contains("postgres@18") && matrix.contains("driver:"));
    for shell in ["bash", "zsh", "fish"] {
        let output = isolde(&["completions", shell]);
        assert!(stdout(&output).contains("isolde"), "{shell}");
    }
}

#[test]
fn help_of_a_command_lists_its_own_options_first() {
    let help = stdout(&isolde(&["help", "hunt"]));
    assert_eq!(help, stdout(&isolde(&["hunt", "--help"])));
    let place = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text} in {help}"));
    assert!(place("--junit") < place("Global options"), "{help}");
    assert!(place("Global options") < place("--json"), "{help}");
    let fmt = isolde(&["fmt", "--via", "podman", "x.case"]);
    assert_eq!(fmt.status.code(), Some(2), "fmt starts no server");
}

#[test]
fn environment_options_are_on_unless_set_to_an_off_value() {
    for (value, on) in
        [("1", true), ("true", true), ("yes", true), ("0", false), ("false", false), ("", false)]
    {
        let variables = [("ISOLDE_JSON", value), ("ISOLDE_QUIET", value)];
        let output = command(&["matrix", "sqlite"]).envs(variables).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{value}: {}", stderr(&output));
        assert_eq!(stdout(&output).starts_with('{'), on, "ISOLDE_JSON={value}");
    }
}

#[test]
fn servers_lists_installed_and_fetchable_versions() {
    let text = stdout(&isolde(&["servers"]));
    assert!(text.contains("sqlite") && text.contains("isolde fetch postgres@"), "{text}");
    let value: serde_json::Value =
        serde_json::from_slice(&isolde(&["servers", "--json"]).stdout).unwrap();
    assert!(value["fetchable"].as_array().unwrap().len() > 5);
}

#[test]
fn driver_check_passes_the_example_and_fails_other_programs() {
    let example = root().join("drivers/sqlite3_driver.py").display().to_string();
    let output = isolde(&["driver-check", "python3", &example]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let output = isolde(&["driver-check", "cat"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let target = format!("driver:python3 {example}");
    let output = isolde(&["matrix", &target, "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

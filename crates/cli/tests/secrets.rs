//! What is secret stays so: nobody gets into a private server without its
//! password, and no password shows where it should not.

mod servers;

use isolde_engines::fetch::install::{self, Cache};
use servers::Server;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn isolde(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.args(arguments).stdin(Stdio::null());
    for variable in ["PGPASSWORD", "PGPASSFILE", "MYSQL_PWD"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

/// Everything that can be started here, in all its versions.
fn private_servers() -> Vec<String> {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        println!("skipped: ISOLDE_TEST_QUICK is set");
        return Vec::new();
    }
    let servers = ["postgres", "mariadb", "mysql", "tidb", "dolt"];
    let cache = Cache::open();
    let mut names: Vec<String> = install::machine_installs()
        .iter()
        .chain(&install::cached_installs(&cache))
        .filter(|found| servers.contains(&found.engine.as_str()))
        .map(|found| format!("{}@{}", found.engine, found.version))
        .collect();
    names.dedup();
    names
}

/// The processes that work in the scratch directories of an Isolde process,
/// and the process itself, with their arguments.
fn processes_of(isolde: u32) -> Vec<String> {
    let mark = format!("isolde-{isolde}-");
    let line = |process: &Path| {
        let bytes = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let mut found = vec![line(&Path::new("/proc").join(isolde.to_string()))];
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| line(&entry.path()));
    found.extend(all.filter(|line| line.contains(&mark)));
    found
}

fn scratch_of(isolde: u32) -> Vec<std::path::PathBuf> {
    let mark = format!("isolde-{isolde}-");
    let roots = [Path::new("/dev/shm").to_path_buf(), std::env::temp_dir()];
    let entries = roots.iter().filter_map(|root| std::fs::read_dir(root).ok()).flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.display().to_string().contains(&mark)).collect()
}

#[test]
fn nobody_gets_into_a_private_server_without_its_password() {
    for target in private_servers() {
        let server = Server::start(&target, &[]);
        let password = server.text("password");
        assert!(password.len() >= 20, "{target}: {}", server.said);
        let user = server.text("user");
        let strangers = [user, "root", "postgres", "", &format!("{user}:isolde"), "isolde:"];
        for login in strangers {
            let output = isolde(&["matrix", &server.url_for(login), "-q", "--level", "RC"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(4), "{target}: `{login}` got in: {said}");
        }
        let output = isolde(&["matrix", &server.url(), "-q", "--level", "RC"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{target}: {said}");
        for line in processes_of(server.child.id()) {
            assert!(!line.contains(password), "{target}: in the arguments of a process: {line}");
        }
        let scratch = scratch_of(server.child.id());
        assert!(!scratch.is_empty(), "{target}");
        for folder in scratch {
            let mode = folder.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{target}: others may look into {}", folder.display());
        }
        println!("{target}: refused without the password");
    }
}

#[test]
fn two_private_servers_have_two_passwords() {
    for target in ["postgres", "mariadb"] {
        if !private_servers().iter().any(|name| name.starts_with(target)) {
            continue;
        }
        let (one, two) = (Server::start(target, &[]), Server::start(target, &[]));
        assert_ne!(one.text("password"), two.text("password"));
        let login = format!("{}:{}", two.text("user"), one.text("password"));
        let output = isolde(&["matrix", &two.url_for(&login), "-q", "--level", "RC"]);
        assert_eq!(output.status.code(), Some(4), "{target}");
    }
}

/// Files below a folder, with what is in them.
fn files_below(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            found.push((path.display().to_string(), text));
        }
    }
    found
}

const CASE: &str = "case: one\n\nsetup:\n  create table t (a int);\n\ns1> select a from t;\n";
const SPEC: &str = "session s1\nstep a { select 1; }\n";

/// Every command that takes a target, with one that has a password.
fn commands<'a>(url: &'a str, wrong: &'a str) -> Vec<Vec<&'a str>> {
    let words = |text: &'a str| -> Vec<&'a str> {
        let word = |word: &'a str| match word {
            "URL" => url,
            "WRONG" => wrong,
            word => word,
        };
        text.split(' ').map(word).collect()
    };
    [
        "hunt URL --seed 3 --cases 30 --out a",
        "hunt URL --seed 3 --cases 60 --out a --resume",
        "hunt URL --seed 3 --cases 90 --fault row-skipped --fault-rate 1 --out b --junit b.xml",
        "--json hunt URL --seed 3 --cases 30 --out c",
        "report b",
        "merge b --out d",
        "faults URL --fault row-skipped --cases 30",
        "matrix URL --level RC",
        "matrix URL --explain RC/P4",
        "--json matrix URL --level RC",
        "replay one.case --on URL --out one.md",
        "--json replay one.case --on URL",
        "test P4 --on URL --level RC --junit test.xml",
        "spec one.spec --on URL",
        "repl URL",
        "clean URL",
        "matrix WRONG",
        "hunt WRONG --out e",
        "server WRONG",
        "servers URL",
        "matrix URL --level URL",
        "hunt URL --cases URL",
        "fetch URL",
    ]
    .into_iter()
    .map(words)
    .collect()
}

#[test]
fn the_password_of_a_url_is_in_no_output_no_file_and_no_childs_arguments() {
    for target in ["postgres", "mariadb"] {
        if !private_servers().iter().any(|name| name.starts_with(target)) {
            continue;
        }
        let server = Server::start(target, &[]);
        let (url, password) = (server.url(), server.text("password").to_string());
        let wrong = url.replace(&format!(":{}/", server.said["port"]), ":1/");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one.case"), CASE).unwrap();
        std::fs::write(folder.path().join("one.spec"), SPEC).unwrap();
        for arguments in commands(&url, &wrong) {
            let output = Command::new(env!("CARGO_BIN_EXE_isolde"))
                .args(&arguments)
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            for shown in [&output.stdout, &output.stderr] {
                let shown = String::from_utf8_lossy(shown);
                assert!(!shown.contains(&password), "{target}: {arguments:?}: {shown}");
            }
            assert_ne!(output.status.code(), Some(70), "{target}: {arguments:?}");
        }
        let files = files_below(folder.path());
        assert!(files.iter().any(|(name, _)| name.contains("b/findings/")), "{target}: a finding");
        for (name, text) in files {
            assert!(!text.contains(&password), "{target}: {name}");
        }
        for (more, client) in [("server", &[][..]), ("shell", &["2"][..])] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
            command.arg(more).args(client).arg(&url).stdin(Stdio::null());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut first = String::new();
            let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
            std::io::BufRead::read_line(&mut reader, &mut first).unwrap();
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let mine = [child.id().to_string(), std::process::id().to_string()];
            for process in processes.filter(|p| !mine.iter().any(|m| p.file_name() == m.as_str())) {
                let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).into_owned();
                assert!(!line.contains(&password), "{target}: {more}: {line}");
            }
            let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            assert!(told.unwrap().success());
            let mut rest = String::new();
            std::io::Read::read_to_string(&mut reader, &mut rest).unwrap();
            let output = child.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            for shown in [first, rest, errors] {
                assert!(!shown.contains(&password), "{target}: {more}: {shown}");
            }
        }
    }
}

/// A password can come from beside the URL, in a fixed order.
#[test]
fn passwords_come_from_a_file_the_environment_or_the_password_file() {
    for (target, variable) in [("postgres", "PGPASSWORD"), ("mariadb", "MYSQL_PWD")] {
        if !private_servers().iter().any(|name| name.starts_with(target)) {
            continue;
        }
        let server = Server::start(target, &[]);
        let (right, url) = (server.text("password"), server.url_for(server.text("user")));
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path.to_str().unwrap().to_string()
        };
        let good = file("good", &format!("{right}\n"));
        let bad = file("bad", "wrong\n");
        let pass =
            file("pass", &format!("# c\n127.0.0.1:{}:*:isolde:{right}\n", server.said["port"]));
        let open = file("open", &format!("*:*:*:*:{right}\n"));
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
        let ends = |url: &str, options: &[&str], variables: &[(&str, &str)]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
            command.args(["matrix", url, "-q", "--level", "RC"]).args(options);
            for name in ["PGPASSWORD", "PGPASSFILE", "MYSQL_PWD"] {
                command.env_remove(name);
            }
            command.env("HOME", folder.path()).envs(variables.iter().copied());
            let output = command.stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!said.contains(right), "{said}");
            (output.status.code(), said)
        };
        let (yes, no) = (Some(0), Some(4));
        assert_eq!(ends(&url, &[], &[]).0, no);
        assert_eq!(ends(&url, &[], &[(variable, right)]).0, yes);
        assert_eq!(ends(&url, &["--password-file", &good], &[]).0, yes);
        // The file comes before the environment, the URL before both.
        assert_eq!(ends(&url, &["--password-file", &good], &[(variable, "wrong")]).0, yes);
        assert_eq!(ends(&url, &["--password-file", &bad], &[(variable, right)]).0, no);
        let (said, _) = ends(&server.url(), &["--password-file", &bad], &[(variable, "wrong")]);
        assert_eq!(said, yes);
        assert_eq!(ends(&url, &["--password-file", "/nowhere"], &[]).0, Some(5));
        if target == "postgres" {
            assert_eq!(ends(&url, &[], &[("PGPASSFILE", &pass)]).0, yes);
            assert_eq!(ends(&url, &[], &[("PGPASSFILE", &pass), (variable, "wrong")]).0, no);
            let (code, said) = ends(&url, &[], &[("PGPASSFILE", &open)]);
            assert!(code == no && said.contains("chmod 600"), "{said}");
            file(".pgpass", &format!("*:*:*:*:{right}\n"));
            assert_eq!(ends(&url, &[], &[]).0, yes);
        }
    }
}

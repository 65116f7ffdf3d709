//! Private servers refuse logins without their password, and passwords appear in
//! no output, file or argument.

use isolde_engines::fetch::install::{self, Cache};
use isolde_testing::processes::{self, command_line, scratch_directories_of, servers_of, signal};
use isolde_testing::program::{command, isolde, stderr};
use isolde_testing::servers;
use isolde_testing::user_server::UserServer;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// All private servers that can be started on this machine, in all their
/// versions.
fn private_servers() -> Vec<String> {
    if servers::available(&["postgres", "mariadb"]).is_empty() {
        return Vec::new();
    }
    let engines = ["postgres", "mariadb", "mysql", "tidb", "dolt"];
    let mut names: Vec<String> = install::machine_installs()
        .iter()
        .chain(&install::cached_installs(&Cache::open()))
        .filter(|found| engines.contains(&found.engine.as_str()))
        .map(|found| format!("{}@{}", found.engine, found.version))
        .collect();
    names.dedup();
    for required in ["postgres@", "mariadb@"] {
        assert!(names.iter().any(|name| name.starts_with(required)), "{required} in {names:?}");
    }
    names
}

#[test]
fn a_private_server_refuses_logins_without_its_password() {
    for target in private_servers() {
        let server = UserServer::start(&target, &[]);
        let password = server.text("password");
        assert!(password.len() >= 20, "{target}: {}", server.printed);
        let user = server.text("user");
        let strangers = [user, "root", "postgres", "", &format!("{user}:isolde"), "isolde:"];
        for login in strangers {
            let output = isolde(&["matrix", &server.url_for(login), "-q", "--level", "RC"]);
            let printed = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(4),
                "{target}: `{login}` was accepted: {printed}"
            );
        }
        let output = isolde(&["matrix", &server.url(), "-q", "--level", "RC"]);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{target}: {printed}");
        let isolde = server.child.id();
        let servers = servers_of(isolde).into_iter().map(|(_, line)| line);
        for line in servers.chain([command_line(isolde)]) {
            assert!(!line.contains(password), "{target}: in the arguments of a process: {line}");
        }
        let scratch = scratch_directories_of(isolde);
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
    for target in servers::available(&["postgres", "mariadb"]) {
        let (one, two) = (UserServer::start(target, &[]), UserServer::start(target, &[]));
        assert_ne!(one.text("password"), two.text("password"));
        let login = format!("{}:{}", two.text("user"), one.text("password"));
        let output = isolde(&["matrix", &two.url_for(&login), "-q", "--level", "RC"]);
        assert_eq!(output.status.code(), Some(4), "{target}");
    }
}

/// The files below a folder with their contents.
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

/// Every command that accepts a target, with a URL that has a password.
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
    for target in servers::available(&["postgres", "mariadb"]) {
        let server = UserServer::start(target, &[]);
        let (url, password) = (server.url(), server.text("password").to_string());
        let wrong = url.replace(&format!(":{}/", server.printed["port"]), ":1/");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one.case"), CASE).unwrap();
        std::fs::write(folder.path().join("one.spec"), SPEC).unwrap();
        for arguments in commands(&url, &wrong) {
            let output = command(&arguments).current_dir(folder.path()).output().unwrap();
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
            let mut child = command(&[more]).args(client).arg(&url).spawn().unwrap();
            let mut first = String::new();
            let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
            std::io::BufRead::read_line(&mut reader, &mut first).unwrap();
            let own = [child.id(), std::process::id()];
            for process in processes::all().into_iter().filter(|p| !own.contains(p)) {
                let line = command_line(process);
                assert!(!line.contains(&password), "{target}: {more}: {line}");
            }
            signal(child.id(), Signal::TERM);
            let mut rest = String::new();
            std::io::Read::read_to_string(&mut reader, &mut rest).unwrap();
            let output = child.wait_with_output().unwrap();
            let errors = stderr(&output);
            for shown in [first, rest, errors] {
                assert!(!shown.contains(&password), "{target}: {more}: {shown}");
            }
        }
    }
}

#[test]
fn password_sources_have_a_fixed_precedence() {
    for (target, variable) in [("postgres", "PGPASSWORD"), ("mariadb", "MYSQL_PWD")] {
        if !servers::is_available(target) {
            continue;
        }
        let server = UserServer::start(target, &[]);
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
            file("pass", &format!("# c\n127.0.0.1:{}:*:isolde:{right}\n", server.printed["port"]));
        let open = file("open", &format!("*:*:*:*:{right}\n"));
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).unwrap();
        let ends = |url: &str, options: &[&str], variables: &[(&str, &str)]| {
            let mut command = command(&["matrix", url, "-q", "--level", "RC"]);
            command.args(options).env("HOME", folder.path()).envs(variables.iter().copied());
            let output = command.output().unwrap();
            let printed = stderr(&output);
            assert!(!printed.contains(right), "{printed}");
            (output.status.code(), printed)
        };
        let (yes, no) = (Some(0), Some(4));
        assert_eq!(ends(&url, &[], &[]).0, no);
        assert_eq!(ends(&url, &[], &[(variable, right)]).0, yes);
        assert_eq!(ends(&url, &["--password-file", &good], &[]).0, yes);
        // The password file precedes the environment, the URL precedes both.
        assert_eq!(ends(&url, &["--password-file", &good], &[(variable, "wrong")]).0, yes);
        assert_eq!(ends(&url, &["--password-file", &bad], &[(variable, right)]).0, no);
        let (printed, _) = ends(&server.url(), &["--password-file", &bad], &[(variable, "wrong")]);
        assert_eq!(printed, yes);
        assert_eq!(ends(&url, &["--password-file", "/nowhere"], &[]).0, Some(5));
        if target == "postgres" {
            assert_eq!(ends(&url, &[], &[("PGPASSFILE", &pass)]).0, yes);
            assert_eq!(ends(&url, &[], &[("PGPASSFILE", &pass), (variable, "wrong")]).0, no);
            let (code, printed) = ends(&url, &[], &[("PGPASSFILE", &open)]);
            assert!(code == no && printed.contains("chmod 600"), "{printed}");
            file(".pgpass", &format!("*:*:*:*:{right}\n"));
            assert_eq!(ends(&url, &[], &[]).0, yes);
        }
    }
}

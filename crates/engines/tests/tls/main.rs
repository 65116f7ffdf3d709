//! Encrypted connections to real servers: the requested mode is used, and a wrong
//! certificate is refused.

mod certificates;
use certificates::Certificates;
use isolde_engines::engine::{ClientInfo, Engine, EngineResult, Outcome, run_to_end};
use isolde_engines::runner::Runner;
use isolde_engines::target::Target;
use isolde_model::Value;
use isolde_model::transcript::transcript;
use isolde_testing::cases::{self, steps};
use isolde_testing::servers::{self, open};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

fn open_url(url: &str) -> EngineResult<Box<dyn Engine>> {
    Target::parse(url).unwrap().open(&servers::options())
}

#[track_caller]
fn refused(url: &str, why: &str) {
    match open_url(url) {
        Ok(_) => panic!("{url} is let in"),
        Err(error) => assert!(error.to_string().contains(why), "{url}: {error}"),
    }
}

/// The rows of a query on a new session, not on the control connection.
fn asked(engine: &mut dyn Engine, sql: &str) -> Vec<Vec<Value>> {
    let mut session = engine.open().unwrap();
    match run_to_end(session.as_mut(), sql, LIMIT).unwrap() {
        Outcome::Rows { rows, .. } => rows,
        other => panic!("{sql}: {other:?}"),
    }
}

fn is_encrypted(engine: &mut dyn Engine) -> bool {
    if engine.info().engine == "postgres" {
        let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
        return asked(engine, sql) == [[Value::Bool(true)]];
    }
    let rows = asked(engine, "show session status like 'Ssl_cipher'");
    !matches!(&rows[0][1], Value::Text(cipher) if cipher.is_empty())
}

#[track_caller]
fn let_in(url: &str) -> Box<dyn Engine> {
    let mut engine = open_url(url).unwrap_or_else(|e| panic!("{url}: {e}"));
    assert!(is_encrypted(engine.as_mut()), "{url}");
    engine
}

fn url(client: &ClientInfo, scheme: &str, host: &str, login: &str, parameters: &str) -> String {
    let database = if scheme == "postgres" { "postgres" } else { "" };
    format!("{scheme}://{login}@{host}:{}/{database}?{parameters}", client.port)
}

/// A private PostgreSQL with a certificate that accepts encrypted connections
/// only.
fn encrypted_postgres(certificates: &Certificates) -> Option<(Runner, ClientInfo)> {
    let mut runner = open("postgres")?;
    let client = runner.engine.client().unwrap();
    let mut tell = |sql: &str| match runner.engine.control(sql).unwrap() {
        Outcome::Error(error) => panic!("{sql}: {error}"),
        Outcome::Rows { rows, .. } => match &rows[0][0] {
            Value::Text(text) => text.clone(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let data = PathBuf::from(tell("show data_directory"));
    certificates.hand_to_server(&data);
    let hba = "hostssl all certified 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 md5\n";
    std::fs::write(data.join("pg_hba.conf"), hba).unwrap();
    tell("alter system set ssl_cert_file = 'server.pem'");
    tell("alter system set ssl_key_file = 'server.key'");
    tell("alter system set ssl_ca_file = 'ca.pem'");
    tell("alter system set ssl = on");
    tell("create role certified superuser login");
    tell("select pg_reload_conf()::text");
    let login = format!("{}:{}", client.user, client.password.as_ref().unwrap().reveal());
    let since = Instant::now();
    while let Err(error) =
        open_url(&url(&client, "postgres", "localhost", &login, "sslmode=require"))
    {
        assert!(since.elapsed() < LIMIT, "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((runner, client))
}

/// A private MariaDB with a certificate. Its account `tls` requires encryption.
fn encrypted_mariadb(certificates: &Certificates) -> Option<(Runner, ClientInfo)> {
    open("mariadb")?;
    let server = isolde_engines::server::scratch::scratch_dir("tls").unwrap();
    // Where the server's own user can read them.
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(server.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    certificates.hand_to_server(server.path());
    for name in ["ca.pem", "server.pem", "server.key"] {
        let file = server.path().join(name);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let at = |name: &str| server.path().join(name).display().to_string();
    let options = [
        format!("--ssl-cert={}", at("server.pem")),
        format!("--ssl-key={}", at("server.key")),
        format!("--ssl-ca={}", at("ca.pem")),
    ];
    let target = Target::parse("mariadb").unwrap().with_server_options(&options).unwrap();
    let mut engine = target.open(&servers::options()).unwrap();
    for sql in [
        "create user tls@'127.0.0.1' identified by 'secret' require ssl",
        "grant all on *.* to tls@'127.0.0.1' with grant option",
        "create user certified@'127.0.0.1' require x509",
        "grant all on *.* to certified@'127.0.0.1' with grant option",
    ] {
        assert_eq!(engine.control(sql).unwrap(), Outcome::Done, "{sql}");
    }
    let client = engine.client().unwrap();
    Some((Runner::new(engine), client))
}

/// The spelling of the modes in the URLs of one engine.
struct Words {
    scheme: &'static str,
    login: String,
    mode: &'static str,
    modes: [&'static str; 4],
    authorities: &'static str,
    certificate: &'static str,
    key: &'static str,
}

fn modes_are_honoured(certificates: &Certificates, client: &ClientInfo, words: &Words) {
    let file = |name: &str| certificates.file(name).display().to_string();
    let at =
        |host: &str, parameters: &str| url(client, words.scheme, host, &words.login, parameters);
    let [disable, require, verify_ca, verify_full] =
        words.modes.map(|m| format!("{}={m}", words.mode));
    let trusting = |name: &str| format!("&{}={}", words.authorities, file(name));

    let_in(&at("127.0.0.1", ""));
    let_in(&at("127.0.0.1", &require));
    refused(&at("127.0.0.1", &disable), "");
    let_in(&at("localhost", &format!("{verify_full}{}", trusting("ca.pem"))));
    let wrong_host = at("127.0.0.1", &format!("{verify_full}{}", trusting("ca.pem")));
    refused(&wrong_host, "it is not the certificate of 127.0.0.1");
    let_in(&at("127.0.0.1", &format!("{verify_ca}{}", trusting("ca.pem"))));
    for mode in [&verify_ca, &verify_full, &require] {
        let stranger = at("localhost", &format!("{mode}{}", trusting("stranger.pem")));
        refused(&stranger, "no trusted authority has signed it");
    }
    // The certificate itself may be the trusted authority.
    let_in(&at("localhost", &format!("{verify_full}{}", trusting("server.pem"))));
    refused(&at("localhost", &verify_full), "no trusted authority has signed it");
    refused(&at("localhost", &format!("{require}&{}=/nowhere", words.authorities)), "/nowhere");

    let certified =
        |parameters: &str| url(client, words.scheme, "localhost", "certified", parameters);
    refused(&certified(&require), "");
    let own = format!(
        "{require}&{}={}&{}={}",
        words.certificate,
        file("client.pem"),
        words.key,
        file("client.key")
    );
    let_in(&certified(&own));
}

/// A case with lock waits, a deadlock, and a reply of many TLS records.
fn a_case_runs_the_same(mut clear: Runner, encrypted: Box<dyn Engine>) {
    let case = steps(
        cases::TWO_ROWS,
        "s1> begin;
         s2> begin;
         s1> update t set v = v + 1 where id = 1;
         s2> update t set v = v + 1 where id = 2;
         s2> update t set v = v + 1 where id = 1;
         s1> update t set v = v + 1 where id = 2;
         s1> commit;
         s2> commit;
         s1> select repeat('0123456789', 300000);
         s2> select * from t order by id;",
    );
    let mut encrypted = Runner::new(encrypted);
    let first = transcript(&cases::run(&mut clear, &case, None));
    for _ in 0..5 {
        let again = transcript(&cases::run(&mut encrypted, &case, None));
        let body = |text: &str| text.lines().skip(2).map(str::to_string).collect::<Vec<_>>();
        assert_eq!(body(&again), body(&first));
    }
}

#[test]
fn postgres_connections_follow_sslmode() {
    let Some(certificates) = Certificates::make() else { return };
    let Some((_server, client)) = encrypted_postgres(&certificates) else { return };
    let words = Words {
        scheme: "postgres",
        login: format!("isolde:{}", client.password.as_ref().unwrap().reveal()),
        mode: "sslmode",
        modes: ["disable", "require", "verify-ca", "verify-full"],
        authorities: "sslrootcert",
        certificate: "sslcert",
        key: "sslkey",
    };
    modes_are_honoured(&certificates, &client, &words);
    let at = |mode: &str| url(&client, "postgres", "127.0.0.1", &words.login, mode);
    // The mode tries an unencrypted connection first, which this server refuses.
    let_in(&at("sslmode=allow"));
    let mut engine = let_in(&at("sslmode=prefer"));

    let text = "session s1\nstep a { select ssl from pg_stat_ssl where pid = pg_backend_pid(); }\n";
    let spec = isolde_interop::spec::parse(text).unwrap();
    let mut output = String::new();
    let options = isolde_engines::spec::Options::new("tls");
    isolde_engines::spec::run(engine.as_mut(), &spec, &options, &mut |piece| {
        output.push_str(piece);
    })
    .unwrap();
    assert!(output.contains("t  \n"), "{output}");
    a_case_runs_the_same(open("postgres").unwrap(), engine);
}

#[test]
fn mariadb_connections_follow_ssl_mode() {
    let Some(certificates) = Certificates::make() else { return };
    let Some((_server, client)) = encrypted_mariadb(&certificates) else { return };
    let words = Words {
        scheme: "mariadb",
        login: "tls:secret".into(),
        mode: "ssl-mode",
        modes: ["DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"],
        authorities: "ssl-ca",
        certificate: "ssl-cert",
        key: "ssl-key",
    };
    modes_are_honoured(&certificates, &client, &words);
    let engine = let_in(&url(&client, "mariadb", "127.0.0.1", &words.login, "sslMode=required"));
    a_case_runs_the_same(open("mariadb").unwrap(), engine);
}

#[test]
fn an_unencrypted_server_is_used_only_if_the_mode_allows_it() {
    for (target, none, required) in [
        ("postgres", "sslmode=prefer", "sslmode=require"),
        ("mariadb", "ssl-mode=PREFERRED", "ssl-mode=REQUIRED"),
    ] {
        let Some(runner) = open(target) else { continue };
        let client = runner.engine.client().unwrap();
        let login = format!("{}:{}", client.user, client.password.as_ref().unwrap().reveal());
        for parameters in ["", none] {
            let url = url(&client, target, "127.0.0.1", &login, parameters);
            let mut engine = open_url(&url).unwrap_or_else(|e| panic!("{url}: {e}"));
            assert!(!is_encrypted(engine.as_mut()), "{url}");
        }
        refused(&url(&client, target, "127.0.0.1", &login, required), "does not offer TLS");
    }
}

/// The first login of an account sends the password itself: through TLS, or
/// encrypted with the server's key.
#[test]
fn mysqls_full_authentication_works_with_and_without_tls() {
    for target in ["mysql@8.0.33", "mysql@9.7"] {
        let Some(mut runner) = open(target) else { continue };
        let client = runner.engine.client().unwrap();
        for (user, mode) in [("one", "REQUIRED"), ("two", "DISABLED")] {
            for sql in [
                format!("create user {user}@'127.0.0.1' identified by 'secret'"),
                format!("grant all on *.* to {user}@'127.0.0.1' with grant option"),
            ] {
                assert_eq!(runner.engine.control(&sql).unwrap(), Outcome::Done, "{sql}");
            }
            let login = format!("{user}:secret");
            let place = |login: &str| {
                url(&client, "mysql", "127.0.0.1", login, &format!("ssl-mode={mode}"))
            };
            refused(&place(&format!("{user}:wrong")), "1045");
            let mut engine =
                open_url(&place(&login)).unwrap_or_else(|e| panic!("{target} {mode}: {e}"));
            assert_eq!(is_encrypted(engine.as_mut()), mode == "REQUIRED", "{target}");
        }
    }
}

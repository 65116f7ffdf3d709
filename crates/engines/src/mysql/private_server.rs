//! Starts private MariaDB and MySQL servers of any version.

use super::wire::MySqlSession;
use crate::connect::address::ServerAddress;
use crate::engine::*;
use crate::fetch::install::{Cache, Install};
use crate::named_engine::NamedEngine;
use crate::secret::Secret;
use crate::server::{PrivateServer, Recipe, program, write_for_server};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// A running server, with a first connection to it.
pub struct RunningServer {
    pub server: PrivateServer,
    pub address: ServerAddress,
    pub control: MySqlSession,
}

/// The statements that the server itself runs at every start, before a client
/// can connect. So it does not matter which accounts a version's initialisation
/// creates: no account without a password is left. (The remaining ones are for
/// the socket, whose directory no other user can enter.)
fn init_sql(password: &Secret) -> String {
    let mut sql = format!(
        "create user 'isolde'@'127.0.0.1' identified by '{}';\n\
         grant all on *.* to 'isolde'@'127.0.0.1' with grant option;\n\
         create database if not exists isolde;\n",
        password.reveal()
    );
    for host in ["127.0.0.1", "::1", "%", "localhost"] {
        for user in ["root", ""] {
            sql.push_str(&format!("drop user if exists '{user}'@'{host}';\n"));
        }
    }
    sql
}

pub fn start(install: &Install, cache: &Cache, named: &NamedEngine) -> EngineResult<RunningServer> {
    let maria = install.engine == "mariadb";
    let password = Secret::random();
    let initialise = |data: &Path| -> Vec<Command> {
        vec![if maria { maria_init(install, data) } else { mysql_init(install, data) }]
    };
    let start = |data: &Path, port: u16| -> Command {
        let mut command = program(install, &install.server);
        command.args(common_arguments(install, data)).arg(format!("--port={port}"));
        command
            .arg(format!("--init-file={}", write_init_file(data, &init_sql(&password)).display()));
        command.args(if maria { MARIADB_ARGUMENTS } else { MYSQL_ARGUMENTS });
        match named.mode.as_deref() {
            Some("snapshot") => command.arg("--innodb-snapshot-isolation=ON"),
            Some("nosnapshot") => command.arg("--innodb-snapshot-isolation=OFF"),
            _ => &mut command,
        };
        // Last, because the last of two options wins.
        command.args(&named.server_options);
        command
    };
    let template = format!("{}-{}", install.engine, install.version);
    let stop_signal = Signal::KILL;
    let recipe = Recipe { install, template, initialise: &initialise, start: &start, stop_signal };
    let (server, (address, control)) = PrivateServer::start(&recipe, cache, |server| {
        let address = ServerAddress::loopback(server.port, "isolde", Some(&password));
        let control = check_ours(server, &address)?;
        Ok((address, control))
    })?;
    Ok(RunningServer { server, address, control })
}

/// Connects, and checks that the answering server is the one that was started.
fn check_ours(server: &PrivateServer, address: &ServerAddress) -> EngineResult<MySqlSession> {
    let mut control: MySqlSession =
        address.connect(None, &Arc::new(isolde_catalog::engines::profile("mysql", "")))?;
    let reported = PathBuf::from(query_text(&mut control, "select @@datadir")?);
    if reported != server.data {
        return Err(EngineError::Refused(format!(
            "port {} is answered by a server that Isolde did not start (its data is in {})",
            server.port,
            reported.display()
        )));
    }
    Ok(control)
}

/// The same for servers that do not report their data directory.
pub fn check_port(
    server: &PrivateServer,
    password: &Secret,
) -> EngineResult<(ServerAddress, MySqlSession)> {
    let address = ServerAddress::loopback(server.port, "root", Some(password));
    let profile = Arc::new(isolde_catalog::engines::profile("mysql", ""));
    let ours = || match server.owns_its_port() {
        true => Ok(()),
        false => Err(EngineError::Refused(format!(
            "port {} is answered by a server that Isolde did not start",
            server.port
        ))),
    };
    let mut control: MySqlSession = match address.connect(None, &profile) {
        Ok(control) => control,
        Err(error) => {
            // A version whose password cannot be set before it starts.
            let open = ServerAddress::loopback(server.port, "root", None).connect(None, &profile);
            let Ok(mut open): EngineResult<MySqlSession> = open else { return Err(error) };
            ours()?;
            let sql = format!("set password = '{}'", password.reveal());
            run_to_end(&mut open, &sql, ANSWER_LIMIT)?;
            address.connect(None, &profile)?
        }
    };
    ours()?;
    run_to_end(&mut control, "create database if not exists isolde", WORK_LIMIT)?;
    Ok((address, control))
}

pub fn write_init_file(data: &Path, sql: &str) -> PathBuf {
    let file = data.with_file_name("init.sql");
    // A failure shows when the server cannot read the file.
    let _ = write_for_server(&file, sql);
    file
}

fn common_arguments(install: &Install, data: &Path) -> Vec<String> {
    let folder = data.parent().unwrap_or(data);
    let mut arguments = vec![
        "--no-defaults".into(),
        format!("--datadir={}", data.display()),
        "--bind-address=127.0.0.1".into(),
        format!("--socket={}", folder.join("s").display()),
        format!("--pid-file={}", folder.join("pid").display()),
        // MariaDB deletes other servers' temporary tables from a shared
        // directory.
        format!("--tmpdir={}", folder.display()),
    ];
    arguments.extend(base_arguments(install));
    arguments
}

fn base_arguments(install: &Install) -> Vec<String> {
    if install.basedir == Path::new("/usr") {
        return Vec::new();
    }
    let share = install.basedir.join("share");
    let messages =
        [share.join("english"), share.join("mysql/english"), share.join("mariadb/english")]
            .into_iter()
            .find(|p| p.exists())
            .and_then(|p| p.parent().map(Path::to_path_buf))
            .unwrap_or(share);
    vec![
        format!("--basedir={}", install.basedir.display()),
        format!("--lc-messages-dir={}", messages.display()),
    ]
}

const MARIADB_ARGUMENTS: [&str; 11] = [
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--loose-debug-no-sync",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=3600",
    "--innodb-fast-shutdown=2",
    "--max-connections=300",
    "--loose-skip-sync-frm",
    "--performance-schema=OFF",
];

const MYSQL_ARGUMENTS: [&str; 11] = [
    "--loose-mysqlx=OFF",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-flush-method=nosync",
    "--innodb-buffer-pool-size=64M",
    "--innodb-lock-wait-timeout=3600",
    "--max-connections=300",
    "--loose-secure-file-priv=NULL",
    "--performance-schema=ON",
];

fn maria_init(install: &Install, data: &Path) -> Command {
    let base = &install.basedir;
    let script = install.init.clone().unwrap_or_else(|| base.join("bin/mariadb-install-db"));
    // A shell script, which finds the server below --basedir by itself.
    let mut command = program(&Install { launcher: Vec::new(), ..install.clone() }, &script);
    command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
    if base != Path::new("/usr") {
        command.arg(format!("--basedir={}", base.display()));
    }
    command.args(["--skip-name-resolve", "--force"]);
    command
}

fn mysql_init(install: &Install, data: &Path) -> Command {
    let mut command = program(install, &install.server);
    command.args(common_arguments(install, data)).arg("--initialize-insecure");
    command.args(["--innodb-flush-method=nosync", "--loose-secure-file-priv=NULL"]);
    command
}

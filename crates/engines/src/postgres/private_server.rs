//! Starts private PostgreSQL servers of any version.

use super::wire::PgSession;
use crate::connect::address::ServerAddress;
use crate::engine::*;
use crate::fetch::install::{Cache, Install};
use crate::secret::Secret;
use crate::server::{PrivateServer, Recipe, program, write_for_server};
use isolde_model::{Profile, Value};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A running server, with a first connection to Isolde's database on it.
pub(super) struct RunningServer {
    pub server: PrivateServer,
    pub address: ServerAddress,
    pub control: PgSession,
}

/// The file in a prepared data directory that holds the initial password of its
/// copies.
const FIRST_PASSWORD: &str = "isolde-password";

pub(super) fn start(
    install: &Install,
    cache: &Cache,
    profile: &Arc<Profile>,
) -> EngineResult<RunningServer> {
    // The authentication method that initdb writes into pg_hba.conf. The older
    // one accepts both kinds of stored passwords, and costs nothing to compute.
    let scram = major(install) >= SHORT_SCRAM;
    let method = if scram { "scram-sha-256" } else { "md5" };
    let initialise = |data: &Path| -> Vec<Command> {
        let file = data.with_file_name(FIRST_PASSWORD);
        // A failure shows when initdb cannot read the file.
        let _ = write_for_server(&file, Secret::random().reveal());
        let default_program = || install.server.with_file_name("initdb");
        let mut command = program(install, &install.init.clone().unwrap_or_else(default_program));
        command.arg("-D").arg(data).args(["-U", "isolde", "-A", method, "--no-locale"]);
        command.arg(format!("--pwfile={}", file.display())).args(["-E", "UTF8", "-N"]);
        // Only now, because initdb needs an empty directory.
        let mut keep = Command::new("mv");
        keep.arg(&file).arg(data);
        vec![command, keep]
    };
    let start = |data: &Path, port: u16| -> Command {
        // A server that cannot read this file reports it in its log.
        let _ = std::fs::write(data.join("postgresql.auto.conf"), CHANGEABLE_SETTINGS);
        let mut command = program(install, &install.server);
        command.arg("-D").arg(data).arg("-p").arg(port.to_string());
        for setting in PRIVATE_SETTINGS {
            command.arg("-c").arg(format!("{}={}", setting.0, setting.1));
        }
        command
    };
    let template = format!("postgres-{}-{method}", install.version);
    let stop_signal = Signal::QUIT;
    let recipe = Recipe { install, template, initialise: &initialise, start: &start, stop_signal };
    let password = Secret::random();
    let (server, (address, control)) = PrivateServer::start(&recipe, cache, |server| {
        let account =
            |password: &Secret| ServerAddress::loopback(server.port, "isolde", Some(password));
        let first = account(&first_password(&server.data)?);
        let address = account(&password);
        // The second account, if an earlier attempt has already changed the
        // password.
        let admin: EngineResult<PgSession> = first.connect(Some("postgres"), profile);
        let mut admin =
            admin.or_else(|e| address.connect(Some("postgres"), profile).map_err(|_| e))?;
        check_ours(server, &mut admin)?;
        run_to_end(&mut admin, "create database isolde", WORK_LIMIT)?;
        set_password(&mut admin, &password, scram)?;
        let control = address.connect(Some("isolde"), profile)?;
        Ok((address, control))
    })?;
    Ok(RunningServer { server, address, control })
}

/// From this version on the number of hash rounds is configurable. 4096 rounds
/// add no protection to a password drawn from 2^128.
const SHORT_SCRAM: u32 = 16;

fn major(install: &Install) -> u32 {
    install.version.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0)
}

fn first_password(data: &Path) -> EngineResult<Secret> {
    let file = data.join(FIRST_PASSWORD);
    let text = std::fs::read_to_string(&file)
        .map_err(|e| EngineError::Unreachable(format!("cannot read {}: {e}", file.display())))?;
    Ok(Secret::new(text))
}

fn check_ours(server: &PrivateServer, admin: &mut PgSession) -> EngineResult<()> {
    let shown = run_to_end(admin, "show data_directory", ANSWER_LIMIT)?;
    let data = Value::Text(server.data.display().to_string());
    let ours = matches!(&shown, Outcome::Rows { rows, .. }
        if rows.first().and_then(|r| r.first()) == Some(&data));
    if ours {
        return Ok(());
    }
    Err(EngineError::Refused(format!(
        "port {} is answered by a server that Isolde did not start",
        server.port
    )))
}

/// Sets a password of this server's own: the initial one is shared by all
/// copies of the data directory.
fn set_password(admin: &mut PgSession, password: &Secret, scram: bool) -> EngineResult<()> {
    let rounds = if scram { "set scram_iterations = 1; " } else { "" };
    let sql = format!("{rounds}alter role isolde password '{}'", password.reveal());
    match run_to_end(admin, &sql, ANSWER_LIMIT)? {
        Outcome::Error(error) => {
            Err(EngineError::Unreachable(format!("cannot set a password: {error}")))
        }
        _ => Ok(()),
    }
}

/// Durability off. Deadlocks are checked for after 1 ms and lock waits reported
/// to the client, so that the victim is always the session that closed the
/// cycle.
const PRIVATE_SETTINGS: [(&str, &str); 15] = [
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("fsync", "off"),
    // Compiling a query costs more than running it on a few rows.
    ("jit", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("max_connections", "300"),
    ("shared_buffers", "64MB"),
    ("max_prepared_transactions", "20"),
    ("max_wal_size", "256MB"),
    // In the data directory, so that a killed server leaves nothing behind.
    ("dynamic_shared_memory_type", "mmap"),
    ("deadlock_timeout", "1ms"),
    ("log_lock_waits", "on"),
    ("log_min_error_statement", "panic"),
    ("client_min_messages", "log"),
];

/// No autovacuum, whose locks depend on the clock. In a file, because settings
/// of the command line cannot be changed while the server runs, and specs need
/// the default.
const CHANGEABLE_SETTINGS: &str = "autovacuum = off\n";

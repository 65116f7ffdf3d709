//! Starts private PostgreSQL servers of any version.

use super::place::Place;
use super::wire::PgSession;
use crate::connect::secret::Secret;
use crate::engine::*;
use crate::fetch::install::{Cache, Install};
use crate::server::{PrivateServer, Recipe, program, write_for_server};
use isolde_core::{Profile, Value};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A server that answers, with a first connection to Isolde's database on it.
pub(super) struct Started {
    pub server: PrivateServer,
    pub place: Place,
    pub control: PgSession,
}

/// In a prepared data directory: the password that its copies start with.
const FIRST_PASSWORD: &str = "isolde-password";

pub(super) fn start(
    install: &Install,
    cache: &Cache,
    profile: &Arc<Profile>,
) -> EngineResult<Started> {
    // What initdb writes into pg_hba.conf. The older one accepts both kinds of
    // stored passwords, and costs nothing to compute.
    let scram = major(install) >= SHORT_SCRAM;
    let method = if scram { "scram-sha-256" } else { "md5" };
    let initialise = |data: &Path| -> Vec<Command> {
        let file = data.with_file_name(FIRST_PASSWORD);
        // A failure shows when initdb cannot read it.
        let _ = write_for_server(&file, Secret::random().reveal());
        let beside = || install.server.with_file_name("initdb");
        let mut command = program(install, &install.init.clone().unwrap_or_else(beside));
        command.arg("-D").arg(data).args(["-U", "isolde", "-A", method, "--no-locale"]);
        command.arg(format!("--pwfile={}", file.display())).args(["-E", "UTF8", "-N"]);
        // Only now: initdb wants an empty directory.
        let mut keep = Command::new("mv");
        keep.arg(&file).arg(data);
        vec![command, keep]
    };
    let start = |data: &Path, port: u16| -> Command {
        // A server that cannot read this would say so in its log.
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
    let (server, (place, control)) = PrivateServer::start(&recipe, cache, |server| {
        let place = |password: Secret| Place {
            host: "127.0.0.1".into(),
            port: server.port,
            user: "isolde".into(),
            password: Some(password),
            tls: None,
        };
        let first = place(first_password(&server.data)?);
        let place = place(password.clone());
        // The second where an earlier try came as far as changing it.
        let door = first.connect("postgres", profile);
        let mut door = door.or_else(|e| place.connect("postgres", profile).map_err(|_| e))?;
        check_ours(server, &mut door)?;
        run_to_end(&mut door, "create database isolde", WORK_LIMIT)?;
        set_password(&mut door, &password, scram)?;
        let control = place.connect("isolde", profile)?;
        Ok((place, control))
    })?;
    Ok(Started { server, place, control })
}

/// From this version on the work of a login can be set, and 4096 rounds of
/// hashing protect nothing that was drawn from 2^128 passwords.
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

fn check_ours(server: &PrivateServer, door: &mut PgSession) -> EngineResult<()> {
    let shown = run_to_end(door, "show data_directory", ANSWER_LIMIT)?;
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

/// Each server gets a password of its own: the first one is that of all
/// copies of the data directory.
fn set_password(door: &mut PgSession, password: &Secret, scram: bool) -> EngineResult<()> {
    let rounds = if scram { "set scram_iterations = 1; " } else { "" };
    let sql = format!("{rounds}alter role isolde password '{}'", password.reveal());
    match run_to_end(door, &sql, ANSWER_LIMIT)? {
        Outcome::Error(error) => {
            Err(EngineError::Unreachable(format!("cannot set a password: {error}")))
        }
        _ => Ok(()),
    }
}

/// Durability off; deadlocks looked for after 1 ms, and told to the client, so that the victim
/// is always the session that closed the circle.
const PRIVATE_SETTINGS: [(&str, &str); 14] = [
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("fsync", "off"),
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

/// No autovacuum, whose locks would come and go by the clock. In a file,
/// because what the command line says cannot be changed while the server runs,
/// and specs need the default.
const CHANGEABLE_SETTINGS: &str = "autovacuum = off\n";

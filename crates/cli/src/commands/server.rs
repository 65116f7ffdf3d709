//! `isolde server`: starts a private server to connect to, and removes it at the
//! end.

use super::Outcome;
use super::context::Context;
use crate::args::server::PrivateServerArgs;
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use crate::interrupt;
use isolde_engines::connect::client_command::ClientCommand;
use isolde_engines::engine::{Engine, Outcome as Answer};
use isolde_engines::target::Target;
use isolde_model::case;
use isolde_sql as sql;
use serde_json::json;
use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub fn run(context: &Context<'_>, args: &PrivateServerArgs) -> Outcome {
    let target = context.parse_target(&args.target)?;
    let engine = start(context, &target, args.setup.as_deref())?;
    let client = ClientCommand::of(engine.as_ref());
    if context.json {
        context.console.print(&as_json(engine.as_ref(), client.as_ref()).to_string());
    } else {
        introduce(context, engine.as_ref(), client.as_ref());
        if let Some(client) = client {
            if !client.is_installed() {
                context.console.note(&format!("({})", client.missing()));
            }
            if let Some((variable, _)) = &client.password
                && !client.shows_password
            {
                context.console.note(&format!("The client reads the password from {variable}."));
            }
        }
    }
    wait_for_end(context);
    Ok(ExitCode::Success)
}

/// Opens the target, which must be one that a client can connect to, and loads
/// the setup.
pub fn start(
    context: &Context<'_>,
    target: &Target,
    setup: Option<&Path>,
) -> Result<Box<dyn Engine>, Failure> {
    // Read first, so that a bad file is reported before a server is started.
    let script = setup.map(|path| read_text(path).map(|text| (path, text))).transpose()?;
    let mut engine = context.open_engine(target)?;
    if engine.client().is_none() && engine.database_file().is_none() {
        let message = format!("no client can connect to {target}: it runs inside a driver");
        return Err(Failure::new(ExitCode::Usage, message));
    }
    if let Some((path, text)) = script {
        load(engine.as_mut(), path, &text)?;
    }
    Ok(engine)
}

/// Runs an SQL script, or the setup of a case file.
fn load(engine: &mut dyn Engine, path: &Path, text: &str) -> Result<(), Failure> {
    let bad = |message: String| {
        Failure::new(ExitCode::BadInput, format!("{}: {message}", path.display()))
    };
    let first = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with('#'));
    let info = engine.info().clone();
    let statements: Vec<(usize, String)> = if first.is_some_and(|l| l.starts_with("case:")) {
        let case = case::parse(text).map_err(|e| bad(e.to_string()))?;
        let setup = case.setup_for(&info.engine, &info.version);
        setup.iter().map(|s| (s.line.0, s.sql.clone())).collect()
    } else {
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        sql::split(text).statements.into_iter().map(|(at, sql)| (line(at), sql)).collect()
    };
    for (line, sql) in statements {
        if let Answer::Error(error) = engine.control(&sql)? {
            return Err(bad(format!("line {line}: {error}\n  {sql}")));
        }
    }
    Ok(())
}

fn as_json(engine: &dyn Engine, client: Option<&ClientCommand>) -> serde_json::Value {
    let info = engine.info();
    let mut all = json!({"target": info.target, "engine": info.engine, "version": info.version});
    if let Some(place) = engine.client() {
        all["host"] = json!(place.host);
        all["port"] = json!(place.port);
        all["user"] = json!(place.user);
        all["database"] = json!(place.database);
        if let Some(password) = place.password.filter(|_| place.private) {
            all["password"] = json!(password.reveal());
        }
    }
    if let Some(file) = engine.database_file() {
        all["file"] = json!(file.display().to_string());
    }
    all["client"] = json!(client.map(ClientCommand::line));
    all
}

/// Prints how to connect.
pub fn introduce(context: &Context<'_>, engine: &dyn Engine, client: Option<&ClientCommand>) {
    let console = context.console;
    let info = engine.info();
    console.print(&console.paint(Style::Strong, &format!("{} {}", info.engine, info.version)));
    let row = |name: &str, value: &str| console.print(&format!("  {name:<9} {value}"));
    if let Some(place) = engine.client() {
        row("host", &place.host);
        row("port", &place.port.to_string());
        row("user", &place.user);
        if let Some(password) = place.password.as_ref().filter(|_| place.private) {
            row("password", password.reveal());
        }
        row("database", &place.database);
    }
    if let Some(file) = engine.database_file() {
        row("file", &file.display().to_string());
    }
    if let Some(client) = client {
        row("client", &client.line());
    }
}

/// Waits for Enter or Ctrl-C on a terminal, and for a signal elsewhere, so that
/// a script can keep the server in the background whatever its stdin is.
pub fn wait_for_end(context: &Context<'_>) {
    let entered = Arc::new(AtomicBool::new(false));
    if stdin().is_terminal() {
        context.console.note("Press Enter or Ctrl-C to stop and remove it.");
        let entered = Arc::clone(&entered);
        // Never joined: it ends with the process.
        std::thread::spawn(move || {
            let _ = stdin().read_line(&mut String::new());
            entered.store(true, Ordering::Relaxed);
        });
    } else {
        context.console.note("Ctrl-C or SIGTERM stops and removes it.");
    }
    while !interrupt::is_requested() && !entered.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    if stdin().is_terminal() && interrupt::is_requested() {
        // The terminal shows ^C; the next output starts a new line.
        eprintln!();
    }
}

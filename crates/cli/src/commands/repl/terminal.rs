//! The prompt. While it waits for a line, a second thread polls the running
//! statements and prints their results above it.

use super::complete::Completion;
use super::{Flow, Repl};
use crate::commands::Outcome;
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use isolde_engines::runner::interactive::SessionState;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor, ExternalPrinter};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the sessions are polled while the prompt waits.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

pub fn run(repl: Repl<'_>) -> Outcome {
    let failed = |e: ReadlineError| Failure::new(ExitCode::Internal, format!("the prompt: {e}"));
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<Completion, FileHistory> =
        Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Completion::new(repl.words.clone())));
    let history = history_file();
    if let Some(file) = &history {
        let _ = editor.load_history(file);
    }
    let printer = editor.create_external_printer().map_err(failed)?;
    welcome(&repl);
    let shown = Terminal::now();
    let shared = Mutex::new(repl);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&shared, printer, &done, &shown));
        let outcome = read_lines(&shared, &mut editor);
        done.store(true, Ordering::Relaxed);
        if let Some(file) = &history {
            // A line history that cannot be saved is not an error.
            let _ = editor.append_history(file);
        }
        outcome.map_err(failed)
    })
}

fn read_lines(
    shared: &Mutex<Repl<'_>>,
    editor: &mut Editor<Completion, FileHistory>,
) -> Result<ExitCode, ReadlineError> {
    let mut text = String::new();
    loop {
        let prompt = match text.is_empty() {
            true => prompt(&shared.lock().expect("the other thread does not panic")),
            false => ("...> ".to_string(), "...> ".to_string()),
        };
        match editor.readline(&prompt) {
            Ok(typed) => {
                let _ = editor.add_history_entry(&typed);
                // Pasted text can have many lines.
                for line in typed.split('\n') {
                    // A Ctrl-C just before the prompt was meant for the last statement.
                    interrupt::clear();
                    let mut repl = shared.lock().expect("the other thread does not panic");
                    if repl.take_line(&mut text, line) == Flow::Quit {
                        return Ok(ExitCode::Success);
                    }
                }
            }
            Err(ReadlineError::Interrupted) => {
                if text.is_empty() {
                    println!("(Ctrl-D or .quit exits)");
                }
                text.clear();
            }
            Err(ReadlineError::Eof) => return Ok(ExitCode::Success),
            Err(ReadlineError::Signal(_)) => {}
            // The terminal was closed.
            Err(_) if interrupt::is_exit_requested() => return Ok(ExitCode::Interrupted),
            Err(error) => return Err(error),
        }
    }
}

/// The plain and the coloured prompt. `*` marks an open transaction and `!` a
/// failed one.
fn prompt(repl: &Repl<'_>) -> (String, String) {
    let lab = repl.lab.as_ref().expect("present until the end");
    let state = lab.sessions().into_iter().find(|s| s.name == repl.current).map(|s| s.state);
    let (mark, style) = match state {
        Some(SessionState::Open) => ("*", Style::Good),
        Some(SessionState::Failed | SessionState::Gone) => ("!", Style::Bad),
        Some(SessionState::Waiting { .. } | SessionState::Working { .. }) => ("…", Style::Doubt),
        _ => ("", Style::Strong),
    };
    let name = format!("{}{mark}>", repl.current);
    let console = repl.context.console;
    let painted = console.rendered(&console.paint(style, &name));
    (format!("{name} "), format!("{painted} "))
}

fn watch(
    shared: &Mutex<Repl<'_>>,
    mut printer: impl ExternalPrinter,
    done: &AtomicBool,
    shown: &Terminal,
) {
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(POLL_INTERVAL);
        if interrupt::is_exit_requested() {
            // The other thread is blocked in the prompt and cannot be woken:
            // stop the servers, restore the terminal, and exit here.
            drop(shared.lock().expect("the other thread does not panic").lab.take());
            shown.restore();
            std::process::exit(ExitCode::Interrupted as i32);
        }
        let Ok(mut repl) = shared.try_lock() else { continue };
        if !repl.lab().anything_in_flight() {
            continue;
        }
        // An error is reported again, with its message, at the next statement.
        let _ = repl.lab().poll();
        let news = repl.news();
        if !news.is_empty() {
            let _ = printer.print(repl.context.console.rendered(&news));
        }
    }
}

fn welcome(repl: &Repl<'_>) {
    let console = repl.context.console;
    let lab = repl.lab.as_ref().expect("present until the end");
    let info = lab.engine().info();
    let dim = |text: &str| console.paint(Style::Dim, text);
    let strong = |text: &str| console.paint(Style::Strong, text);
    console.comment(&format!(
        "{} at {}, empty. {}",
        strong(&format!("{} {}", info.engine, info.version)),
        lab.level_of("s1").to_string().to_lowercase(),
        dim(".help shows the commands, Tab completes, Ctrl-D exits. Try:")
    ));
    console.comment("  create table t (id int primary key, v int); insert into t values (1, 10);");
    console.comment("  begin; update t set v = 11 where id = 1;");
    console.comment(&format!(
        "  s2> update t set v = 12 where id = 1;   {}",
        dim("blocks until s1 commits")
    ));
}

/// The file of the line history, in the state directory of XDG.
fn history_file() -> Option<PathBuf> {
    let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = var("XDG_STATE_HOME").or_else(|| var("HOME").map(|h| h.join(".local/state")))?;
    let folder = state.join("isolde");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("repl-history"))
}

/// The terminal's settings before the prompt changed them.
struct Terminal(Option<Termios>);

impl Terminal {
    fn now() -> Terminal {
        Terminal(tcgetattr(std::io::stdin()).ok())
    }

    fn restore(&self) {
        if let Some(settings) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, settings);
        }
    }
}

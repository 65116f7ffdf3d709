//! `isolde repl`: sends typed statements to sessions and shows their results.

mod complete;
mod dot;
mod line;
mod show;
mod terminal;

use super::Outcome;
use super::context::Context;
use crate::args::repl::ReplArgs;
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use complete::Words;
use isolde_engines::engine::Outcome as Answer;
use isolde_engines::runner::RunError;
use isolde_engines::runner::interactive::{Interactive, SessionState};
use isolde_engines::target::Target;
use isolde_model::Level;
use isolde_sql as sql;
use isolde_sql::Kind;
use line::Input;
use show::EventPrinter;
use std::io::{BufRead, IsTerminal, stdin, stdout};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long the prompt waits for a statement that is running and not blocked.
const PATIENCE: Duration = Duration::from_millis(700);

pub fn run(context: &Context<'_>, args: &ReplArgs) -> Outcome {
    let target = context.parse_target(&args.target)?;
    let interactive = stdin().is_terminal() && stdout().is_terminal();
    let patience = interactive.then_some(PATIENCE);
    let mut repl = Repl::open(context, target, patience)?;
    if interactive {
        return terminal::run(repl);
    }
    repl.read_pipe()
}

/// What to do after a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    More,
    Quit,
}

struct Repl<'a> {
    context: &'a Context<'a>,
    target: Target,
    /// Present until the end; another thread takes it to end the servers.
    lab: Option<Interactive>,
    patience: Option<Duration>,
    /// The session of statements that name none.
    current: String,
    printer: EventPrinter,
    words: Arc<Mutex<Words>>,
    worst: ExitCode,
}

impl<'a> Repl<'a> {
    fn open(
        context: &'a Context<'a>,
        target: Target,
        patience: Option<Duration>,
    ) -> Result<Repl<'a>, Failure> {
        let lab = open_lab(context, &target, patience)?;
        let words = Arc::new(Mutex::new(Words::new(lab.engine().profile().level_names())));
        Ok(Repl {
            context,
            target,
            lab: Some(lab),
            patience,
            current: "s1".into(),
            printer: EventPrinter::default(),
            words,
            worst: ExitCode::Success,
        })
    }

    fn lab(&mut self) -> &mut Interactive {
        self.lab.as_mut().expect("present until the end")
    }

    /// Runs the commands of a pipe or a file, without a prompt.
    fn read_pipe(&mut self) -> Outcome {
        let mut text = String::new();
        for line in stdin().lock().lines() {
            let line = line.map_err(|e| {
                Failure::new(ExitCode::BadInput, format!("cannot read the commands: {e}"))
            })?;
            if self.take_line(&mut text, &line) == Flow::Quit {
                return self.end_pipe();
            }
            if interrupt::is_requested() {
                return Ok(ExitCode::Interrupted);
            }
        }
        if !text.trim().is_empty() {
            self.wrong("the last statement has no ;");
        }
        self.end_pipe()
    }

    /// Adds a line to the text before it, and executes the text once it is
    /// complete.
    fn take_line(&mut self, text: &mut String, line: &str) -> Flow {
        // After a forgotten ; a line such as .help, or one for a session, is
        // not part of the statement.
        let command = line.strip_prefix('.').is_some_and(|l| l.starts_with(char::is_alphabetic));
        let addressed = !text.is_empty() && {
            let there: Vec<String> = self.lab().sessions().into_iter().map(|s| s.name).collect();
            line::is_addressed(line, &there)
        };
        if (command || addressed) && !text.is_empty() {
            self.print("(dropped the statement without a ;)");
            text.clear();
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
        let flow = self.execute(text);
        if flow != Flow::More {
            text.clear();
        }
        flow
    }

    fn end_pipe(&mut self) -> Outcome {
        if self.context.json {
            let history = serde_json::json!(self.lab().history());
            self.context.console.print(&history.to_string());
        }
        Ok(self.worst)
    }

    /// Executes a command or statements. `More` if the text is incomplete.
    fn execute(&mut self, text: &str) -> Flow {
        match line::parse(text) {
            Input::Nothing => {}
            Input::Unfinished => return Flow::More,
            Input::Wrong(message) => self.wrong(&message),
            Input::Dot(name, words) => return self.dot(&name, &words),
            Input::Switch(session) => self.current = session,
            Input::Setup(statements) => self.set_up(&statements),
            Input::Statements { session, level, anyway, statements } => {
                let session = session.unwrap_or_else(|| self.current.clone());
                for (i, sql) in statements.iter().enumerate() {
                    self.submit(&session, level.filter(|_| i == 0), anyway, sql);
                }
                // A blocked session takes no statements: the prompt stays with
                // the previous session, which may be the lock holder.
                if !self.is_busy(&session) {
                    self.current = session;
                }
            }
        }
        Flow::Next
    }

    fn submit(&mut self, session: &str, level: Option<Level>, anyway: bool, sql: &str) {
        let outcome = self.lab().submit(session, level, anyway, sql);
        self.print_news();
        self.report(outcome);
        self.print_unfinished(session);
        self.learn_words(sql);
    }

    fn is_busy(&mut self, session: &str) -> bool {
        let busy = |s: &SessionState| {
            matches!(s, SessionState::Working { .. } | SessionState::Waiting { .. })
        };
        self.lab().sessions().iter().any(|s| s.name == session && busy(&s.state))
    }

    /// Prints the state of a statement that has no result yet.
    fn print_unfinished(&mut self, session: &str) {
        let found = self.lab().sessions().into_iter().find(|s| s.name == session);
        let Some(view) = found else { return };
        let text = match (&view.state, view.queued) {
            (SessionState::Working { .. }, 0) => "is running; the result is shown when it arrives",
            (SessionState::Waiting { .. } | SessionState::Working { .. }, 1..) => {
                "has not finished its last statement; this one is queued"
            }
            _ => return,
        };
        let line = format!("{session:>6}  {text}");
        let line = self.context.console.paint(Style::Doubt, &line);
        self.print(&line);
    }

    fn set_up(&mut self, statements: &[String]) {
        if !self.lab().case().steps.is_empty() {
            return self.wrong("setup is only possible before the first step; .reset starts over");
        }
        for sql in statements {
            match self.lab().set_up(sql) {
                Ok(Answer::Error(error)) => {
                    let text = format!(" setup  error {error}");
                    let text = self.context.console.paint(Style::Bad, &text);
                    self.print(&text);
                }
                Ok(Answer::Affected(count)) => self.print(&format!(" setup  {count} rows changed")),
                Ok(_) => self.print(" setup  ok"),
                Err(error) => self.report(Err(error)),
            }
            self.learn_words(sql);
        }
    }

    fn learn_words(&mut self, sql: &str) {
        let sessions: Vec<String> = self.lab().sessions().into_iter().map(|s| s.name).collect();
        // A query for the tables while a statement is blocked could block, too.
        let is_safe = sql::kind(sql) == Kind::Ddl && !self.lab().anything_in_flight();
        let tables = if is_safe { self.lab().tables().ok() } else { None };
        let mut words = self.words.lock().expect("no thread panics while it holds the words");
        words.sessions = sessions;
        if let Some(tables) = tables {
            words.tables = tables;
        }
    }

    fn print_news(&mut self) {
        let news = self.news();
        if !news.is_empty() {
            self.print(news.trim_end_matches('\n'));
        }
    }

    /// The events since the last call, as text.
    fn news(&mut self) -> String {
        let lab = self.lab.as_ref().expect("present until the end");
        self.printer.news(self.context.console, lab)
    }

    fn report(&mut self, outcome: Result<(), RunError>) {
        match outcome {
            Ok(()) => {}
            Err(RunError::Interrupted) => {
                interrupt::clear();
                self.print("The statement keeps running; .cancel SESSION ends it.");
            }
            Err(error) => self.fail(Failure::from(error)),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.worst = self.worst.worse(failure.code);
        self.context.console.error(&failure.message);
    }

    fn wrong(&mut self, message: &str) {
        self.fail(Failure::new(ExitCode::Usage, message));
    }

    /// Prints a text, unless JSON was asked for.
    fn print(&self, text: &str) {
        if !self.context.json {
            self.context.console.print(text);
        }
    }
}

fn open_lab(
    context: &Context<'_>,
    target: &Target,
    patience: Option<Duration>,
) -> Result<Interactive, Failure> {
    let mut lab = Interactive::new(context.open_engine(target)?)?;
    lab.patience = patience;
    lab.interrupted = interrupt::is_requested;
    Ok(lab)
}

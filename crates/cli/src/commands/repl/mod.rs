//! `isolde repl`: statements into sessions, one at a time, and what becomes of
//! each.

mod complete;
mod dot;
mod line;
mod show;
mod terminal;

use super::{Context, Outcome};
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use complete::Words;
use isolde_core::Level;
use isolde_core::sql::{self, Kind};
use isolde_engines::engine::Outcome as Answer;
use isolde_engines::runner::RunError;
use isolde_engines::runner::interactive::{Interactive, SessionState};
use isolde_engines::target::Target;
use line::Input;
use show::Shower;
use std::io::{BufRead, IsTerminal, stdin, stdout};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a statement that neither ends nor waits keeps the prompt away.
const PATIENCE: Duration = Duration::from_millis(700);

pub fn run(context: &Context<'_>, target: &str) -> Outcome {
    let target = context.parse_target(target)?;
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
    /// There until the end; taken to end it from another thread.
    lab: Option<Interactive>,
    patience: Option<Duration>,
    /// Where statements go that name no session.
    current: String,
    shower: Shower,
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
            shower: Shower::default(),
            words,
            worst: ExitCode::Fine,
        })
    }

    fn lab(&mut self) -> &mut Interactive {
        self.lab.as_mut().expect("it is there until the end")
    }

    /// Commands from a pipe or a file: no prompt, only what happens.
    fn read_pipe(&mut self) -> Outcome {
        let mut text = String::new();
        for line in stdin().lock().lines() {
            let line = line.map_err(|e| {
                Failure::new(ExitCode::BadInput, format!("cannot read the commands: {e}"))
            })?;
            if self.take_line(&mut text, &line) == Flow::Quit {
                return self.end_pipe();
            }
            if interrupt::asked() {
                return Ok(ExitCode::Interrupted);
            }
        }
        if !text.trim().is_empty() {
            self.wrong("the last statement lacks its ;");
        }
        self.end_pipe()
    }

    /// Adds a line to the text before it, and does what that asks for as soon
    /// as it is complete.
    fn take_line(&mut self, text: &mut String, line: &str) -> Flow {
        // Who forgot a ; and types .help should get help, not more SQL.
        // The same for a line that goes to a session.
        let command = line.strip_prefix('.').is_some_and(|l| l.starts_with(char::is_alphabetic));
        let addressed = !text.is_empty() && {
            let there: Vec<String> = self.lab().sessions().into_iter().map(|s| s.name).collect();
            line::is_addressed(line, &there)
        };
        if (command || addressed) && !text.is_empty() {
            self.say("(the statement without its ; is dropped)");
            text.clear();
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
        let flow = self.take(text);
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

    /// Does what the text asks for. `More` when it is not complete yet.
    fn take(&mut self, text: &str) -> Flow {
        match line::read(text) {
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
                // Who waits can take nothing more: the prompt stays with the
                // session that had it, which may well be the one in the way.
                if !self.is_busy(&session) {
                    self.current = session;
                }
            }
        }
        Flow::Next
    }

    fn submit(&mut self, session: &str, level: Option<Level>, anyway: bool, sql: &str) {
        let outcome = self.lab().submit(session, level, anyway, sql);
        self.tell_news();
        self.report(outcome);
        self.tell_unfinished(session);
        self.learn_words(sql);
    }

    fn is_busy(&mut self, session: &str) -> bool {
        let busy = |s: &SessionState| {
            matches!(s, SessionState::Working { .. } | SessionState::Waiting { .. })
        };
        self.lab().sessions().iter().any(|s| s.name == session && busy(&s.state))
    }

    /// Says what became of a statement that has no outcome yet.
    fn tell_unfinished(&mut self, session: &str) {
        let found = self.lab().sessions().into_iter().find(|s| s.name == session);
        let Some(view) = found else { return };
        let text = match (&view.state, view.queued) {
            (SessionState::Working { .. }, 0) => "works on it; the answer is shown when it comes",
            (SessionState::Waiting { .. } | SessionState::Working { .. }, 1..) => {
                "has not finished its last statement; this one goes out then"
            }
            _ => return,
        };
        let line = format!("{session:>6}  {text}");
        let line = self.context.console.paint(Style::Doubt, &line);
        self.say(&line);
    }

    fn set_up(&mut self, statements: &[String]) {
        if !self.lab().case().steps.is_empty() {
            return self.wrong("the setup comes before the first step; .reset starts over");
        }
        for sql in statements {
            match self.lab().set_up(sql) {
                Ok(Answer::Error(error)) => {
                    let text = format!(" setup  error {error}");
                    let text = self.context.console.paint(Style::Bad, &text);
                    self.say(&text);
                }
                Ok(Answer::Affected(count)) => self.say(&format!(" setup  {count} rows changed")),
                Ok(_) => self.say(" setup  ok"),
                Err(error) => self.report(Err(error)),
            }
            self.learn_words(sql);
        }
    }

    fn learn_words(&mut self, sql: &str) {
        let sessions: Vec<String> = self.lab().sessions().into_iter().map(|s| s.name).collect();
        // Asking for tables while somebody waits could itself come to wait.
        let asks = sql::kind(sql) == Kind::Ddl && !self.lab().anything_in_flight();
        let tables = if asks { self.lab().tables().ok() } else { None };
        let mut words = self.words.lock().expect("nobody panics with the words");
        words.sessions = sessions;
        if let Some(tables) = tables {
            words.tables = tables;
        }
    }

    fn tell_news(&mut self) {
        let news = self.news();
        if !news.is_empty() {
            self.say(news.trim_end_matches('\n'));
        }
    }

    /// What has happened since it was last told.
    fn news(&mut self) -> String {
        let lab = self.lab.as_ref().expect("it is there until the end");
        self.shower.news(self.context.console, lab)
    }

    fn report(&mut self, outcome: Result<(), RunError>) {
        match outcome {
            Ok(()) => {}
            Err(RunError::Interrupted) => {
                interrupt::forget();
                self.say("Left to itself; .cancel SESSION ends its statement.");
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

    fn say(&self, text: &str) {
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
    context.console.progress(&format!("starting {target}"));
    let engine = target.open(&context.options);
    context.console.end_progress();
    let mut lab = Interactive::new(engine?)?;
    lab.patience = patience;
    lab.interrupted = interrupt::asked;
    Ok(lab)
}

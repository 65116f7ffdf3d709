//! The commands that start with a dot.

use super::show::{self, EventPrinter};
use super::{Flow, Repl, open_lab};
use crate::commands::{explain, matrix, replay};
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use crate::interrupt;
use crate::shell::own_name;
use crate::table::layout;
use isolde_engines::engine::Outcome as Answer;
use isolde_hunt::executor::Executor;
use isolde_model::case;
use isolde_model::case::Case;
use isolde_model::transcript::summary;
use isolde_model::{Level, value};
use isolde_reference::CitedRule;
use std::path::Path;

/// Name, arguments, and help of each command.
pub const COMMANDS: [(&str, &str, &str); 15] = [
    ("sessions", "", "the state of each session, and which session blocks it"),
    ("level", "[s1] LEVEL", "set the level of new transactions"),
    ("schedule", "", "the steps so far, with their results"),
    ("why", "", "explain each result by the engine's rules"),
    ("save", "FILE", "write the steps as a case file for isolde replay"),
    ("load", "FILE", "start over with a case file, step by step"),
    ("replay", "FILE", "run a case file on a separate database"),
    ("tables", "", "the tables and their committed rows"),
    ("cancel", "s1", "end the blocked or running statement of a session"),
    ("reset", "", "start over with an empty database and no sessions"),
    ("target", "TARGET", "start over on another target: postgres, mariadb@11.4, …"),
    ("matrix", "", "the anomalies that each level allows"),
    ("levels", "", "the isolation levels, and how the engine implements them"),
    ("help", "", "show this help"),
    ("quit", "", "exit (also Ctrl-D)"),
];

/// The only command that begins with the name, else the name.
fn full_name(name: &str) -> &str {
    let mut fitting = COMMANDS.iter().map(|(known, ..)| *known).filter(|k| k.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => only,
        _ => name,
    }
}

impl Repl<'_> {
    pub(super) fn dot(&mut self, name: &str, words: &[String]) -> Flow {
        let first = words.first().map(String::as_str);
        let name = full_name(name);
        let file = words.join(" ");
        let file = Path::new(&file);
        match (name, first) {
            ("quit" | "exit", _) => return Flow::Quit,
            ("help", _) => self.help(),
            ("sessions", _) => {
                let lab = self.lab.as_ref().expect("present until the end");
                self.print(&show::sessions(self.context.console, lab));
            }
            ("level", Some(_)) => self.level(words),
            ("levels" | "level", _) => self.levels(),
            ("schedule", _) => self.schedule(),
            ("why", _) => self.why(),
            ("tables", _) => self.tables(),
            ("reset", _) => self.reset(),
            ("cancel", Some(session)) => self.cancel(session),
            ("save", Some(_)) => self.save(file),
            ("load", Some(_)) => self.load(file),
            ("target", Some(target)) => self.change_target(target),
            ("replay", Some(_)) => {
                let files = [file.to_path_buf()];
                let targets = [self.target.clone()];
                let outcome = replay::replay(self.context, &files, &targets, None, None);
                self.end_command(outcome);
            }
            ("matrix", _) => {
                let targets = [self.target.clone()];
                let outcome = matrix::run_on(self.context, &targets, None, None);
                self.end_command(outcome);
            }
            _ => match COMMANDS.iter().find(|(known, ..)| *known == name) {
                Some((name, arguments, _)) => self.wrong(&format!("usage: .{name} {arguments}")),
                None => self.wrong(&format!("unknown command .{name}; .help lists all")),
            },
        }
        Flow::Next
    }

    fn end_command(&mut self, outcome: Result<ExitCode, Failure>) {
        interrupt::clear();
        match outcome {
            Ok(code) => self.worst = self.worst.worse(code),
            Err(failure) => self.fail(failure),
        }
    }

    fn help(&mut self) {
        let mut rows: Vec<Vec<String>> = [
            ("begin;", "send to the session of the prompt"),
            ("s2> select * from t;", "send to s2, which opens when first named (also s2: …)"),
            ("s1(serializable)> begin;", "begin at another level"),
            ("setup> create table …;", "set up, before the first step"),
        ]
        .map(|(what, does)| vec![what.to_string(), does.to_string()])
        .into();
        rows.push(vec![String::new(), String::new()]);
        for (name, arguments, does) in COMMANDS {
            rows.push(vec![format!(".{name} {arguments}"), does.to_string()]);
        }
        let console = self.context.console;
        let text = layout(&rows, 72, &|_, column, text| match column {
            0 => console.paint(Style::Strong, text),
            _ => text.to_string(),
        });
        self.print(text.trim_end());
        self.print("A statement ends with ; and may span several lines. Ctrl-C drops the line.");
    }

    fn level(&mut self, words: &[String]) {
        let whole = words.join(" ");
        let (session, level) = match whole.parse::<Level>() {
            Ok(level) => (None, Ok(level)),
            Err(_) if words.len() > 1 => (Some(words[0].as_str()), words[1..].join(" ").parse()),
            Err(error) => (None, Err(error)),
        };
        let level: Level = match level {
            Ok(level) => level,
            Err(error) => return self.wrong(&error.to_string()),
        };
        match self.lab().set_level(session, level) {
            Ok(()) => {
                let of = session.map_or(String::new(), |s| format!(" of {s}"));
                self.print(&format!("New transactions{of} begin at {level}."));
            }
            Err(error) => self.report(Err(error)),
        }
    }

    fn levels(&mut self) {
        let profile = self.lab().engine().profile().clone();
        let current = self.current.clone();
        let next = self.lab().level_of(&current);
        let rows: Vec<Vec<String>> = profile
            .levels
            .iter()
            .map(|p| {
                let mark = if p.level == next {
                    format!("next transaction of {current}")
                } else {
                    String::new()
                };
                vec![p.level.to_string().to_lowercase(), p.level.short().into(), p.by.clone(), mark]
            })
            .collect();
        self.print(layout(&rows, 60, &|_, _, text| text.to_string()).trim_end());
    }

    fn schedule(&mut self) {
        let lab = self.lab();
        let case = lab.case();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for statement in case.setups.iter().flat_map(|s| &s.statements) {
            rows.push(vec![format!("setup> {};", statement.sql.replace('\n', " ")), "ok".into()]);
        }
        for (i, step) in case.steps.iter().enumerate() {
            let text = format!("{} {};", step.short_prompt(), step.sql.replace('\n', " "));
            rows.push(vec![text, summary(lab.history(), i)]);
        }
        if rows.is_empty() {
            return self.print("No steps yet.");
        }
        let console = self.context.console;
        let text = layout(&rows, 60, &|_, column, text| match column {
            1 if text.contains("error") => console.paint(Style::Bad, text),
            1 if text.contains("waits") => console.paint(Style::Doubt, text),
            _ => text.to_string(),
        });
        self.print(text.trim_end());
    }

    /// Explains the steps so far. Statements are evaluated in a separate
    /// database, since sessions here may hold locks.
    fn why(&mut self) {
        let lab = self.lab();
        let (case, history) = (lab.case().clone(), lab.history().clone());
        let level = case.level.unwrap_or(lab.engine().profile().default_level);
        if case.steps.is_empty() {
            return self.print("No steps yet.");
        }
        let account = self.context.open(&self.target).and_then(|runner| {
            explain::explain_history(&mut Executor::new(runner), &case, level, &history)
        });
        let account = match account {
            Ok(account) => account,
            Err(failure) => return self.fail(failure),
        };
        let console = self.context.console;
        for line in explain::show::step_lines(console, &account.steps, &account.rules) {
            self.print(&line);
        }
        self.print(&explain::show::account_verdict(console, &account));
        let rules: Vec<&CitedRule> = account.rules.iter().collect();
        for line in explain::show::footnotes(console, &rules) {
            self.print(&line);
        }
    }

    /// Prints the rows of all tables as a new transaction would see them.
    fn tables(&mut self) {
        let tables = match self.lab().tables() {
            Ok(tables) => tables,
            Err(error) => return self.fail(error.into()),
        };
        if tables.is_empty() {
            return self.print("No tables.");
        }
        for table in &tables {
            let text = match self.lab().query(&format!("select * from {table}")) {
                Ok(Answer::Rows { mut rows, .. }) => {
                    rows.sort_by(|a, b| value::compare_rows(a, b));
                    value::show_rows(&rows)
                }
                Ok(Answer::Error(error)) => format!("cannot be read: {error}"),
                Ok(_) => String::new(),
                Err(error) => return self.fail(error.into()),
            };
            self.print(&format!("{table}  {text}"));
        }
        self.words.lock().expect("no thread panics while it holds the words").tables = tables;
    }

    fn reset(&mut self) {
        let outcome = self.lab().reset();
        self.start_over();
        if outcome.is_ok() {
            self.print("Reset: no tables, no sessions, default level.");
        }
        self.report(outcome);
    }

    fn start_over(&mut self) {
        self.printer = EventPrinter::default();
        self.current = "s1".into();
        let mut words = self.words.lock().expect("no thread panics while it holds the words");
        words.tables.clear();
        words.sessions.clear();
    }

    fn cancel(&mut self, session: &str) {
        let outcome = self.lab().cancel(session);
        self.print_news();
        match outcome {
            Ok(true) => {}
            Ok(false) => self.wrong(&format!("{session} has no running statement")),
            Err(error) => self.report(Err(error)),
        }
    }

    fn save(&mut self, path: &Path) {
        let lab = self.lab();
        let info = lab.engine().info();
        let on = format!("{} {}", info.engine, info.version);
        let mut case: Case = lab.case().clone();
        if case.steps.is_empty() {
            return self.wrong("no steps yet; there is nothing to save");
        }
        if case.about.is_empty() {
            case.about = format!("Recorded by isolde repl on {on}.");
        }
        let interfered = lab.interfered();
        if interfered {
            case.about
                .push_str("\nA statement was cancelled by hand, which a case file cannot express.");
        }
        if case.id == "repl"
            && let Some(name) = path.file_stem().and_then(|n| n.to_str())
        {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            case.id = name.chars().map(|c| if fits(c) { c } else { '-' }).collect();
        }
        let text = case::format(&case);
        // Parsed again before it is written: the file must have the same steps.
        match case::parse(&text) {
            Ok(read) if read == case => {}
            Ok(_) => {
                return self.wrong("cannot be written as a case: a statement ends in a comment");
            }
            Err(error) => return self.wrong(&format!("cannot be written as a case: {error}")),
        }
        if let Err(error) = std::fs::write(path, text) {
            return self.fail(Failure::cannot_write(path, &error));
        }
        let note = if interfered {
            " (a statement was cancelled by hand: a replay may differ)"
        } else {
            ""
        };
        self.print(&format!(
            "Wrote {} steps to {}{note}. Replay: {} replay {} --on {}",
            case.steps.len(),
            path.display(),
            own_name(),
            path.display(),
            self.target
        ));
    }

    fn load(&mut self, path: &Path) {
        let read = read_text(path).and_then(|text| {
            case::parse(&text)
                .map_err(|e| Failure::new(ExitCode::BadInput, format!("{}: {e}", path.display())))
        });
        let case = match read {
            Ok(case) => case,
            Err(failure) => return self.fail(failure),
        };
        let outcome = self.lab().load(&case);
        self.start_over();
        if outcome.is_err() {
            return self.report(outcome);
        }
        for statement in self.lab().case().setups.clone().iter().flat_map(|s| &s.statements) {
            self.print(&format!("setup> {};", statement.sql));
        }
        for step in &case.steps {
            let typed = format!("{} {};", step.short_prompt(), step.sql);
            self.print(&self.context.console.paint(Style::Strong, &typed));
            self.submit(&step.session, step.level, step.anyway, &step.sql);
            self.current = step.session.clone();
            if interrupt::is_requested() {
                return interrupt::clear();
            }
        }
    }

    fn change_target(&mut self, text: &str) {
        let opened = self.context.parse_target(text).and_then(|target| {
            open_lab(self.context, &target, self.patience).map(|lab| (target, lab))
        });
        match opened {
            Ok((target, lab)) => {
                self.words.lock().expect("no thread panics while it holds the words").levels =
                    lab.engine().profile().level_names();
                self.target = target;
                self.lab = Some(lab);
                self.start_over();
                let info = self.lab().engine().info().clone();
                self.print(&format!("{} {}, empty.", info.engine, info.version));
            }
            Err(failure) => self.fail(failure),
        }
    }
}

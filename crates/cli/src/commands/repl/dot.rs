//! The commands that start with a dot.

use super::super::{explain, explain_show, matrix, read_file, replay};
use super::show;
use super::{Flow, Repl, Shower, open_lab};
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use crate::shell::own_name;
use crate::table::layout;
use isolde_core::case::{self, Case};
use isolde_core::semantics::CitedRule;
use isolde_core::transcript::summary;
use isolde_core::{Level, value};
use isolde_engines::engine::Outcome as Answer;
use isolde_hunt::executor::Executor;
use std::path::Path;

/// Name, arguments, what it does.
pub const COMMANDS: [(&str, &str, &str); 15] = [
    ("sessions", "", "where each session stands, and for whom it waits"),
    ("level", "[s1] LEVEL", "the level of transactions that begin from now on"),
    ("schedule", "", "what was done so far, step by step"),
    ("why", "", "why each statement did what it did, by the engine's rules"),
    ("save", "FILE", "write it as a case file for isolde replay"),
    ("load", "FILE", "start over with a case file, step by step"),
    ("replay", "FILE", "run a case file on a database of its own"),
    ("tables", "", "the tables and their committed rows"),
    ("cancel", "s1", "end the statement that a session waits with or works on"),
    ("reset", "", "an empty database and no sessions"),
    ("target", "TARGET", "another database, from the start: postgres, mariadb@11.4, …"),
    ("matrix", "", "which anomalies each level here lets through"),
    ("levels", "", "the levels here, and how they are provided"),
    ("help", "", "this"),
    ("quit", "", "end (Ctrl-D does too)"),
];

/// The command that the name begins, if it is the only one.
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
                let lab = self.lab.as_ref().expect("it is there until the end");
                self.say(&show::sessions(self.context.console, lab));
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
                let on = [self.target.to_string()];
                let outcome = replay::run(self.context, &files, &on, &[], None);
                self.ended(outcome);
            }
            ("matrix", _) => {
                let on = [self.target.to_string()];
                let outcome = matrix::run(self.context, &on, None, &[]);
                self.ended(outcome);
            }
            _ => match COMMANDS.iter().find(|(known, ..)| *known == name) {
                Some((name, arguments, _)) => self.wrong(&format!("write .{name} {arguments}")),
                None => self.wrong(&format!("there is no command .{name}; .help lists them")),
            },
        }
        Flow::Next
    }

    fn ended(&mut self, outcome: Result<ExitCode, Failure>) {
        interrupt::forget();
        match outcome {
            Ok(code) => self.worst = self.worst.worse(code),
            Err(failure) => self.fail(failure),
        }
    }

    fn help(&mut self) {
        let mut rows: Vec<Vec<String>> = [
            ("begin;", "goes to the session in the prompt"),
            ("s2> select * from t;", "goes to s2, opened when first named (also s2: …)"),
            ("s1(serializable)> begin;", "a transaction at a level of its own"),
            ("setup> create table …;", "prepares, before the first step"),
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
        self.say(text.trim_end());
        self.say(
            "A statement ends with ; and may go on over several lines; Ctrl-C drops the line.",
        );
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
                let who = session.map_or("Transactions".into(), |s| format!("Transactions of {s}"));
                self.say(&format!("{who} begin at {level} from now on."));
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
                let mark =
                    if p.level == next { format!("{current} begins here") } else { String::new() };
                vec![p.level.to_string().to_lowercase(), p.level.short().into(), p.by.clone(), mark]
            })
            .collect();
        self.say(layout(&rows, 60, &|_, _, text| text.to_string()).trim_end());
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
            return self.say("Nothing was done yet.");
        }
        let console = self.context.console;
        let text = layout(&rows, 60, &|_, column, text| match column {
            1 if text.contains("error") => console.paint(Style::Bad, text),
            1 if text.contains("waits") => console.paint(Style::Doubt, text),
            _ => text.to_string(),
        });
        self.say(text.trim_end());
    }

    /// What was done so far, held against the rules. Statements are evaluated
    /// in a database of its own: here somebody may hold locks.
    fn why(&mut self) {
        let lab = self.lab();
        let (case, history) = (lab.case().clone(), lab.history().clone());
        let level = case.level.unwrap_or(lab.engine().profile().default_level);
        if case.steps.is_empty() {
            return self.say("Nothing was done yet.");
        }
        let account = self.context.open(&self.target).and_then(|runner| {
            explain::of_history(&mut Executor::new(runner), &case, level, &history)
        });
        let account = match account {
            Ok(account) => account,
            Err(failure) => return self.fail(failure),
        };
        let console = self.context.console;
        for line in explain_show::told(console, &account.steps, &account.rules) {
            self.say(&line);
        }
        self.say(&explain_show::whole(console, &account));
        let rules: Vec<&CitedRule> = account.rules.iter().collect();
        for line in explain_show::footnotes(console, &rules) {
            self.say(&line);
        }
    }

    /// Rows as a new transaction would see them.
    fn tables(&mut self) {
        let tables = match self.lab().tables() {
            Ok(tables) => tables,
            Err(error) => return self.fail(error.into()),
        };
        if tables.is_empty() {
            return self.say("No tables.");
        }
        for table in &tables {
            let text = match self.lab().look_at(&format!("select * from {table}")) {
                Ok(Answer::Rows { mut rows, .. }) => {
                    rows.sort_by(|a, b| value::compare_rows(a, b));
                    value::show_rows(&rows)
                }
                Ok(Answer::Error(error)) => format!("cannot be read now: {error}"),
                Ok(_) => String::new(),
                Err(error) => return self.fail(error.into()),
            };
            self.say(&format!("{table}  {text}"));
        }
        self.words.lock().expect("nobody panics with the words").tables = tables;
    }

    fn reset(&mut self) {
        let outcome = self.lab().reset();
        self.start_over();
        if outcome.is_ok() {
            self.say("Empty again: no tables, no sessions, the default level.");
        }
        self.report(outcome);
    }

    fn start_over(&mut self) {
        self.shower = Shower::default();
        self.current = "s1".into();
        let mut words = self.words.lock().expect("nobody panics with the words");
        words.tables.clear();
        words.sessions.clear();
    }

    fn cancel(&mut self, session: &str) {
        let outcome = self.lab().cancel(session);
        self.tell_news();
        match outcome {
            Ok(true) => {}
            Ok(false) => self.wrong(&format!("{session} has no statement under way")),
            Err(error) => self.report(Err(error)),
        }
    }

    fn save(&mut self, path: &Path) {
        let lab = self.lab();
        let info = lab.engine().info();
        let on = format!("{} {}", info.engine, info.version);
        let mut case: Case = lab.case().clone();
        if case.steps.is_empty() {
            return self.wrong("nothing was done yet, so there is nothing to save");
        }
        if case.about.is_empty() {
            case.about = format!("Recorded by isolde repl on {on}.");
        }
        let interfered = lab.interfered();
        if interfered {
            case.about.push_str("\nA statement was cancelled by hand, which no case can say.");
        }
        if case.id == "repl"
            && let Some(name) = path.file_stem().and_then(|n| n.to_str())
        {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            case.id = name.chars().map(|c| if fits(c) { c } else { '-' }).collect();
        }
        let text = case::format(&case);
        // Read back before it is kept: what was saved must be what was done.
        match case::parse(&text) {
            Ok(read) if read == case => {}
            Ok(_) => {
                return self
                    .wrong("this cannot be written as a case: a statement ends in a comment");
            }
            Err(error) => return self.wrong(&format!("this cannot be written as a case: {error}")),
        }
        if let Err(error) = std::fs::write(path, text) {
            return self.fail(Failure::cannot_write(path, &error));
        }
        let note =
            if interfered { " (it was cancelled by hand once: a replay may differ)" } else { "" };
        self.say(&format!(
            "{} steps in {}{note}; {} replay {} --on {}",
            case.steps.len(),
            path.display(),
            own_name(),
            path.display(),
            self.target
        ));
    }

    fn load(&mut self, path: &Path) {
        let read = read_file(path).and_then(|text| {
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
            self.say(&format!("setup> {};", statement.sql));
        }
        for step in &case.steps {
            let typed = format!("{} {};", step.short_prompt(), step.sql);
            self.say(&self.context.console.paint(Style::Strong, &typed));
            self.submit(&step.session, step.level, step.anyway, &step.sql);
            self.current = step.session.clone();
            if interrupt::asked() {
                return interrupt::forget();
            }
        }
    }

    fn change_target(&mut self, text: &str) {
        let opened = self.context.parse_target(text).and_then(|target| {
            open_lab(self.context, &target, self.patience).map(|lab| (target, lab))
        });
        match opened {
            Ok((target, lab)) => {
                self.words.lock().expect("nobody panics with the words").levels =
                    lab.engine().profile().level_names();
                self.target = target;
                self.lab = Some(lab);
                self.start_over();
                let info = self.lab().engine().info().clone();
                self.say(&format!("{} {}, empty.", info.engine, info.version));
            }
            Err(failure) => self.fail(failure),
        }
    }
}

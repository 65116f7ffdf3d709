//! mysqltest scripts with several connections, read into a case.
//!
//! Supported are `connect`, `connection`, `disconnect`, `send`, `reap`, `error`,
//! plain statements, comments, and commands that only wait or print. Commands
//! that compute (`let`, `eval`, `while`, …) are refused with their line.

use super::mtr_words::{IGNORED, REFUSED, first_word, is_harmless_include};
use super::{error_on_line, fitting_id, fitting_session, is_cleanup, session_level_of};
use isolde_model::case::{
    Case, Claim, Expectation, Expected, Line, ParseError, Setup, Statement, Step, Subject,
};
use isolde_sql as sql;
use isolde_sql::Kind;

const DEFAULT: &str = "default";

pub fn read_mtr(text: &str, id: &str) -> Result<Case, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        text,
        current: DEFAULT.into(),
        known: vec![DEFAULT.into()],
        open: Vec::new(),
        failed: Vec::new(),
        sent: Vec::new(),
        case: Case { id: fitting_id(id), ..Case::default() },
        setup: Vec::new(),
        claims: Vec::new(),
        notes: Vec::new(),
        send_next: false,
        error: None,
        scheduled: false,
        left: None,
    };
    reader.run()?;
    reader.finish()
}

struct Reader<'a> {
    text: &'a str,
    current: String,
    known: Vec<String>,
    /// Sessions inside a transaction.
    open: Vec<String>,
    /// Sessions in whose transaction an error was expected. mysqltest sends the
    /// statements after it whether or not the transaction is still open.
    failed: Vec<String>,
    /// Sessions whose statement was sent and not yet reaped, with the statement's index.
    sent: Vec<(String, usize)>,
    case: Case,
    setup: Vec<Statement>,
    claims: Vec<Claim>,
    notes: Vec<String>,
    send_next: bool,
    error: Option<String>,
    /// The setup is over.
    scheduled: bool,
    /// The line at which a session disconnected inside a transaction.
    left: Option<usize>,
}

type Parsed<T> = Result<T, ParseError>;

impl Reader<'_> {
    fn run(&mut self) -> Parsed<()> {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut at = self.header(&lines);
        while at < lines.len() {
            let plain = lines[at].trim();
            if let Some(note) = plain.strip_prefix('#') {
                self.notes.push(note.trim().into());
            } else if let Some(command) = plain.strip_prefix("--") {
                if self.command(command.trim(), at + 1)? {
                    return Ok(());
                }
            } else if !plain.is_empty() {
                let mut body = plain.to_string();
                let first = at;
                while sql::split(&body).unfinished {
                    at += 1;
                    let Some(next) = lines.get(at) else {
                        return Err(self.fail(first + 1, "this statement lacks its ;"));
                    };
                    body.push('\n');
                    body.push_str(next.trim_end());
                }
                for (offset, statement) in sql::split(&body).statements {
                    let line = first + body[..offset].matches('\n').count() + 1;
                    if self.text_item(&statement, line)? {
                        return Ok(());
                    }
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Comments at the top are about the whole script. Returns the line below.
    fn header(&mut self, lines: &[&str]) -> usize {
        let top = lines.iter().take_while(|l| l.trim_start().starts_with('#')).count();
        let mut about: Vec<&str> =
            lines[..top].iter().map(|l| l.trim().trim_start_matches('#').trim()).collect();
        if let Some(rest) = about.first().and_then(|f| f.strip_prefix(self.case.id.as_str())) {
            self.case.title = rest.trim_start_matches(':').trim().into();
            about.remove(0);
        }
        self.case.about = about.join("\n").trim().to_string();
        top
    }

    fn finish(mut self) -> Parsed<Case> {
        while self.case.steps.last().is_some_and(|s| is_cleanup(&s.sql)) {
            self.case.steps.pop();
        }
        self.take_finals();
        if self.case.steps.is_empty() {
            let last = self.text.lines().count().max(1);
            return Err(self.fail(last, "no steps: nothing runs after the setup"));
        }
        if !self.setup.is_empty() {
            let statements = std::mem::take(&mut self.setup);
            self.case.setups.push(Setup { on: Vec::new(), statements, notes: Vec::new() });
        }
        let case = &mut self.case;
        let named: Vec<String> = case.sessions().iter().map(|s| (*s).to_string()).collect();
        case.session_levels.retain(|(s, _)| named.contains(s));
        self.claims.retain(|claim| match &claim.subject {
            Subject::Step { session, nth } => case.step_of_label(session, *nth).is_some(),
            _ => true,
        });
        if !self.claims.is_empty() {
            case.expectations.push(Expectation {
                on: Vec::new(),
                levels: Vec::new(),
                claims: self.claims,
                or: Vec::new(),
                notes: Vec::new(),
                line: Line(0),
            });
        }
        case.trailing_notes = self.notes;
        Ok(self.case)
    }

    /// A default connection that does nothing but read at the end reads the
    /// final state.
    fn take_finals(&mut self) {
        let steps = &self.case.steps;
        let reads = |s: &&Step| s.session == DEFAULT && s.kind() == Kind::Select;
        let count = steps.iter().rev().take_while(reads).count();
        let kept = steps.len() - count;
        if count > 0 && steps[..kept].iter().all(|s| s.session != DEFAULT) && kept > 0 {
            let finals = self.case.steps.split_off(kept);
            self.case.finals =
                finals.into_iter().map(|s| Statement { sql: s.sql, line: s.line }).collect();
        }
    }

    /// A statement, or a command that is written as one.
    fn text_item(&mut self, text: &str, line: usize) -> Parsed<bool> {
        let word = first_word(text);
        let ours = [
            "connect",
            "connection",
            "disconnect",
            "send",
            "reap",
            "error",
            "source",
            "echo",
            "exit",
        ];
        let is_command = ours.contains(&word.as_str())
            || (IGNORED.contains(&word.as_str()))
            || (REFUSED.contains(&word.as_str()) && word != "kill");
        if is_command {
            return self.command(text, line);
        }
        self.statement(text, line)?;
        Ok(false)
    }

    /// True at the end of the script.
    fn command(&mut self, text: &str, line: usize) -> Parsed<bool> {
        let text = text.trim().trim_end_matches(';').trim_end();
        let word = first_word(text);
        let rest = text[word.len()..].trim();
        match word.as_str() {
            "connect" => {
                let inside = rest.trim_start_matches('(');
                let name = inside.split([',', ')']).next().unwrap_or("").trim().to_string();
                if name.is_empty() {
                    return Err(
                        self.fail(line, "connect needs a name: connect (con1,localhost,root,,)")
                    );
                }
                if !self.known.contains(&name) {
                    self.known.push(name.clone());
                }
                self.current = name;
            }
            "connection" => {
                if !self.known.iter().any(|k| k == rest) {
                    return Err(self.fail(line, format!("no `connect` above opened `{rest}`")));
                }
                self.current = rest.into();
            }
            "disconnect" => {
                // A run ends by rolling back open transactions, and so does a disconnect.
                if self.open.iter().any(|s| s == rest) {
                    self.left.get_or_insert(line);
                }
            }
            "send" if rest.is_empty() => self.send_next = true,
            "send" => {
                self.send_next = true;
                self.statement(rest, line)?;
            }
            "reap" => self.reap(line)?,
            "error" => self.error = Some(rest.to_string()),
            "echo" => self.notes.push(rest.trim_start_matches('#').trim().into()),
            "exit" => return Ok(true),
            "let" if rest.starts_with("$wait_condition") => {}
            "source" if is_harmless_include(rest) => {}
            "source" => {
                return Err(
                    self.fail(line, format!("the effect of {rest} cannot be expressed in a case"))
                );
            }
            known if IGNORED.contains(&known) => {}
            other => {
                let message = format!("`{other}` cannot be expressed in a case");
                return Err(self.fail(line, message));
            }
        }
        Ok(false)
    }

    fn reap(&mut self, line: usize) -> Parsed<()> {
        let Some(at) = self.sent.iter().position(|(s, _)| *s == fitting_session(&self.current))
        else {
            return Err(self.fail(line, "nothing was sent on this connection"));
        };
        let (session, nth) = self.sent.remove(at);
        self.claim_error(&session, nth);
        Ok(())
    }

    fn statement(&mut self, text: &str, line: usize) -> Parsed<()> {
        let text = sql::without_trailing_comment(text.trim());
        let split = sql::split(&format!("{text};"));
        if text.is_empty() || split.unfinished {
            return Err(self.fail(line, "this is no whole statement"));
        }
        if split.statements.len() != 1 {
            return Err(self.fail(line, "several statements at once cannot be expressed in a case"));
        }
        let kind = sql::kind(text);
        let sends = std::mem::take(&mut self.send_next);
        if text.contains('$')
            && text.split('$').skip(1).any(|v| v.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            return Err(self.fail(line, "variables cannot be expressed in a case"));
        }
        let global = text.to_ascii_lowercase();
        let global = global.starts_with("set global") || global.starts_with("set @@global");
        let prepares = matches!(kind, Kind::Ddl | Kind::Write) || global;
        if !self.scheduled && self.current == DEFAULT && prepares && !sends && self.error.is_none()
        {
            if !is_cleanup(text) {
                self.setup.push(Statement { sql: text.into(), line: Line(line) });
            }
            return Ok(());
        }
        if self.sent.iter().any(|(s, _)| *s == fitting_session(&self.current)) {
            return Err(self.fail(line, "reap what was sent on this connection first"));
        }
        if let Some(left) = self.left.filter(|_| !is_cleanup(text)) {
            let message = "a case cannot say that a session leaves in its transaction";
            return Err(self.fail(left, message));
        }
        self.scheduled = true;
        let session = fitting_session(&self.current);
        let first_here = self.case.steps.iter().all(|s| s.session != session);
        if let (true, Some(level)) = (first_here, session_level_of(text)) {
            self.case.session_levels.retain(|(s, _)| *s != session);
            self.case.session_levels.push((session, level));
            return Ok(());
        }
        if kind == Kind::Begin || kind.ends_transaction() {
            self.open.retain(|s| *s != self.current);
            self.failed.retain(|s| *s != session);
        }
        if kind == Kind::Begin {
            self.open.push(self.current.clone());
        }
        let step = Step::plain(&session, text, Line(line));
        let notes = std::mem::take(&mut self.notes);
        let anyway = self.failed.contains(&session);
        self.case.steps.push(Step { notes, anyway, ..step });
        let nth = self.case.steps.iter().filter(|s| s.session == session).count();
        if sends {
            let subject = Subject::Step { session: session.clone(), nth };
            self.claims.push(Claim { subject, expected: Expected::Waits });
            self.sent.push((session, nth));
        } else {
            self.claim_error(&session, nth);
        }
        Ok(())
    }

    /// `--error` applies to the statement below it. A list of errors only names
    /// possible results, so it makes no claim.
    fn claim_error(&mut self, session: &str, nth: usize) {
        let Some(codes) = self.error.take() else { return };
        if codes.trim() != "0" && self.open.contains(&self.current) {
            self.failed.push(session.into());
        }
        let code = match codes.trim() {
            list if list.contains(',') || list == "0" => return,
            "ER_LOCK_DEADLOCK" => Some("1213"),
            "ER_LOCK_WAIT_TIMEOUT" => Some("1205"),
            "ER_DUP_ENTRY" => Some("1062"),
            "ER_CHECKREAD" => Some("1020"),
            number if number.parse::<u32>().is_ok() => Some(number),
            _ => None,
        };
        let expected = Expected::Error(code.map(str::to_string));
        let subject = Subject::Step { session: session.into(), nth };
        self.claims.push(Claim { subject, expected });
    }

    fn fail(&self, line: usize, message: impl Into<String>) -> ParseError {
        let source = self.text.lines().nth(line - 1).unwrap_or("");
        let indent = source.len() - source.trim_start().len();
        error_on_line(self.text, line, indent, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_connections_with_send_and_reap_become_a_case() {
        let text = "--source include/have_innodb.inc\n--disable_warnings\ndrop table if exists t;\n\
            create table t (a int) engine=innodb;\ninsert into t values (1);\n\
            connect (con1,localhost,root,,);\nbegin;\nupdate t set a = 2;\n--connection default\n\
            # it must wait\n--send update t set a = 3\n--connection con1\ncommit;\n\
            connection default;\n--error ER_LOCK_DEADLOCK\n--reap\nselect * from t;\ndisconnect con1;\ndrop table t;\n";
        let case = read_mtr(text, "x").unwrap();
        let steps: Vec<(&str, &str)> =
            case.steps.iter().map(|s| (s.session.as_str(), s.sql.as_str())).collect();
        assert_eq!(
            steps,
            [
                ("con1", "begin"),
                ("con1", "update t set a = 2"),
                ("default", "update t set a = 3"),
                ("con1", "commit"),
                ("default", "select * from t"),
            ]
        );
        let claims: Vec<String> =
            case.expectations[0].claims.iter().map(ToString::to_string).collect();
        assert_eq!(claims, ["default.1 waits", "default.1 error 1213"]);
        assert_eq!(case.setups[0].statements.len(), 2);
    }

    #[test]
    fn statements_after_an_expected_error_are_sent_anyway() {
        let text = "connect (a,,,,);\nbegin;\nupdate t set a = 1;\n--error ER_LOCK_DEADLOCK\n\
            update t set a = 2;\nupdate t set a = 3;\ncommit;\nupdate t set a = 4;\n\
            --error 1062\ninsert into t values (1);\nupdate t set a = 5;\n";
        let case = read_mtr(text, "x").unwrap();
        let anyway: Vec<&str> =
            case.steps.iter().filter(|s| s.anyway).map(|s| s.sql.as_str()).collect();
        assert_eq!(anyway, ["update t set a = 3"]);
    }

    #[test]
    fn unsupported_syntax_is_refused_with_its_line() {
        for (text, line) in [
            ("select 1;\nlet $a = 1;", 2),
            ("select 1;\n--connection nobody", 2),
            ("select 1;\nreap;", 2),
            ("select 1;\n\nselect 2", 3),
            ("begin;\nselect $x;", 2),
            ("connect (a,,,,);\nbegin;\ndisconnect a;\nconnection default;\nselect 1;", 3),
            ("create table t (a int);", 1),
            ("select 1;\nsource other.inc;", 2),
            ("send select 1;\nselect 2;", 2),
        ] {
            let error = read_mtr(text, "x").unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
        }
    }
}

//! ReplBug's scripts: `conn_0> SQL;` lines, below a setup.
//!
//! Read are its Python files (BUG_ID, LINK, DESCRIPTION, DB_AND_VERSION,
//! SETUP_SQL_SCRIPT and one scenario) and bare scripts, where everything above
//! the first prompt is the setup.

use super::{error_on_line, fitting_id};
use isolde_model::case::{Case, Line, ParseError, Setup, Statement, Step};
use isolde_sql as sql;
use isolde_sql::Kind;
use isolde_sql::selector::Selector;
use std::collections::BTreeMap;

type Parsed<T> = Result<T, ParseError>;

pub fn read_replbug(text: &str, id: &str) -> Parsed<Case> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, lines: text.lines().collect(), case: Case::default() };
    reader.case.id = fitting_id(id);
    reader.run()?;
    mark_anyway(&mut reader.case);
    Ok(reader.case)
}

/// ReplBug continues after an error. Where another session can end a transaction,
/// the statements after its first one are sent all the same.
fn mark_anyway(case: &mut Case) {
    if case.sessions().len() < 2 {
        return;
    }
    // Sessions inside of a transaction, and whether it has done something.
    let mut open: BTreeMap<String, bool> = BTreeMap::new();
    for step in &mut case.steps {
        match sql::kind(&step.sql) {
            Kind::Begin => {
                open.insert(step.session.clone(), false);
            }
            kind if kind.ends_transaction() => {
                open.remove(&step.session);
            }
            _ => {
                if let Some(worked) = open.get_mut(&step.session) {
                    step.anyway = std::mem::replace(worked, true);
                }
            }
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    case: Case,
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Parsed<()> {
        let is_python = self.lines.iter().any(|l| l.trim_start().starts_with("SETUP_SQL_SCRIPT"))
            || self.lines.iter().any(|l| l.starts_with("def get_scenarios"));
        let Some(first) = self.lines.iter().position(|l| prompt(l).is_some()) else {
            let message = "no steps; write lines such as `conn_0> begin;`";
            return Err(self.error(self.lines.len().max(1), 0, message));
        };
        if is_python {
            self.header(first);
            if let Some((start, end)) = self.python_setup(first)? {
                self.setup(start, end)?;
            }
        } else {
            self.setup(0, first)?;
        }
        self.steps(first, is_python)
    }

    /// `KEY = "value"` lines above the scenario.
    fn header(&mut self, end: usize) {
        let value = |line: &str| -> String {
            let value = line.split_once('=').map_or("", |(_, v)| v).trim();
            value.trim_matches(['"', '\'']).trim().to_string()
        };
        for (at, line) in self.lines[..end].iter().enumerate() {
            let key = line.split('=').next().unwrap_or("").trim();
            match key {
                "BUG_ID" if !value(line).is_empty() => self.case.id = fitting_id(&value(line)),
                "LINK" if !value(line).is_empty() => self.case.link = Some(value(line)),
                "DESCRIPTION" => self.case.title = value(&self.whole_value(at, end)),
                _ => {}
            }
            if let Some((_, rest)) = line.split_once("DatabaseType.") {
                let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
                let version = rest.split('"').nth(1).unwrap_or("");
                let name = name.to_ascii_lowercase();
                // The version says where it was reported, not where it may run.
                self.case.about = format!("Reported on {name} {version}").trim().to_string() + ".";
                self.case.engines = name.parse::<Selector>().ok().into_iter().collect();
            }
        }
    }

    /// A value that continues on the lines below its key, joined into one line.
    fn whole_value(&self, at: usize, end: usize) -> String {
        let more = self.lines[at + 1..end]
            .iter()
            .take_while(|l| !is_python_key(l) && !l.trim().is_empty() && !l.contains("\"\"\""));
        let mut whole = self.lines[at].trim_end().to_string();
        for line in more {
            whole = format!("{whole} {}", line.trim());
        }
        whole
    }

    /// The lines between the quotes of SETUP_SQL_SCRIPT.
    fn python_setup(&self, end: usize) -> Parsed<Option<(usize, usize)>> {
        let key = |l: &&str| l.trim_start().starts_with("SETUP_SQL_SCRIPT");
        let Some(start) = self.lines[..end].iter().position(key) else { return Ok(None) };
        if !self.lines[start].contains("\"\"\"") {
            let message = "SETUP_SQL_SCRIPT holds its SQL between \"\"\" and \"\"\"";
            return Err(self.error(start + 1, 0, message));
        }
        // Scripts are often printed without the closing quotes: then the next
        // key ends the setup.
        let ends = |l: &&str| l.contains("\"\"\"") || is_python_key(l);
        let length = self.lines[start + 1..end].iter().position(ends);
        Ok(Some((start + 1, length.map_or(end, |n| start + 1 + n))))
    }

    fn setup(&mut self, start: usize, end: usize) -> Parsed<()> {
        let mut notes = Vec::new();
        let mut body = String::new();
        for line in &self.lines[start..end] {
            let plain = line.trim();
            let title = plain.eq_ignore_ascii_case("setup:") || matches!(plain, "setup {" | "}");
            if let Some(note) = plain.strip_prefix('#') {
                notes.push(note.trim().to_string());
            } else if !title {
                body.push_str(line);
            }
            body.push('\n');
        }
        let split = sql::split(&body);
        if split.unfinished {
            let offset = split.statements.last().map_or(0, |(o, _)| *o);
            let line = start + body[..offset].matches('\n').count() + 1;
            return Err(self.error(line, 0, "this statement lacks its ; or closes no quote"));
        }
        let statements: Vec<Statement> = split
            .statements
            .into_iter()
            .map(|(offset, sql)| Statement {
                sql: sql::without_trailing_comment(&sql).into(),
                line: Line(start + body[..offset].matches('\n').count() + 1),
            })
            .collect();
        if !statements.is_empty() {
            self.case.setups.push(Setup { on: Vec::new(), statements, notes });
        } else {
            self.case.notes = notes;
        }
        Ok(())
    }

    fn steps(&mut self, first: usize, is_python: bool) -> Parsed<()> {
        let mut at = first;
        let mut notes = Vec::new();
        while at < self.lines.len() {
            let line = self.lines[at];
            let plain = line.trim();
            if let Some((session, offset)) = prompt(line) {
                at = self.step(at, session, offset, std::mem::take(&mut notes))?;
                continue;
            }
            if let Some(note) = plain.strip_prefix('#').or_else(|| plain.strip_prefix("--")) {
                notes.push(note.trim().to_string());
            } else if is_python && self.scenario_ends(at)? {
                break;
            } else if !plain.is_empty() {
                let message = "expected a line such as `conn_0> select 1;`";
                return Err(self.error(at + 1, line.len() - line.trim_start().len(), message));
            }
            at += 1;
        }
        self.case.trailing_notes = notes;
        Ok(())
    }

    /// Below the first scenario there must not be another one.
    fn scenario_ends(&self, at: usize) -> Parsed<bool> {
        let ends = self.lines[at].trim().starts_with(['"', ']', '0', ',', ')']);
        if ends && let Some(next) = self.lines[at..].iter().position(|l| prompt(l).is_some()) {
            let message = "a second scenario; a case is one schedule: cut the file in two";
            return Err(self.error(at + next + 1, 0, message));
        }
        Ok(ends)
    }

    /// One prompt with its statements, which may span several lines. Returns the
    /// line after them.
    fn step(
        &mut self,
        at: usize,
        session: &str,
        offset: usize,
        mut notes: Vec<String>,
    ) -> Parsed<usize> {
        let mut body = self.lines[at][offset..].to_string();
        let mut next = at + 1;
        while sql::split(&body).unfinished {
            match self.lines.get(next) {
                Some(line) if prompt(line).is_none() && !line.contains("\"\"\"") => {
                    body.push('\n');
                    body.push_str(line.trim());
                    next += 1;
                }
                _ => return Err(self.error(at + 1, offset, "this statement lacks its ;")),
            }
        }
        let statements = sql::split(&body).statements;
        if statements.is_empty() {
            return Err(self.error(at + 1, offset, "no statement after the prompt"));
        }
        for (start, sql) in statements {
            let sql = sql::without_trailing_comment(&sql).to_string();
            let line = at + body[..start].matches('\n').count() + 1;
            if is_level_placeholder(&sql) {
                // ReplBug fills in each level in turn; so does a run.
                continue;
            }
            if sql.contains("{isolation_level") {
                let message = "only SET … TRANSACTION ISOLATION LEVEL may name {isolation_level}";
                return Err(self.error(line, offset, message));
            }
            let step = Step::plain(session, &sql, Line(line));
            self.case.steps.push(Step { notes: std::mem::take(&mut notes), ..step });
        }
        Ok(next)
    }

    fn error(&self, line: usize, byte: usize, message: &str) -> ParseError {
        error_on_line(self.text, line, byte, message)
    }
}

fn is_level_placeholder(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    lower.starts_with("set ")
        && lower.contains("isolation level")
        && sql.contains("{isolation_level")
}

fn is_python_key(line: &str) -> bool {
    let key = line.split('=').next().unwrap_or("").trim();
    line.starts_with("def ")
        || (line.contains('=')
            && !key.is_empty()
            && key.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// `conn_0>`, and where the statement starts.
fn prompt(line: &str) -> Option<(&str, usize)> {
    let indent = line.len() - line.trim_start().len();
    let rest = &line[indent..];
    let end = rest.find('>')?;
    let name = &rest[..end];
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    fits.then_some((name, indent + end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_file_becomes_a_case() {
        let text = "BUG_ID = \"MDEV-1\"\nLINK = \"https://x/1\"\nDB = t(DatabaseType.MARIADB, \"10.6.17\")\n\
            SETUP_SQL_SCRIPT = \"\"\"\ncreate table t(a int);\n\"\"\"\nDESCRIPTION = \"Lost,\n    for ever.\"\n\
            def get_scenarios(isolation_level):\n    return [\n        f\"\"\"\n        conn_0> SET GLOBAL TRANSACTION ISOLATION LEVEL\n\
            \u{20}               {isolation_level.value};\n        conn_0> begin;\n        conn_1> select 1;\n        \"\"\"\n    ]\n";
        let case = read_replbug(text, "x").unwrap();
        assert_eq!((case.id.as_str(), case.title.as_str()), ("MDEV-1", "Lost, for ever."));
        assert_eq!(case.engines[0].to_string(), "mariadb");
        assert_eq!(case.about, "Reported on mariadb 10.6.17.");
        assert_eq!(case.setups[0].statements[0].sql, "create table t(a int)");
        let steps: Vec<(&str, &str)> =
            case.steps.iter().map(|s| (s.session.as_str(), s.sql.as_str())).collect();
        assert_eq!(steps, [("conn_0", "begin"), ("conn_1", "select 1")]);
        assert_eq!(case.steps[0].line.0, 14);
    }

    #[test]
    fn statements_of_a_transaction_another_session_may_have_ended_are_sent_anyway() {
        let anyway = |text: &str| -> Vec<String> {
            let steps = read_replbug(text, "x").unwrap().steps;
            steps.into_iter().filter(|s| s.anyway).map(|s| s.sql).collect()
        };
        let alone = "conn_0> begin;\nconn_0> select 1;\nconn_0> select 2;\nconn_0> commit;\n";
        assert!(anyway(alone).is_empty());
        let concurrent =
            format!("{alone}conn_0> select 3;\nconn_0> select 4;\nconn_1> select 5;\n");
        assert_eq!(anyway(&concurrent), ["select 2"]);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, line) in [
            ("create table t (a int);\n", 1),
            ("create table t (a int)\nconn_0> begin;", 1),
            ("conn_0> begin", 1),
            ("conn_0> begin;\nselect 1;", 2),
            ("conn_0>\nconn_1> begin;", 1),
        ] {
            assert_eq!(read_replbug(text, "x").unwrap_err().line, line, "{text:?}");
        }
    }
}

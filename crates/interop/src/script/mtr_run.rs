//! A recorded run as a mysqltest script, with the result that mysqltest writes.
//!
//! mysqltest sends a statement and waits for its answer, so what waited beyond
//! the next statement goes out with `send`, is seen waiting from another
//! connection, and is reaped where its answer came. Which connection speaks is
//! echoed: whether `connection` itself is printed differs between MySQL and
//! MariaDB.

use super::mtr_write::{NO_SNAPSHOT, go_to, known_level, push};
use super::recorded::Recorded;
use super::shown::{in_mysql, with_test_database};
use super::spec_write::drop_of;
use super::{Export, Unsupported, ended, remarks_of_run};
use isolde_model::Case;
use isolde_model::history::{DbError, EventKind, History};
use isolde_model::value::Row;
use isolde_sql as sql;

pub fn mtr_of_run(case: &Case, history: &History) -> Result<Export, Unsupported> {
    let run = Recorded::of(case, history)?;
    let mut script = Script { current: "default".into(), ..Script::default() };
    script.test.push_str(&remarks_of_run(case, history, "#"));
    script.test.push_str("--source include/have_innodb.inc\n--disable_warnings\n");
    script.test.push_str("--disable_connect_log\n\n");
    let setup = case.setup_for(&history.on.engine, &history.on.version);
    for statement in &setup {
        if sql::kind(&statement.sql) == sql::Kind::Select {
            let message = "mysqltest would print the rows of this setup, which are not known";
            return Err(Unsupported::at(statement.line.0, message));
        }
        script.statement(&statement.sql, statement.line.0)?;
    }
    let sessions: Vec<String> = run.sessions().iter().map(|s| connection(s)).collect();
    let waits = run.turns.iter().any(|turn| turn.waits);
    for session in &sessions {
        script.test.push_str(&format!("--connect ({session},localhost,root,,)\n"));
        if waits {
            script.test.push_str(&format!("let ${session}_id= `select connection_id()`;\n"));
        }
    }
    // The last one that was opened is the current one.
    script.current.clear();
    for session in run.sessions() {
        if let Some(level) = case.session_level(session, history.level) {
            let level = known_level(level).ok_or_else(|| Unsupported::key("level", NO_SNAPSHOT))?;
            script.speak(session);
            script.statement(&format!("set session transaction isolation level {level}"), 0)?;
        }
    }
    script.turns(&run)?;
    script.go_to("default");
    script.echo("finally");
    for rows in &history.final_state {
        script.test.push_str("--sorted_result\n");
        script.statement(&rows.query, 0)?;
        let mut lines = lines_of(&rows.rows, 0)?;
        lines.sort();
        script.rows(&rows.columns, &lines);
    }
    for session in &sessions {
        script.test.push_str(&format!("--disconnect {session}\n"));
    }
    for drop in setup.iter().rev().filter_map(|s| drop_of(&s.sql)) {
        script.statement(drop.trim().trim_end_matches(';'), 0)?;
    }
    Ok(Export { text: script.test, result: script.result })
}

/// `default` is mysqltest's own.
fn connection(session: &str) -> String {
    if session == "default" { "default_session".into() } else { session.into() }
}

#[derive(Default)]
struct Script {
    test: String,
    result: String,
    current: String,
    /// Whose lines the echoes have announced.
    speaker: String,
    /// The connections that have waited.
    waited: Vec<String>,
}

impl Script {
    fn turns(&mut self, run: &Recorded<'_>) -> Result<(), Unsupported> {
        let mut waiting: Vec<usize> = Vec::new();
        for (i, turn) in run.turns.iter().enumerate() {
            for (_, step, why) in run.not_sent.iter().filter(|(before, ..)| *before == i) {
                self.test.push_str(&format!("# {} is left out: {why}\n", run.case.label(*step)));
            }
            let line = turn.step.map_or(0, |s| run.case.steps[s].line.0);
            if is_call(turn.sql) && turn.reply.is_some_and(|r| r.rows().is_some()) {
                let message = "CALL may return several results, of which the recording has one";
                return Err(Unsupported::at(line, message));
            }
            self.speak(turn.session);
            let own_level = turn.step.and_then(|s| run.case.steps[s].level);
            if let Some(level) = own_level {
                let level = known_level(level).ok_or_else(|| Unsupported::at(line, NO_SNAPSHOT))?;
                self.statement(&format!("set transaction isolation level {level}"), line)?;
            }
            if turn.waits {
                if turn.sql.contains(';') {
                    return Err(Unsupported::at(line, "a statement with a semicolon in it waits"));
                }
                self.test.push_str("send ");
                self.statement(turn.sql, line)?;
                waiting.push(i);
            } else {
                self.say_error(turn.reply);
                self.statement(turn.sql, line)?;
                self.reply(turn.reply, line)?;
            }
            for answered in turn.answered.iter().filter(|t| **t != i) {
                let other = &run.turns[*answered];
                let line = other.step.map_or(0, |s| run.case.steps[s].line.0);
                self.go_to(&connection(other.session));
                self.speaker.clear();
                self.echo(&format!("{} goes on", run.label(*answered)));
                self.say_error(other.reply);
                self.test.push_str("--reap\n");
                self.reply(other.reply, line)?;
                waiting.retain(|w| w != answered);
            }
            // Last: what it made fail or set free does not wait any more.
            if turn.waits {
                self.wait_for(run, &waiting);
            }
        }
        match waiting.first() {
            Some(turn) => {
                let line = run.turns[*turn].step.map_or(0, |s| run.case.steps[s].line.0);
                Err(Unsupported::at(
                    line,
                    "this statement waited to the end and was never answered",
                ))
            }
            None => Ok(()),
        }
    }

    fn go_to(&mut self, session: &str) {
        go_to(&mut self.test, &mut self.current, session);
    }

    /// Goes to a session of the case and says whose lines follow.
    fn speak(&mut self, session: &str) {
        go_to(&mut self.test, &mut self.current, &connection(session));
        if self.speaker != session {
            self.echo(session);
            self.speaker = session.into();
        }
    }

    fn echo(&mut self, text: &str) {
        self.test.push_str(&format!("--echo # {text}\n"));
        self.result.push_str(&format!("# {text}\n"));
    }

    fn statement(&mut self, text: &str, line: usize) -> Result<(), Unsupported> {
        let text = on_one_line(text).ok_or_else(|| {
            Unsupported::at(line, "a comment or a text of this statement goes over several lines")
        })?;
        if text.contains(';') {
            // A routine: mysqltest would end it at its first semicolon.
            self.test.push_str(&format!("--delimiter $$\n{text}$$\n--delimiter ;\n"));
            self.result.push_str(&format!("{text}$$\n"));
            return Ok(());
        }
        push(&mut self.test, &text, line)?;
        self.result.push_str(&format!("{}\n", ended(&text)));
        Ok(())
    }

    /// Until all of these connections wait for a lock: of a row, or of a table
    /// or a name.
    fn wait_for(&mut self, run: &Recorded<'_>, waiting: &[usize]) {
        go_to(&mut self.test, &mut self.current, "default");
        let of = |turn: &usize| connection(run.turns[*turn].session);
        let last = waiting.last().map(of);
        if self.waited.contains(&last.clone().unwrap_or_default()) {
            // InnoDB answers out of a cache, which may still have the last wait.
            self.test.push_str("--real_sleep 0.2\n");
        }
        self.waited.extend(last);
        let ids: Vec<String> = waiting.iter().map(|turn| format!("${}_id", of(turn))).collect();
        let (ids, count) = (ids.join(", "), waiting.len());
        self.test.push_str(&format!(
            "let $wait_condition= select (select count(*) from information_schema.innodb_trx \
             where trx_state = 'LOCK WAIT' and trx_mysql_thread_id in ({ids})) + (select count(*) \
             from information_schema.processlist where id in ({ids}) and (state like \
             'Waiting for%lock%' or state = 'User lock')) = {count};\n"
        ));
        self.test.push_str("--source include/wait_condition.inc\n");
    }

    fn say_error(&mut self, reply: Option<&EventKind>) {
        if let Some(error) = reply.and_then(EventKind::error) {
            self.test.push_str(&format!("--error {}\n", error.code));
        }
    }

    fn reply(&mut self, reply: Option<&EventKind>, line: usize) -> Result<(), Unsupported> {
        match reply {
            Some(EventKind::Rows { columns, rows }) => {
                let lines = lines_of(rows, line)?;
                self.rows(columns, &lines);
            }
            Some(EventKind::Error(error)) => self.result.push_str(&error_line(error, line)?),
            _ => {}
        }
        Ok(())
    }

    fn rows(&mut self, columns: &[String], lines: &[String]) {
        self.result.push_str(&format!("{}\n", columns.join("\t")));
        for line in lines {
            self.result.push_str(&format!("{line}\n"));
        }
    }
}

fn error_line(error: &DbError, line: usize) -> Result<String, Unsupported> {
    if error.code.parse::<u32>().is_err() {
        return Err(Unsupported::at(line, format!("error {} is none of the server's", error.code)));
    }
    let state = error.sqlstate.as_deref().unwrap_or("HY000");
    Ok(format!("ERROR {state}: {}\n", with_test_database(&error.message)))
}

fn lines_of(rows: &[Row], line: usize) -> Result<Vec<String>, Unsupported> {
    let row_line = |row: &Row| {
        let cells: Option<Vec<String>> = row.iter().map(in_mysql).collect();
        cells.map(|cells| cells.join("\t"))
    };
    let lines: Option<Vec<String>> = rows.iter().map(row_line).collect();
    lines.ok_or_else(|| Unsupported::at(line, "bytes that are no text came back here"))
}

fn is_call(text: &str) -> bool {
    sql::first_word(text).eq_ignore_ascii_case("call")
}

/// mysqltest drops the blanks at the beginning of each line. None where a text
/// or a comment goes over the end of a line.
fn on_one_line(text: &str) -> Option<String> {
    let text = sql::without_trailing_comment(text).trim();
    if !text.contains('\n') {
        return Some(text.into());
    }
    let whole = |piece: &&str| !piece.contains('\n');
    let comments = text.contains("--") || text.contains("/*") || text.contains('#');
    let plain = !comments && sql::pieces(text).iter().all(whole);
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    plain.then(|| lines.collect::<Vec<_>>().join(" "))
}

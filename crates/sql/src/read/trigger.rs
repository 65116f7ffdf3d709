//! Triggers of PostgreSQL whose effect is simple: the function changes no row, or it
//! inserts rows into other tables.

use crate::lexer;

/// A trigger function that returns the row as it is and, at most, inserts rows into
/// other tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFunction {
    name: String,
    returns: Returned,
    /// The tables that it inserts into.
    pub inserts_into: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returned {
    New,
    Old,
    Null,
}

/// A trigger, as far as it decides whether its table is written as usual.
struct Trigger {
    table: String,
    function: String,
    before: bool,
    for_each_row: bool,
    events: Vec<String>,
}

/// Functions that the inserted values may call: they write no row.
const CALLS: [&str; 8] =
    ["values", "now", "nextval", "coalesce", "format", "concat", "row_to_json", "to_jsonb"];

fn lower(text: &str) -> Vec<String> {
    lexer::pieces(text).iter().map(|piece| piece.to_lowercase()).collect()
}

fn is_name(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Reads CREATE FUNCTION of a trigger function; none if it may do anything else.
pub(super) fn trigger_function(text: &str) -> Option<TriggerFunction> {
    let words = lower(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let at = words.iter().position(|word| *word == "function")?;
    let name = match &words[at + 1..] {
        [name, "(", ")", "returns", "trigger", ..] if is_name(name) => (*name).to_string(),
        _ => return None,
    };
    let in_plpgsql = words.windows(2).any(|two| two == ["language", "plpgsql"]);
    let body = lexer::pieces(text).into_iter().find_map(unquoted).filter(|_| in_plpgsql)?;
    let body = lower(&body);
    let body: Vec<&str> = body.iter().map(String::as_str).collect();
    let body = body.strip_suffix(&[";"]).unwrap_or(&body);
    let inside = body.strip_prefix(&["begin"])?.strip_suffix(&["end"])?.strip_suffix(&[";"])?;
    let mut statements: Vec<&[&str]> = inside.split(|piece| *piece == ";").collect();
    let returns = match statements.pop()? {
        ["return", "new"] => Returned::New,
        ["return", "old"] => Returned::Old,
        ["return", "null"] => Returned::Null,
        _ => return None,
    };
    let mut inserts_into = Vec::new();
    for statement in statements {
        match statement {
            ["raise", "debug" | "log" | "info" | "notice" | "warning", rest @ ..]
                if !rest.contains(&"(") => {}
            ["insert", "into", table, rest @ ..] if is_name(table) => {
                let calls = rest.windows(2).filter(|two| two[1] == "(" && is_name(two[0]));
                if calls.into_iter().any(|two| !CALLS.contains(&two[0])) {
                    return None;
                }
                inserts_into.push((*table).to_string());
            }
            _ => return None,
        }
    }
    Some(TriggerFunction { name, returns, inserts_into })
}

/// The text of a string or of a text between dollar signs.
fn unquoted(piece: &str) -> Option<String> {
    if let Some(inside) = piece.strip_prefix('\'').and_then(|p| p.strip_suffix('\'')) {
        return (!inside.is_empty()).then(|| inside.replace("''", "'"));
    }
    let tag = piece.strip_prefix('$')?.find('$')? + 2;
    piece.get(tag..piece.len().checked_sub(tag)?).map(String::from)
}

/// Reads CREATE TRIGGER; none if it is written in another way.
fn trigger(text: &str) -> Option<Trigger> {
    let words = lower(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rest = match words.as_slice() {
        ["create", "or", "replace", "trigger", rest @ ..] | ["create", "trigger", rest @ ..] => {
            rest
        }
        _ => return None,
    };
    let (before, events) = match rest {
        [_, "before", events @ ..] => (true, events),
        [_, "after", events @ ..] => (false, events),
        _ => return None,
    };
    let on = events.iter().position(|word| *word == "on")?;
    let (events, rest) = (&events[..on], &events[on + 1..]);
    let (table, rest) = rest.split_first().filter(|(table, _)| is_name(table))?;
    let (function, called) = match rest {
        [rest @ .., "execute", "function" | "procedure", function, "(", ")"] => (function, rest),
        _ => return None,
    };
    let for_each_row = called.windows(2).any(|two| two == ["each", "row"] || two == ["for", "row"]);
    let known = |word: &&&str| ["insert", "update", "delete", "truncate"].contains(*word);
    Some(Trigger {
        table: (*table).to_string(),
        function: (*function).to_string(),
        before,
        for_each_row,
        events: events.iter().filter(known).map(|word| (*word).to_string()).collect(),
    })
}

/// The table of a trigger and the tables that it inserts into, if it leaves the writes
/// of its table as they are.
pub fn simple_trigger(text: &str, functions: &[TriggerFunction]) -> Option<(String, Vec<String>)> {
    let trigger = trigger(text)?;
    let function = functions.iter().find(|function| function.name == trigger.function)?;
    let of_deletes = |event: &String| event == "delete";
    // What a trigger returns counts only before a change of a row; NEW is null in a DELETE.
    let returns_row = match function.returns {
        Returned::New => !trigger.events.iter().any(of_deletes),
        Returned::Old => trigger.events.iter().all(of_deletes),
        Returned::Null => false,
    };
    let as_usual = !trigger.before || !trigger.for_each_row || returns_row;
    let elsewhere = !function.inserts_into.contains(&trigger.table);
    (as_usual && elsewhere).then(|| (trigger.table, function.inserts_into.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(body: &str) -> Option<TriggerFunction> {
        trigger_function(&format!(
            "create function f() returns trigger language plpgsql as $$ {body} $$"
        ))
    }

    fn fires(body: &str, trigger: &str) -> Option<(String, Vec<String>)> {
        let functions: Vec<TriggerFunction> = function(body).into_iter().collect();
        simple_trigger(&format!("create trigger g {trigger} execute function f()"), &functions)
    }

    #[test]
    fn function_that_returns_the_row_as_it_is_changes_nothing() {
        let nothing = |table: &str| Some((table.to_string(), Vec::new()));
        assert_eq!(fires("begin return null; end;", "after update on t"), nothing("t"));
        let new = "BEGIN RAISE NOTICE 'x'; RETURN NEW; END";
        assert_eq!(fires(new, "before insert or update on t for each row"), nothing("t"));
        let old = "begin return old; end;";
        assert_eq!(fires(old, "before delete on t for each row"), nothing("t"));
        let text =
            "create function f() returns trigger language plpgsql as 'begin return new; end;'";
        assert!(trigger_function(text).is_some());
    }

    #[test]
    fn function_that_skips_a_row_is_not_simple() {
        let null = "begin return null; end;";
        assert_eq!(fires(null, "before update on t for each row"), None);
        assert!(fires(null, "before update on t for each statement").is_some());
        let new = "begin return new; end;";
        assert_eq!(fires(new, "before insert or delete on t for each row"), None);
        assert_eq!(fires(new, "instead of insert on t for each row"), None);
    }

    #[test]
    fn function_that_inserts_elsewhere_names_its_tables() {
        let log = "begin insert into log (id, at) values (new.id, now()); return new; end;";
        let expected = Some(("t".to_string(), vec!["log".to_string()]));
        assert_eq!(fires(log, "after insert on t for each row"), expected);
        assert_eq!(fires(log, "after insert on log for each row"), None);
    }

    #[test]
    fn function_that_does_more_is_not_read() {
        for body in [
            "begin new.v := 1; return new; end;",
            "begin update u set v = 1; return new; end;",
            "begin if new.v > 1 then return null; end if; return new; end;",
            "begin perform g(); return new; end;",
            "begin insert into log select g(new.id); return new; end;",
            "begin raise exception 'no'; return new; end;",
            "declare x int; begin return new; end;",
        ] {
            assert_eq!(function(body), None, "{body}");
        }
    }
}

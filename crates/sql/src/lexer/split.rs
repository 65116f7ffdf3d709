//! Splits text into statements.

use super::{has_content, next_piece};

/// The statements of a text, split at the semicolons that end them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Each statement without its semicolon, with its offset in the text.
    pub statements: Vec<(usize, String)>,
    /// The last statement had no semicolon, or a quote or comment stayed open.
    pub unfinished: bool,
}

/// Splits a text into statements. In MySQL `\'` does not close a string; elsewhere a backslash is
/// an ordinary character. The text is split without escapes unless that leaves a quote open.
pub fn split(text: &str) -> Split {
    let (plain, open) = split_reading(text, false);
    if !open {
        return plain;
    }
    match split_reading(text, true) {
        (escaped, false) => escaped,
        _ => plain,
    }
}

/// The statements, and whether a quote or comment stayed open.
fn split_reading(text: &str, escapes: bool) -> (Split, bool) {
    let mut split = Split::default();
    let mut open = false;
    let mut body = Body::default();
    let (mut start, mut at) = (0, 0);
    while let Some(piece) = next_piece(&text[at..], escapes) {
        open |= piece.open;
        let word = &text[at..at + piece.len];
        if piece.word {
            body.add_word(word);
        } else if word == ";" && body.depth == 0 {
            push_statement(&mut split.statements, text, start, at);
            start = at + 1;
            body = Body::default();
        }
        at += piece.len;
    }
    split.unfinished = open;
    if has_content(&text[start..]) {
        push_statement(&mut split.statements, text, start, text.len());
        split.unfinished = true;
    }
    (split, open)
}

/// Tracks the body of a trigger or procedure, whose semicolons do not end the statement.
#[derive(Default)]
struct Body {
    words: usize,
    creates: bool,
    compound: bool,
    depth: usize,
    /// The last word was END; the next one may name the block that it closes.
    after_end: bool,
}

impl Body {
    fn add_word(&mut self, word: &str) {
        let is = |candidates: &[&str]| candidates.iter().any(|c| word.eq_ignore_ascii_case(c));
        self.words += 1;
        if self.words == 1 {
            self.creates = is(&["create"]);
        }
        // `create or replace definer = x@y procedure`: the noun comes early.
        let noun = self.creates && self.words <= 9;
        self.compound |= noun && is(&["trigger", "procedure", "function", "event"]);
        if !self.compound {
            return;
        }
        let ended = std::mem::replace(&mut self.after_end, false);
        if ended && is(&["if", "loop", "while", "repeat", "for"]) {
            // END IF closes an IF, which was not counted.
            self.depth += 1;
        } else if ended && is(&["case"]) {
            // END CASE closed its CASE already.
        } else if is(&["begin", "case"]) {
            self.depth += 1;
        } else if is(&["end"]) {
            // At depth 0 it ends an IF or a loop that is the whole body.
            self.after_end = self.depth > 0;
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

fn push_statement(statements: &mut Vec<(usize, String)>, text: &str, start: usize, end: usize) {
    let raw = &text[start..end];
    if has_content(raw) {
        let lead = raw.len() - raw.trim_start().len();
        statements.push((start + lead, raw.trim().to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolon_inside_a_string_or_comment_ends_no_statement() {
        let split = split("select ';' -- a; b\n; select /* ; */ $x$ ; $x$;");
        let texts: Vec<&str> = split.statements.iter().map(|(_, s)| s.as_str()).collect();
        assert_eq!(texts, ["select ';' -- a; b", "select /* ; */ $x$ ; $x$"]);
        assert!(!split.unfinished);
    }

    #[test]
    fn body_of_a_trigger_or_procedure_is_one_statement() {
        let trigger = "create trigger g after insert on t begin update t set v = 3; end";
        let procedure = "create or replace procedure p() begin \
            if a then set b = 1; end if; case x when 1 then set c = 2; end case; commit; end";
        let bare = "create procedure p() if 1 then select 2 end if";
        for body in [trigger, procedure, bare] {
            let text = format!("{body}; select 1;");
            let texts: Vec<String> = split(&text).statements.into_iter().map(|(_, s)| s).collect();
            assert_eq!(texts, [body, "select 1"]);
        }
        // Outside of one, BEGIN begins a transaction.
        assert_eq!(split("begin; create table event (a int); end;").statements.len(), 3);
    }

    #[test]
    fn backslash_escapes_a_quote_only_if_the_text_has_no_other_split() {
        assert_eq!(split("select 'it\\'s'; select 2;").statements.len(), 2);
        assert_eq!(split("select 'c:\\'; select 2;").statements.len(), 2);
    }

    #[test]
    fn missing_semicolon_or_quote_makes_the_text_unfinished() {
        assert!(split("select 1").unfinished);
        assert!(split("select 'a;").unfinished);
        assert!(!split("select 1; -- done").unfinished);
    }
}

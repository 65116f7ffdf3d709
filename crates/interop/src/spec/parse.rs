//! Reads a spec: setup blocks, a teardown, sessions, permutations, in this
//! order. Names are resolved here, so that a parsed spec can be run.

use super::lexer::{KEYWORDS, Lexer, Token, error_at};
use super::{Block, Blocker, Permutation, PermutationStep, Spec, SpecSession, SpecStep, StepId};
use isolde_model::case::{Line, ParseError};

type Parsed<T> = Result<T, ParseError>;

pub fn parse(text: &str) -> Parsed<Spec> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lexer = Lexer::new(text);
    let (at, token) = lexer.next()?;
    Parser { text, lexer, at, token, spec: Spec::default() }.run()
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    /// The token that comes next, and its offset.
    at: usize,
    token: Token,
    spec: Spec,
}

impl Parser<'_> {
    fn run(mut self) -> Parsed<Spec> {
        while self.is_keyword("setup") {
            self.advance()?;
            let block = self.block("setup")?;
            self.spec.setups.push(block);
        }
        self.spec.teardown = self.optional_block("teardown")?;
        while self.is_keyword("session") {
            self.session()?;
        }
        if self.spec.sessions.is_empty() {
            return Err(self.error("expected `session NAME` (after setup and teardown blocks)"));
        }
        self.check_step_names()?;
        while self.is_keyword("permutation") {
            self.permutation()?;
        }
        match self.token {
            Token::End => Ok(self.spec),
            _ => Err(self.error(
                "expected a step, session or permutation here; the order is setup, teardown, \
                 sessions (each setup, steps, teardown), permutations",
            )),
        }
    }

    fn advance(&mut self) -> Parsed<Token> {
        let (at, token) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is_keyword(&self, word: &str) -> bool {
        matches!(&self.token, Token::Name { text, quoted: false } if text == word)
    }

    fn is_mark(&self, mark: char) -> bool {
        self.token == Token::Mark(mark)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        error_at(self.text, self.at, message)
    }

    fn line(&self) -> Line {
        Line(self.text[..self.at].matches('\n').count() + 1)
    }

    fn is_name(&self) -> bool {
        matches!(&self.token, Token::Name { text, quoted }
            if *quoted || !KEYWORDS.contains(&text.as_str()))
    }

    fn name(&mut self, what: &str) -> Parsed<String> {
        if !self.is_name() {
            return Err(self.error(match &self.token {
                Token::Name { text, .. } => {
                    format!("`{text}` is a keyword; quote it to name a {what} so")
                }
                _ => format!("expected the name of a {what}"),
            }));
        }
        match self.advance()? {
            Token::Name { text, .. } => Ok(text),
            _ => Err(self.error(format!("expected the name of a {what}"))),
        }
    }

    fn block(&mut self, what: &str) -> Parsed<Block> {
        let line = self.line();
        if !matches!(self.token, Token::Block(_)) {
            return Err(self.error(format!("expected the SQL of the {what} in {{ }}")));
        }
        match self.advance()? {
            Token::Block(sql) => Ok(Block { sql, line }),
            _ => Err(self.error(format!("expected the SQL of the {what} in {{ }}"))),
        }
    }

    fn optional_block(&mut self, keyword: &str) -> Parsed<Option<Block>> {
        if !self.is_keyword(keyword) {
            return Ok(None);
        }
        self.advance()?;
        self.block(keyword).map(Some)
    }

    fn session(&mut self) -> Parsed<()> {
        self.advance()?;
        let name = self.name("session")?;
        let setup = self.optional_block("setup")?;
        let mut steps = Vec::new();
        while self.is_keyword("step") {
            let line = self.line();
            self.advance()?;
            let name = self.name("step")?;
            let sql = self.block("step")?.sql;
            steps.push(SpecStep { name, sql, line });
        }
        if steps.is_empty() {
            return Err(self.error(format!("session `{name}` needs a step: `step NAME {{ SQL }}`")));
        }
        let teardown = self.optional_block("teardown")?;
        self.spec.sessions.push(SpecSession { name, setup, steps, teardown });
        Ok(())
    }

    /// Permutations name steps without their session, so a name is unique.
    fn check_step_names(&self) -> Parsed<()> {
        let ids: Vec<StepId> = self.spec.step_ids().collect();
        for (i, id) in ids.iter().enumerate() {
            let step = self.spec.step(*id);
            if let Some(first) = ids[..i].iter().find(|f| self.spec.step(**f).name == step.name) {
                let offset = line_offset(self.text, step.line.0);
                let message = format!(
                    "there is a step `{}` already, in line {}",
                    step.name,
                    self.spec.step(*first).line.0
                );
                return Err(error_at(self.text, offset, message));
            }
        }
        Ok(())
    }

    fn permutation(&mut self) -> Parsed<()> {
        let line = self.line();
        self.advance()?;
        let mut steps = Vec::new();
        while self.is_name() {
            let id = self.step_name()?;
            let blockers = if self.is_mark('(') { self.blockers(id)? } else { Vec::new() };
            steps.push(PermutationStep { id, blockers });
        }
        if steps.is_empty() {
            return Err(self.error("a permutation names its steps in order"));
        }
        self.spec.permutations.push(Permutation { steps, line });
        Ok(())
    }

    fn step_name(&mut self) -> Parsed<StepId> {
        let at = self.at;
        let name = self.name("step")?;
        self.spec
            .find_step(&name)
            .ok_or_else(|| error_at(self.text, at, format!("no session has a step `{name}`")))
    }

    fn blockers(&mut self, of: StepId) -> Parsed<Vec<Blocker>> {
        let mut blockers = Vec::new();
        loop {
            // Past the bracket or the comma.
            self.advance()?;
            let at = self.at;
            if self.is_mark('*') {
                self.advance()?;
                blockers.push(Blocker::Once);
            } else {
                let id = self.step_name()?;
                if id.session == of.session {
                    let message = "a step cannot wait for a step of its own session";
                    return Err(error_at(self.text, at, message));
                }
                blockers.push(match self.notices()? {
                    Some(count) => Blocker::Notices(id, count),
                    None => Blocker::Step(id),
                });
            }
            if self.is_mark(')') {
                self.advance()?;
                return Ok(blockers);
            }
            if !self.is_mark(',') {
                return Err(self.error("expected , or ) after what the step waits for"));
            }
        }
    }

    fn notices(&mut self) -> Parsed<Option<u64>> {
        if !self.is_keyword("notices") {
            return Ok(None);
        }
        self.advance()?;
        match self.token {
            Token::Number(count) => {
                self.advance()?;
                Ok(Some(count))
            }
            _ => Err(self.error("expected how many notices, such as `(s2 notices 1)`")),
        }
    }
}

fn line_offset(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lose_the_blanks_at_their_ends_and_keep_their_lines() {
        let spec = parse("session s step a {  select 1;\t} step b {\n  select 2;\n }").unwrap();
        assert_eq!(spec.sessions[0].steps[0].sql, "select 1;");
        assert_eq!(spec.sessions[0].steps[1].sql, "\n  select 2;\n");
    }

    #[test]
    fn blockers_are_read_in_all_their_forms() {
        let text = "session a step \"a \"\"1\" {x} session b step b1 {x} session c step c1 {x}\n\
                    permutation \"a \"\"1\"(*, b1, c1 notices 2) b1 c1";
        let spec = parse(text).unwrap();
        let (b1, c1) = (spec.find_step("b1").unwrap(), spec.find_step("c1").unwrap());
        assert_eq!(
            spec.permutations[0].steps[0].blockers,
            [Blocker::Once, Blocker::Step(b1), Blocker::Notices(c1, 2)]
        );
        assert_eq!(spec.step(spec.permutations[0].steps[0].id).name, "a \"1");
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        for (text, line, column) in [
            ("", 1, 1),
            ("session s", 1, 10),
            ("session s step a {x", 1, 18),
            ("session s step a {x}\npermutation a zz", 2, 15),
            ("session s step a {x}\nstep a {y}", 2, 1),
            ("session s step a {x}\npermutation a (b", 2, 16),
            ("session \"s\nstep a {x}", 1, 9),
            ("setup { } session step a {x}", 1, 19),
            ("teardown {} setup {} session s step a {x}", 1, 13),
            ("session s step a {x} ?", 1, 22),
            ("session s step a {x}\npermutation a(a)", 2, 15),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
    }
}

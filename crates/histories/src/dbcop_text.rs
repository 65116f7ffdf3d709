//! dbcop's text format: `[x:=1 y==2 z==?]` is a transaction that wrote x, read version 2 of y, and
//! read the initial version of z. A `!` after it means that it did not commit, `---` separates
//! sessions, and `//` starts a comment.

use crate::error::{ReadError, excerpt};
use crate::lines::{Lines, read_lines};
use crate::source::Source;
use crate::words::{NIL, Resolver, Words};
use isolde_checker::{Builder, History, Session, Status};

pub(crate) fn detect(text: &[u8]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.into_iter().find(|line| {
        !line.is_empty() && !line.starts_with(b"//") && !line.iter().all(|byte| *byte == b'-')
    });
    first.is_some_and(|line| {
        let event = |mark: &[u8]| line.windows(2).any(|window| window == mark);
        line.starts_with(b"[") && !line.contains(&b'"') && (event(b":=") || event(b"=="))
    })
}

pub(crate) fn read(source: &mut Source) -> Result<History, ReadError> {
    let mut builder = Builder::new();
    let mut session: Option<Session> = None;
    let mut number = 0;
    read_lines(source, |block: Block| {
        let mut words = Resolver::new(&block.words);
        let mut at = 0;
        for entry in &block.entries {
            let Entry::Transaction { end, committed } = *entry else {
                session = None;
                continue;
            };
            let session = *session.get_or_insert_with(|| {
                number += 1;
                builder.numbered_session(number)
            });
            builder.begin(session);
            for (write, variable, version) in &block.events[at..end] {
                let item = words.item(&mut builder, *variable);
                let value = words.value(&mut builder, *version);
                match write {
                    true => builder.write(item, value),
                    false => builder.read(item, value),
                }
            }
            at = end;
            builder.end(if committed { Status::Committed } else { Status::Aborted });
        }
        Ok(())
    })?;
    Ok(builder.finish())
}

#[derive(Default)]
struct Block {
    entries: Vec<Entry>,
    events: Vec<(bool, u64, u64)>,
    words: Words,
}

enum Entry {
    Transaction { end: usize, committed: bool },
    EndOfSession,
}

impl Lines for Block {
    fn line(&mut self, _: u32, line: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(line).map_err(|_| "this line is not UTF-8")?;
        let mut rest = text.split("//").next().unwrap_or_default().trim();
        if !rest.is_empty() && rest.bytes().all(|byte| byte == b'-') {
            self.entries.push(Entry::EndOfSession);
            return Ok(());
        }
        while !rest.is_empty() {
            let wrong = || {
                format!(
                    "expected a transaction such as [x:=1 y==2], not {}",
                    excerpt(rest.as_bytes())
                )
            };
            let inside = rest.strip_prefix('[').ok_or_else(wrong)?;
            let (inside, after) = inside.split_once(']').ok_or_else(wrong)?;
            for event in inside.split_whitespace() {
                self.event(event)?;
            }
            let after = after.trim_start();
            let committed = !after.starts_with('!');
            rest = after.strip_prefix('!').unwrap_or(after).trim_start();
            self.entries.push(Entry::Transaction { end: self.events.len(), committed });
        }
        Ok(())
    }
}

impl Block {
    fn event(&mut self, event: &str) -> Result<(), String> {
        let wrong = || format!("`{event}` is none of x:=1, x==1, x==?");
        let (variable, version, write) = match event.split_once(":=") {
            Some((variable, version)) => (variable, version, true),
            None => {
                let (variable, version) = event.split_once("==").ok_or_else(wrong)?;
                (variable, version, false)
            }
        };
        let digits = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        if variable.is_empty() || !(digits || (version == "?" && !write)) {
            return Err(wrong());
        }
        let version = if digits { self.words.integer(version) } else { NIL };
        let variable = self.words.integer(variable);
        self.events.push((write, variable, version));
        Ok(())
    }
}

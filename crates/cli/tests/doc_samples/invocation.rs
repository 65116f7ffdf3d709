//! Commands that the pages mention, and whether the program has them.

use crate::page::Page;
use std::collections::BTreeMap;
use std::process::Command;

/// `isolde COMMAND … --option …`, somewhere in a page.
pub struct Invocation {
    place: String,
    command: String,
    options: Vec<String>,
}

/// The help texts of all commands.
pub struct Known {
    help: BTreeMap<String, String>,
}

impl Known {
    pub fn ask() -> Known {
        let names = help(&["--help"]);
        let names = names.split("\nCommands:\n").nth(1).expect("a list of commands");
        let names = names.split("\n\n").next().unwrap_or_default();
        let names = names.lines().filter_map(|line| line.split_whitespace().next());
        let help = names.map(|name| (name.to_owned(), help(&[name, "--help"]))).collect();
        Known { help }
    }

    pub fn problem(&self, invocation: &Invocation) -> Option<String> {
        let Invocation { place, command, options } = invocation;
        let Some(help) = self.help.get(command) else {
            return Some(format!("{place}: there is no command `isolde {command}`"));
        };
        let has = |option: &String| {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            help.split(|c| !word(c)).any(|one| one == option)
        };
        let option = options.iter().find(|option| !has(option))?;
        Some(format!("{place}: `isolde {command}` has no option {option}"))
    }
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_isolde")).args(arguments).output();
    String::from_utf8_lossy(&output.expect("isolde runs").stdout).into_owned()
}

/// The invocations in a page: in code blocks at the beginning of a command, and in inline code.
pub fn in_page(page: &Page) -> Vec<Invocation> {
    let mut found = Vec::new();
    let mut joined = String::new();
    for (index, line) in page.lines.iter().enumerate() {
        let is_code = page.is_code(index) || line.starts_with("    ");
        let place = page.place(index);
        if !is_code {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter_map(|span| invocation(&place, span)));
            continue;
        }
        joined.push_str(line.trim());
        if let Some(rest) = joined.strip_suffix('\\') {
            joined = format!("{rest} ");
            continue;
        }
        let line = std::mem::take(&mut joined);
        let line = line.strip_prefix("$ ").unwrap_or(&line);
        let line = line.split(" #").next().unwrap_or(line);
        let commands = line.split(" && ").flat_map(|part| part.split(" | "));
        found.extend(commands.filter_map(|command| invocation(&place, command)));
    }
    found
}

fn invocation(place: &str, text: &str) -> Option<Invocation> {
    let mut words = text.trim().strip_prefix("isolde ")?.split_whitespace();
    let command = words.find(|word| !word.starts_with('-'))?;
    let is_name = command.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let option = |word: &str| {
        let word = word.trim_start_matches('[').strip_prefix("--")?;
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        Some(format!("--{}", &word[..end.unwrap_or(word.len())]))
    };
    let options = words.filter_map(option).collect();
    is_name.then(|| Invocation { place: place.to_owned(), command: command.to_owned(), options })
}

//! The library of known bugs: every case below a folder, or the copy that was
//! built into this program.

use crate::commands::read_file;
use crate::exit_code::{ExitCode, Failure};
use isolde_core::Level;
use isolde_core::case::{self, Case};
use isolde_core::recording::{self, Outcomes};
use regex::Regex;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

pub struct Entry {
    pub case: Case,
    /// Where a recording is written; none for the built-in copy.
    pub file: Option<PathBuf>,
}

impl Entry {
    /// The folder of the case: the engine whose bug it is, or a collection.
    pub fn group(&self) -> &str {
        self.case.id.split_once('/').map_or("", |(group, _)| group)
    }

    pub fn kind_name(&self) -> &'static str {
        let kind = self.case.kind.unwrap_or(case::CaseKind::Scenario);
        case::CaseKind::ALL.iter().find(|(_, k)| *k == kind).map_or("", |(name, _)| *name)
    }

    /// Where it was recorded and what it showed there, in order.
    pub fn seen(&self) -> Vec<Seen> {
        recording::recordings(&self.case)
            .into_iter()
            .map(|(place, outcomes)| Seen {
                engine: place.on.engine.clone(),
                version: place.on.from.clone().unwrap_or_default(),
                level: place.level,
                showing: showing_of(&self.case, &outcomes, place.level),
            })
            .collect()
    }
}

pub struct Seen {
    pub engine: String,
    pub version: String,
    pub level: Level,
    pub showing: Showing,
}

/// Whether a bug shows at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Showing {
    Shows,
    /// In some of the outcomes that the engine leaves open.
    Sometimes,
    NotSeen,
    /// The target does not accept the setup.
    Refused,
    /// The case does not say when it shows.
    Unjudged,
}

impl Showing {
    pub fn shows(self) -> bool {
        matches!(self, Showing::Shows | Showing::Sometimes)
    }
}

/// What all outcomes recorded at one place say together.
pub fn showing_of(case: &Case, outcomes: &Outcomes, level: Level) -> Showing {
    let each: Vec<Showing> = outcomes.iter().map(|o| showing(case, o, level)).collect();
    match each.first() {
        Some(first) if each.iter().all(|v| v == first) => *first,
        _ if each.contains(&Showing::Shows) => Showing::Sometimes,
        _ if each.contains(&Showing::NotSeen) => Showing::NotSeen,
        _ => Showing::Unjudged,
    }
}

pub fn showing(case: &Case, claims: &[case::Claim], level: Level) -> Showing {
    if claims.iter().any(|c| c.subject == case::Subject::Setup) {
        return Showing::Refused;
    }
    match recording::shows(case, claims, level) {
        Some(true) => Showing::Shows,
        Some(false) => Showing::NotSeen,
        None => Showing::Unjudged,
    }
}

/// The cases whose id or title matches, by id.
pub fn load(folder: Option<&Path>, regex: Option<&str>) -> Result<Vec<Entry>, Failure> {
    let wanted = regex
        .map(|text| Regex::new(&format!("(?i){text}")))
        .transpose()
        .map_err(|e| Failure::new(ExitCode::Usage, e.to_string()))?;
    let here = Path::new("cases");
    let folder = folder.or_else(|| here.is_dir().then_some(here));
    let mut entries = match folder {
        Some(folder) => read_folder(folder)?,
        None => built_in()?,
    };
    if let Some(wanted) = &wanted {
        entries.retain(|e| wanted.is_match(&e.case.id) || wanted.is_match(&e.case.title));
    }
    if entries.is_empty() {
        let what = regex.map_or("no cases".into(), |r| format!("no case matches {r}"));
        return Err(Failure::new(ExitCode::Usage, what));
    }
    entries.sort_by_key(|e| order(&e.case.id));
    Ok(entries)
}

/// Numbers in ids count as numbers: 8393 comes before 18956.
fn order(id: &str) -> (String, u64, String) {
    let digits: String =
        id.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let lead: String = id.chars().take_while(|c| !c.is_ascii_digit()).collect();
    (lead, digits.parse().unwrap_or(0), id.to_string())
}

fn built_in() -> Result<Vec<Entry>, Failure> {
    BUILT_IN.iter().map(|(name, text)| entry(name, text, None)).collect()
}

fn read_folder(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let failed = |e: std::io::Error| {
        Failure::new(ExitCode::BadInput, format!("cannot read {}: {e}", folder.display()))
    };
    let mut entries = Vec::new();
    for found in std::fs::read_dir(folder).map_err(failed)? {
        let path = found.map_err(failed)?.path();
        if path.is_dir() {
            entries.append(&mut read_folder(&path)?);
        } else if path.extension().is_some_and(|e| e == "case") {
            let text = read_file(&path)?;
            entries.push(entry(&path.display().to_string(), &text, Some(path.clone()))?);
        }
    }
    Ok(entries)
}

fn entry(name: &str, text: &str, file: Option<PathBuf>) -> Result<Entry, Failure> {
    let case =
        case::parse(text).map_err(|e| Failure::new(ExitCode::BadInput, format!("{name}: {e}")))?;
    Ok(Entry { case, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_in_canonical_form_and_named_by_its_file() {
        for (name, text) in BUILT_IN {
            let case = case::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(case::format(&case), *text, "{name}: run `isolde fmt`");
            assert_eq!(format!("{}.case", case.id), *name);
            assert!(!case.title.is_empty() && case.kind.is_some(), "{name}");
        }
    }

    #[test]
    fn ids_are_ordered_by_their_numbers() {
        let mut ids = ["tidb/18956", "mysql/90987", "tidb/8393", "mysql/100293"];
        ids.sort_by_key(|id| order(id));
        assert_eq!(ids, ["mysql/90987", "mysql/100293", "tidb/8393", "tidb/18956"]);
    }
}

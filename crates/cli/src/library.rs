//! The library of known bugs: every case below a folder, or the copy that is
//! built into this program.

use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use isolde_model::Level;
use isolde_model::case;
use isolde_model::case::Case;
use isolde_model::recording;
use isolde_model::recording::Outcomes;
use regex::Regex;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

pub struct Entry {
    pub case: Case,
    /// The file to record into; none for the built-in copy.
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

    /// Whether the bug occurred at each place where the case was recorded.
    pub fn occurrences(&self) -> Vec<Occurrence> {
        recording::recordings(&self.case)
            .into_iter()
            .map(|(place, outcomes)| Occurrence {
                engine: place.on.engine.clone(),
                version: place.on.from.clone().unwrap_or_default(),
                level: place.level,
                status: status_of_outcomes(&self.case, &outcomes, place.level),
            })
            .collect()
    }
}

/// Whether a bug occurs on one version of an engine at one level.
pub struct Occurrence {
    pub engine: String,
    pub version: String,
    pub level: Level,
    pub status: BugStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BugStatus {
    Occurs,
    /// In some of the outcomes, where the engine is nondeterministic.
    Sometimes,
    NotSeen,
    /// The target rejects the setup.
    Refused,
    /// The case does not define when the bug occurs.
    Undefined,
}

impl BugStatus {
    pub fn occurs(self) -> bool {
        matches!(self, BugStatus::Occurs | BugStatus::Sometimes)
    }
}

/// The status over all outcomes that were recorded at one place.
fn status_of_outcomes(case: &Case, outcomes: &Outcomes, level: Level) -> BugStatus {
    let each: Vec<BugStatus> = outcomes.iter().map(|o| status(case, o, level)).collect();
    match each.first() {
        Some(first) if each.iter().all(|v| v == first) => *first,
        _ if each.contains(&BugStatus::Occurs) => BugStatus::Sometimes,
        _ if each.contains(&BugStatus::NotSeen) => BugStatus::NotSeen,
        _ => BugStatus::Undefined,
    }
}

/// The status in one outcome, given as the claims that hold in it.
pub fn status(case: &Case, claims: &[case::Claim], level: Level) -> BugStatus {
    if claims.iter().any(|c| c.subject == case::Subject::Setup) {
        return BugStatus::Refused;
    }
    match recording::shows(case, claims, level) {
        Some(true) => BugStatus::Occurs,
        Some(false) => BugStatus::NotSeen,
        None => BugStatus::Undefined,
    }
}

/// Loads the cases whose id or title matches, sorted by id.
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
        let what = regex.map_or("the library is empty".into(), |r| format!("no case matches {r}"));
        return Err(Failure::new(ExitCode::Usage, what));
    }
    entries.sort_by_key(|e| sort_key(&e.case.id));
    Ok(entries)
}

/// The sort key of an id: numbers in it compare as numbers, 8393 before 18956.
fn sort_key(id: &str) -> (String, u64, String) {
    let digits: String =
        id.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let lead: String = id.chars().take_while(|c| !c.is_ascii_digit()).collect();
    (lead, digits.parse().unwrap_or(0), id.to_string())
}

/// The report of a bug in the built-in library, as a web address.
pub fn link_of(id: &str) -> Option<String> {
    let file = format!("{id}.case");
    let (_, text) = BUILT_IN.iter().find(|(name, _)| *name == file)?;
    case::parse(text).ok()?.link
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
            let text = read_text(&path)?;
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
    fn every_case_of_the_library_is_formatted_and_named_by_its_file() {
        for (name, text) in BUILT_IN {
            let case = case::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(case::format(&case), *text, "{name}: run `isolde fmt`");
            assert_eq!(format!("{}.case", case.id), *name);
            assert!(!case.title.is_empty() && case.kind.is_some(), "{name}");
        }
    }

    #[test]
    fn link_of_is_the_link_in_the_case_file() {
        let link = link_of("mariadb/mdev-26642");
        assert_eq!(link.as_deref(), Some("https://jira.mariadb.org/browse/MDEV-26642"));
        assert_eq!(link_of("mysql/1\" onclick="), None);
    }

    #[test]
    fn ids_are_sorted_by_their_numbers() {
        let mut ids = ["tidb/18956", "mysql/90987", "tidb/8393", "mysql/100293"];
        ids.sort_by_key(|id| sort_key(id));
        assert_eq!(ids, ["mysql/90987", "mysql/100293", "tidb/8393", "tidb/18956"]);
    }
}

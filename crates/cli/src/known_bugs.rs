//! Where the bugs of the library occur, from the recordings: one phrase for
//! `isolde list`, and the page `docs/known-bugs.md`.

use crate::library::{BugStatus, Entry, Occurrence};
use isolde_model::Level;
use std::fmt::Write;

/// The occurrences of one bug on one target, over its levels.
struct OnTarget {
    engine: String,
    version: String,
    occurs: Vec<(Level, BugStatus)>,
    recorded: usize,
    refused: usize,
    defined: bool,
}

fn by_target(occurrences: &[Occurrence]) -> Vec<OnTarget> {
    let mut targets: Vec<OnTarget> = Vec::new();
    for one in occurrences {
        let same = |t: &&mut OnTarget| t.engine == one.engine && t.version == one.version;
        let target = match targets.iter_mut().find(same) {
            Some(target) => target,
            None => {
                targets.push(OnTarget {
                    engine: one.engine.clone(),
                    version: one.version.clone(),
                    occurs: Vec::new(),
                    recorded: 0,
                    refused: 0,
                    defined: false,
                });
                targets.last_mut().expect("just pushed")
            }
        };
        target.recorded += 1;
        target.refused += usize::from(one.status == BugStatus::Refused);
        target.defined |= one.status != BugStatus::Undefined;
        if one.status.occurs() {
            target.occurs.push((one.level, one.status));
        }
    }
    targets
}

impl OnTarget {
    fn engine_without_mode(&self) -> &str {
        self.engine.split('+').next().unwrap_or(&self.engine)
    }

    /// `10.11.19`, or `10.11.19 +snapshot` in a mode.
    fn version_and_mode(&self) -> String {
        match self.engine.split_once('+') {
            Some((_, mode)) => format!("{} +{mode}", self.version),
            None => self.version.clone(),
        }
    }

    /// The levels at which the bug occurs, or why there are none.
    fn cell(&self) -> String {
        let name = |(level, status): &(Level, BugStatus)| match status {
            BugStatus::Sometimes => format!("{} sometimes", level.short()),
            _ => level.short().to_string(),
        };
        let levels: Vec<String> = self.occurs.iter().map(name).collect();
        let always = self.occurs.iter().all(|(_, v)| *v == BugStatus::Occurs);
        match levels.len() {
            _ if self.refused == self.recorded => "refused".into(),
            _ if !self.defined => "recorded".into(),
            0 => "not seen".into(),
            1 if self.recorded == 1 => levels[0].clone(),
            n if n == self.recorded && always => "all levels".into(),
            _ => levels.join(" "),
        }
    }
}

/// Where a bug occurs, such as `mysql 5.7.19, 8.0.33 RC RR; 9.7.4 RR`, or where
/// it was not seen.
pub fn where_it_occurs(occurrences: &[Occurrence]) -> String {
    let targets = by_target(occurrences);
    if targets.is_empty() {
        return "not recorded".into();
    }
    if !targets.iter().any(|t| t.defined) {
        return "–".into();
    }
    let grouped = |wanted: &dyn Fn(&OnTarget) -> bool, with_cell: bool| {
        let mut groups: Vec<(String, String, Vec<String>)> = Vec::new();
        for target in targets.iter().filter(|t| wanted(t)) {
            let cell = if with_cell { target.cell() } else { String::new() };
            match groups.iter_mut().find(|(e, c, _)| *e == target.engine && *c == cell) {
                Some((_, _, versions)) => versions.push(target.version.clone()),
                None => groups.push((target.engine.clone(), cell, vec![target.version.clone()])),
            }
        }
        let texts: Vec<String> = groups
            .into_iter()
            .map(|(engine, cell, versions)| {
                format!("{engine} {} {cell}", versions.join(", ")).trim_end().to_string()
            })
            .collect();
        texts.join("; ")
    };
    match grouped(&|t| !t.occurs.is_empty(), true) {
        text if text.is_empty() => match grouped(&|t| t.refused < t.recorded, false) {
            ran if ran.is_empty() => format!("refused by {}", grouped(&|_| true, false)),
            ran => format!("not seen on {ran}"),
        },
        text => text,
    }
}

/// One sentence about how many reports and scenarios there are.
pub fn count(entries: &[Entry]) -> String {
    let occurs = |e: &&Entry| e.occurrences().iter().any(|o| o.status.occurs());
    let (scenarios, bugs): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|e| e.kind_name() == "scenario");
    format!(
        "{} reports and {} scenarios; {} of the reports occur on a recorded version.",
        bugs.len(),
        scenarios.len(),
        bugs.iter().filter(|e| occurs(e)).count()
    )
}

pub fn markdown(entries: &[Entry]) -> String {
    let mut out = String::from(
        "# Known bugs: where they occur

This page is generated from the library in `cases/` by `isolde list --markdown`; do not edit it.
Every cell was recorded by running the case (`isolde test --record`), with the isolation level set
in each session before it began.

A cell lists the levels at which the bug occurs: RU READ UNCOMMITTED, RC READ COMMITTED, RR
REPEATABLE READ, SI SNAPSHOT, SER SERIALIZABLE. *Sometimes* means that the engine is not
deterministic there. *Not seen* means that the steps ran and the bug did not occur; *refused* that
the server rejects the setup (an older version, or an option of debug builds); *recorded* that the
case does not define when the bug occurs. An empty cell means that the case is not for that engine.
A cell applies to all versions and modes in the list above its table, unless it names some.

A case marked *(rebuilt)* comes from a paper whose figure does not print all steps; `rebuilt:` in
its file names what it was made from.

The kinds are `bug`, `fixed` (in a release, according to the report), `documented` (the manual
allows it), `disputed` (the maintainers disagree, or it is unconfirmed) and `scenario`.

",
    );
    let _ = writeln!(out, "{}", count(entries));
    let mut groups: Vec<&str> = entries.iter().map(Entry::group).collect();
    groups.dedup();
    for group in groups {
        let mine: Vec<&Entry> = entries.iter().filter(|e| e.group() == group).collect();
        section(&mut out, group, &mine);
    }
    out
}

/// Writes the table of one group, with one column per engine. The versions and
/// modes of an engine share a column: their cells are mostly equal, and one
/// column each would not fit on a page.
fn section(out: &mut String, group: &str, entries: &[&Entry]) {
    let targets: Vec<Vec<OnTarget>> = entries.iter().map(|e| by_target(&e.occurrences())).collect();
    let mut all: Vec<(&str, String)> =
        targets.iter().flatten().map(|t| (t.engine_without_mode(), t.version_and_mode())).collect();
    all.sort_by_key(|(engine, version)| (engine.to_string(), version_order(version)));
    all.dedup();
    let mut columns: Vec<&str> = all.iter().map(|(engine, _)| *engine).collect();
    columns.dedup();
    let _ = write!(out, "\n## {group}\n\n");
    let versions = |engine: &str| -> Vec<&str> {
        all.iter().filter(|(e, _)| *e == engine).map(|(_, v)| v.as_str()).collect()
    };
    for engine in &columns {
        let _ = writeln!(out, "- {engine}: {}", versions(engine).join(", "));
    }
    let _ = write!(out, "\n| case | kind | what |");
    for engine in &columns {
        let _ = write!(out, " {engine} |");
    }
    let _ = writeln!(out, "\n|---|---|---|{}", "---|".repeat(columns.len()));
    for (entry, targets) in entries.iter().zip(&targets) {
        let name = entry.case.id.split_once('/').map_or(entry.case.id.as_str(), |(_, n)| n);
        let name = match &entry.case.link {
            Some(link) => format!("[{name}]({link})"),
            None => name.to_string(),
        };
        let mut title = entry.case.title.replace('|', "\\|");
        if entry.case.rebuilt.is_some() {
            title.push_str(" *(rebuilt)*");
        }
        let _ = write!(out, "| {name} | {} | {title} |", entry.kind_name());
        for engine in &columns {
            let mine: Vec<&OnTarget> =
                targets.iter().filter(|t| t.engine_without_mode() == *engine).collect();
            let _ = write!(out, " {} |", shared_cell(&mine, versions(engine).len()));
        }
        out.push('\n');
    }
}

/// The cell of an engine over its versions. Versions are named only where they
/// differ, or where not all of them were tried.
fn shared_cell(targets: &[&OnTarget], versions: usize) -> String {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for target in targets {
        let cell = target.cell();
        match groups.iter_mut().find(|(c, _)| *c == cell) {
            Some((_, names)) => names.push(target.version_and_mode()),
            None => groups.push((cell, vec![target.version_and_mode()])),
        }
    }
    if let [(cell, names)] = groups.as_slice()
        && names.len() == versions
    {
        return cell.clone();
    }
    for (_, names) in &mut groups {
        names.sort_by_key(|name| version_order(name));
    }
    let text = |(cell, names): &(String, Vec<String>)| format!("{cell}: {}", names.join(", "));
    groups.iter().map(text).collect::<Vec<_>>().join("<br>")
}

/// The sort key of a version: plain versions before modes, numbers as numbers.
fn version_order(text: &str) -> (String, Vec<u64>) {
    let (version, mode) = text.split_once(' ').unwrap_or((text, ""));
    (mode.into(), version.split('.').map(|p| p.parse().unwrap_or(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrence(version: &str, level: Level, status: BugStatus) -> Occurrence {
        Occurrence { engine: "mysql".into(), version: version.into(), level, status }
    }

    #[test]
    fn shared_cell_names_versions_only_where_they_differ() {
        use BugStatus::{NotSeen, Occurs, Sometimes};
        let rc = Level::ReadCommitted;
        let mut all = vec![occurrence("5.7.19", rc, Occurs), occurrence("10.2.1", rc, Occurs)];
        let cell = |all: &[Occurrence], versions| {
            let targets = by_target(all);
            shared_cell(&targets.iter().collect::<Vec<_>>(), versions)
        };
        assert_eq!(cell(&all, 2), "RC");
        assert_eq!(cell(&all, 3), "RC: 5.7.19, 10.2.1");
        all.push(occurrence("9.7.4", rc, NotSeen));
        let engine = "mysql+x".to_string();
        all.push(Occurrence { engine, ..occurrence("9.7.4", rc, Sometimes) });
        assert_eq!(
            cell(&all, 4),
            "RC: 5.7.19, 10.2.1<br>not seen: 9.7.4<br>RC sometimes: 9.7.4 +x"
        );
        assert_eq!(cell(&[], 2), "");
    }

    #[test]
    fn where_it_occurs_groups_versions_with_equal_levels() {
        use BugStatus::{NotSeen, Occurs};
        let (rc, rr) = (Level::ReadCommitted, Level::RepeatableRead);
        let mut all = vec![
            occurrence("5.7.19", rc, Occurs),
            occurrence("5.7.19", rr, NotSeen),
            occurrence("8.0.33", rc, Occurs),
            occurrence("8.0.33", rr, NotSeen),
            occurrence("9.7.4", rc, NotSeen),
        ];
        assert_eq!(where_it_occurs(&all), "mysql 5.7.19, 8.0.33 RC");
        all.retain(|s| s.status == NotSeen);
        assert_eq!(where_it_occurs(&all), "not seen on mysql 5.7.19, 8.0.33, 9.7.4");
        assert_eq!(where_it_occurs(&[]), "not recorded");
        let refused = [occurrence("5.7.19", rc, BugStatus::Refused)];
        assert_eq!(where_it_occurs(&refused), "refused by mysql 5.7.19");
    }
}

//! Where bugs show, from what is recorded: one phrase for a list, and the
//! table of bugs, versions and levels in `docs/known-bugs.md`.

use crate::library::{Entry, Seen, Showing};
use isolde_core::Level;
use std::fmt::Write;

/// What one target showed, over its levels.
struct OnTarget {
    engine: String,
    version: String,
    shows: Vec<(Level, Showing)>,
    recorded: usize,
    refused: usize,
    judged: bool,
}

fn by_target(seen: &[Seen]) -> Vec<OnTarget> {
    let mut targets: Vec<OnTarget> = Vec::new();
    for one in seen {
        let same = |t: &&mut OnTarget| t.engine == one.engine && t.version == one.version;
        let target = match targets.iter_mut().find(same) {
            Some(target) => target,
            None => {
                targets.push(OnTarget {
                    engine: one.engine.clone(),
                    version: one.version.clone(),
                    shows: Vec::new(),
                    recorded: 0,
                    refused: 0,
                    judged: false,
                });
                targets.last_mut().expect("just pushed")
            }
        };
        target.recorded += 1;
        target.refused += usize::from(one.showing == Showing::Refused);
        target.judged |= one.showing != Showing::Unjudged;
        if one.showing.shows() {
            target.shows.push((one.level, one.showing));
        }
    }
    targets
}

impl OnTarget {
    fn plain(&self) -> &str {
        self.engine.split('+').next().unwrap_or(&self.engine)
    }

    /// `10.11.19`, or `10.11.19 +snapshot` in a mode.
    fn version_and_mode(&self) -> String {
        match self.engine.split_once('+') {
            Some((_, mode)) => format!("{} +{mode}", self.version),
            None => self.version.clone(),
        }
    }

    fn cell(&self) -> String {
        let name = |(level, showing): &(Level, Showing)| match showing {
            Showing::Sometimes => format!("{} sometimes", level.short()),
            _ => level.short().to_string(),
        };
        let levels: Vec<String> = self.shows.iter().map(name).collect();
        let always = self.shows.iter().all(|(_, v)| *v == Showing::Shows);
        match levels.len() {
            _ if self.refused == self.recorded => "refused".into(),
            _ if !self.judged => "recorded".into(),
            0 => "not seen".into(),
            1 if self.recorded == 1 => levels[0].clone(),
            n if n == self.recorded && always => "all levels".into(),
            _ => levels.join(" "),
        }
    }
}

/// `mysql 5.7.19, 8.0.33 RC RR; 9.7.4 RR`, or where it was not seen.
pub fn where_it_shows(seen: &[Seen]) -> String {
    let targets = by_target(seen);
    if targets.is_empty() {
        return "not recorded".into();
    }
    if !targets.iter().any(|t| t.judged) {
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
    match grouped(&|t| !t.shows.is_empty(), true) {
        text if text.is_empty() => match grouped(&|t| t.refused < t.recorded, false) {
            ran if ran.is_empty() => format!("refused by {}", grouped(&|_| true, false)),
            ran => format!("not seen on {ran}"),
        },
        text => text,
    }
}

/// `97 bugs and 30 scenarios; 40 of the bugs show here`.
pub fn count(entries: &[Entry]) -> String {
    let shows = |e: &&Entry| e.seen().iter().any(|s| s.showing.shows());
    let (scenarios, bugs): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|e| e.kind_name() == "scenario");
    format!(
        "{} reports and {} scenarios; {} of the reports show on a version recorded here.",
        bugs.len(),
        scenarios.len(),
        bugs.iter().filter(|e| shows(e)).count()
    )
}

pub fn markdown(entries: &[Entry]) -> String {
    let mut out = String::from(
        "# Known bugs: where they show

This page is made from the library in `cases/` by `isolde list --markdown`; do not edit it.
Every cell was recorded by running the case (`isolde test --record`), with the level set in each
session before it began. A cell lists the levels at which the bug shows: RU READ UNCOMMITTED, RC
READ COMMITTED, RR REPEATABLE READ, SI SNAPSHOT, SER SERIALIZABLE; *sometimes* means that the
engine leaves it open. *Not seen* means that the steps ran and the bug did not show; *refused*,
that the server does not accept the setup (an older version, or an option of debug builds);
*recorded*, that the case does not say what showing means; an empty cell, that the case is not
meant for that engine. A cell stands for all versions and modes that the list above its table
names, unless it names some.

A case marked *(rebuilt)* is of a paper whose figure prints no steps to copy, or not all of them;
`rebuilt:` in its file says from what it was made.

The kinds are `bug`, `fixed` (in a release, says the report), `documented` (the manual allows
it), `disputed` (the maintainers see it otherwise, or nobody has confirmed it) and `scenario`.

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

/// A column an engine: its versions and modes share it, since they mostly
/// showed the same, and a column each would be more than a page has room for.
fn section(out: &mut String, group: &str, entries: &[&Entry]) {
    let targets: Vec<Vec<OnTarget>> = entries.iter().map(|e| by_target(&e.seen())).collect();
    let mut all: Vec<(&str, String)> =
        targets.iter().flatten().map(|t| (t.plain(), t.version_and_mode())).collect();
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
            let mine: Vec<&OnTarget> = targets.iter().filter(|t| t.plain() == *engine).collect();
            let _ = write!(out, " {} |", shared_cell(&mine, versions(engine).len()));
        }
        out.push('\n');
    }
}

/// What the versions of an engine showed, named only where they differ or
/// where not all of them were tried.
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

/// Plain versions before modes, numbers as numbers.
fn version_order(text: &str) -> (String, Vec<u64>) {
    let (version, mode) = text.split_once(' ').unwrap_or((text, ""));
    (mode.into(), version.split('.').map(|p| p.parse().unwrap_or(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(version: &str, level: Level, showing: Showing) -> Seen {
        Seen { engine: "mysql".into(), version: version.into(), level, showing }
    }

    #[test]
    fn versions_of_an_engine_share_a_cell_and_are_named_where_they_differ() {
        use Showing::{NotSeen, Shows, Sometimes};
        let rc = Level::ReadCommitted;
        let mut all = vec![seen("5.7.19", rc, Shows), seen("10.2.1", rc, Shows)];
        let cell = |all: &[Seen], versions| {
            let targets = by_target(all);
            shared_cell(&targets.iter().collect::<Vec<_>>(), versions)
        };
        assert_eq!(cell(&all, 2), "RC");
        assert_eq!(cell(&all, 3), "RC: 5.7.19, 10.2.1");
        all.push(seen("9.7.4", rc, NotSeen));
        let engine = "mysql+x".to_string();
        all.push(Seen { engine, ..seen("9.7.4", rc, Sometimes) });
        assert_eq!(
            cell(&all, 4),
            "RC: 5.7.19, 10.2.1<br>not seen: 9.7.4<br>RC sometimes: 9.7.4 +x"
        );
        assert_eq!(cell(&[], 2), "");
    }

    #[test]
    fn versions_that_show_the_same_are_named_together() {
        use Showing::{NotSeen, Shows};
        let (rc, rr) = (Level::ReadCommitted, Level::RepeatableRead);
        let mut all = vec![
            seen("5.7.19", rc, Shows),
            seen("5.7.19", rr, NotSeen),
            seen("8.0.33", rc, Shows),
            seen("8.0.33", rr, NotSeen),
            seen("9.7.4", rc, NotSeen),
        ];
        assert_eq!(where_it_shows(&all), "mysql 5.7.19, 8.0.33 RC");
        all.retain(|s| s.showing == NotSeen);
        assert_eq!(where_it_shows(&all), "not seen on mysql 5.7.19, 8.0.33, 9.7.4");
        assert_eq!(where_it_shows(&[]), "not recorded");
        let refused = [seen("5.7.19", rc, Showing::Refused)];
        assert_eq!(where_it_shows(&refused), "refused by mysql 5.7.19");
    }
}

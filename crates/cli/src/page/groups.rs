//! The findings of a page, grouped by defect, and how many of each group are
//! shown.

use super::html::{NEW_LINE, details, number, plural, text, visible};
use super::{card, prose};
use isolde_hunt::finding::Finding;
use isolde_hunt::report::Group;
use maud::{Markup, html};
use std::collections::BTreeSet;
use std::path::Path;

const WHOLE_PER_SIGNATURE: usize = 3;
const LISTED_PER_SIGNATURE: usize = 30;
const SIGNATURES: usize = 1_500;
const WHOLE_BYTES: usize = 5 << 20;
/// The budget for the cases of findings that are only listed.
const LISTED_BYTES: usize = 2 << 20;

pub fn all(dir: &Path, groups: &[Group<'_>], count: usize) -> Markup {
    let kinds = match groups.len() {
        0 => "none to show".to_string(),
        n => format!("{} distinct", number(n as u64)),
    };
    let levels: BTreeSet<&str> =
        groups.iter().flat_map(|g| &g.findings).map(|f| level_name(f)).collect();
    let whole = choose_whole(dir, groups);
    let mut room = LISTED_BYTES;
    html! {
        h2 #findings { (plural(count as u64, "finding")) " " span { (kinds) } }
        @if !groups.is_empty() {
            (filter(&levels))
            @for (i, (group, whole)) in groups.iter().zip(&whole).take(SIGNATURES).enumerate() {
                (one(group, whole, i == 0, &mut room))
            }
            @if groups.len() > SIGNATURES {
                p.note {
                    (plural((groups.len() - SIGNATURES) as u64, "more group")) " not shown here."
                }
            }
        }
    }
}

/// The findings shown in full: the first of every group, then the second of
/// every group, until the budget is used up.
fn choose_whole(dir: &Path, groups: &[Group<'_>]) -> Vec<Vec<Markup>> {
    let mut whole: Vec<Vec<Markup>> = groups.iter().map(|_| Vec::new()).collect();
    let mut used = 0;
    for nth in 0..WHOLE_PER_SIGNATURE {
        for (group, drawn) in groups.iter().take(SIGNATURES).zip(&mut whole) {
            let Some(finding) = group.findings.get(nth) else { continue };
            if used > WHOLE_BYTES {
                return whole;
            }
            let body = card::body(dir, finding);
            used += body.0.len();
            drawn.push(body);
        }
    }
    whole
}

fn one(group: &Group<'_>, whole: &[Markup], open: bool, room: &mut usize) -> Markup {
    let Some(first) = group.findings.first() else { return html! {} };
    let label = group.label.name();
    let levels: BTreeSet<&str> = group.findings.iter().map(|f| level_name(f)).collect();
    let levels: Vec<&str> = levels.into_iter().collect();
    let rest = &group.findings[whole.len()..];
    html! {
        section.group data-cause=(label) data-level=(levels.join("|")) {
            h3 {
                span class={ "tag " (label) } { (label) } " "
                @if group.findings.len() > 1 {
                    span.times { "×" (number(group.findings.len() as u64)) } " "
                }
                (text(title(first)))
                @if let Some(name) = group.name { " " span.times { "known as " (prose::known_bug(first, name)) } }
                @if group.known { " " span.times { "known: in the baseline" } }
            }
            p.signature { (text(&group.reason)) }
            @for (i, (finding, body)) in group.findings.iter().zip(whole).enumerate() {
                details.finding open[open && i == 0] {
                    summary { (card::line(finding)) }
                    (body)
                }
            }
            @if !rest.is_empty() { (others(rest, room)) }
        }
        (NEW_LINE)
    }
}

fn others(rest: &[&Finding], room: &mut usize) -> Markup {
    let left = rest.len().saturating_sub(LISTED_PER_SIGNATURE);
    let list = html! {
        ul {
            @for finding in rest.iter().take(LISTED_PER_SIGNATURE) {
                li { (listed(finding, room)) }
            }
        }
        @if left > 0 { p.note { (number(left as u64)) " more not shown here." } }
    };
    details("others", &html! { (number(rest.len() as u64)) " more findings of this group" }, &list)
}

/// A finding that is only listed, with its case while the budget lasts.
fn listed(finding: &Finding, room: &mut usize) -> Markup {
    let line = card::line(finding);
    let case = html! { pre tabindex="0" { (visible(&finding.case)) } };
    match room.checked_sub(case.0.len()) {
        Some(left) => {
            *room = left;
            details("run", &line, &case)
        }
        None => line,
    }
}

/// The title without the cause, which the tag already shows.
fn title(finding: &Finding) -> &str {
    let label = finding.cause.label.name();
    let rest = finding.title.strip_prefix(label).map(str::trim_start);
    rest.filter(|r| !r.is_empty()).unwrap_or(&finding.title)
}

fn level_name(finding: &Finding) -> &'static str {
    finding.level.map_or("default", |l| l.name())
}

/// The filter. It needs the script, so the script makes it visible.
fn filter(levels: &BTreeSet<&str>) -> Markup {
    html! {
        form.filter role="search" hidden {
            label {
                "Text "
                input #f-text type="search" placeholder="statement, error, table, case …";
            }
            label {
                "Cause "
                select #f-cause {
                    option value="" { "all" }
                    option { "bug" }
                    option { "locking" }
                    option { "undecided" }
                    option { "documented" }
                }
            }
            label {
                "Level "
                select #f-level {
                    option value="" { "all" }
                    @for level in levels { option { (level) } }
                }
            }
            output #f-count {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_hunt::cause::Verdict;
    use isolde_testing::samples::made;

    #[test]
    fn name_of_a_group_links_to_the_report_of_the_known_bug() {
        let finding = made(1, "wait", Verdict::Bug, "x").finding;
        let group = Group {
            label: Verdict::Bug,
            reason: "a row is missing".into(),
            name: finding.known.first().map(String::as_str),
            known: false,
            findings: vec![&finding],
        };
        let shown = one(&group, &[], false, &mut 0).into_string();
        let link = "known as <a href=\"https://jira.mariadb.org/browse/MDEV-26642\"";
        assert!(shown.contains(link), "{shown}");
    }
}

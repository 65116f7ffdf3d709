//! The findings of a page, in groups that look the same, and how many of each
//! are shown.

use super::html::escape;
use super::{card, html};
use crate::cause::Label;
use crate::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const WHOLE_PER_SIGNATURE: usize = 3;
const LISTED_PER_SIGNATURE: usize = 30;
const SIGNATURES: usize = 1_500;
const WHOLE_BYTES: usize = 5 << 20;
/// What the cases of those that are only listed may take.
const LISTED_BYTES: usize = 2 << 20;

/// Findings that look the same.
pub struct Group<'f> {
    pub label: Label,
    /// A baseline has it.
    known: bool,
    findings: Vec<&'f Finding>,
}

/// Bugs first, then what is undecided; of each cause what was seen most.
pub fn group<'f>(findings: &'f [Finding], known: &BTreeSet<String>) -> Vec<Group<'f>> {
    let mut by_signature: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        by_signature.entry(&finding.signature).or_default().push(finding);
    }
    let mut groups: Vec<Group<'_>> = by_signature
        .into_values()
        .filter_map(|findings| {
            let label = findings.iter().map(|f| f.cause.label).min()?;
            let known = findings.first().is_some_and(|f| known.contains(&f.signature));
            Some(Group { label, known, findings })
        })
        .collect();
    groups.sort_by_key(|g| (g.label, std::cmp::Reverse(g.findings.len())));
    groups
}

pub fn all(dir: &Path, groups: &[Group<'_>], count: usize) -> String {
    let kinds = html::plural(groups.len() as u64, "kind");
    let mut out = format!(
        "<h2 id=findings>{} <span>{}</span></h2>\n",
        html::plural(count as u64, "finding"),
        if groups.is_empty() { "nothing to show".to_string() } else { format!("of {kinds}") }
    );
    if groups.is_empty() {
        return out;
    }
    let levels: BTreeSet<&str> =
        groups.iter().flat_map(|g| &g.findings).map(|f| level_name(f)).collect();
    out.push_str(&filter(&levels));
    let whole = choose_whole(dir, groups);
    let mut first = true;
    let mut room = LISTED_BYTES;
    for (i, group) in groups.iter().take(SIGNATURES).enumerate() {
        out.push_str(&group_html(group, &whole[i], first, &mut room));
        first = false;
    }
    if groups.len() > SIGNATURES {
        let more = html::plural((groups.len() - SIGNATURES) as u64, "more kind");
        out.push_str(&format!("<p class=note>{more} not shown here.</p>\n"));
    }
    out
}

/// The findings that are shown whole, drawn: the first of every group, then
/// the second of every group, until the budget is used up.
fn choose_whole(dir: &Path, groups: &[Group<'_>]) -> Vec<Vec<String>> {
    let mut whole: Vec<Vec<String>> = groups.iter().map(|_| Vec::new()).collect();
    let mut used = 0;
    for nth in 0..WHOLE_PER_SIGNATURE {
        for (group, drawn) in groups.iter().take(SIGNATURES).zip(&mut whole) {
            let Some(finding) = group.findings.get(nth) else { continue };
            if used > WHOLE_BYTES {
                return whole;
            }
            let body = card::body(dir, finding);
            used += body.len();
            drawn.push(body);
        }
    }
    whole
}

/// A finding that is only listed: its case opens from the line, as long as
/// there is room on the page.
fn listed_line(finding: &Finding, room: &mut usize) -> String {
    let line = card::line(finding);
    let case = html::escape(&finding.case);
    match room.checked_sub(case.len()) {
        Some(left) => {
            *room = left;
            let body = format!("<pre tabindex=0>{case}</pre>");
            format!("<li>{}</li>\n", html::details("run", &line, &body))
        }
        None => format!("<li>{line}</li>\n"),
    }
}

fn group_html(group: &Group<'_>, whole: &[String], open: bool, room: &mut usize) -> String {
    let Some(first) = group.findings.first() else { return String::new() };
    let label = group.label.name();
    let levels: BTreeSet<&str> = group.findings.iter().map(|f| level_name(f)).collect();
    let levels: Vec<&str> = levels.into_iter().collect();
    let times = match group.findings.len() {
        1 => String::new(),
        n => format!("<span class=times>×{}</span> ", html::number(n as u64)),
    };
    let known = if group.known { " <span class=times>known: in the baseline</span>" } else { "" };
    let mut out = format!(
        "<section class=group data-cause={label} data-level=\"{}\">\n\
         <h3><span class=\"tag {label}\">{label}</span> {times}{}{known}</h3>\n\
         <p class=signature>{}</p>\n",
        html::escape(&levels.join("|")),
        html::text(title(first)),
        html::text(&first.signature)
    );
    for (i, (finding, body)) in group.findings.iter().zip(whole).enumerate() {
        let state = if open && i == 0 { " open" } else { "" };
        out.push_str(&format!(
            "<details class=finding{state}><summary>{}</summary>{body}</details>\n",
            card::line(finding)
        ));
    }
    let rest = &group.findings[whole.len()..];
    if !rest.is_empty() {
        let items: String =
            rest.iter().take(LISTED_PER_SIGNATURE).map(|f| listed_line(f, room)).collect();
        let left = rest.len().saturating_sub(LISTED_PER_SIGNATURE);
        let more = match left {
            0 => String::new(),
            n => format!("<p class=note>{} more not shown here.</p>", html::number(n as u64)),
        };
        let name = format!("{} more like it", html::number(rest.len() as u64));
        out.push_str(&html::details("others", &name, &format!("<ul>{items}</ul>{more}")));
    }
    out.push_str("</section>\n");
    out
}

/// The cause stands before it already.
fn title(finding: &Finding) -> &str {
    let label = finding.cause.label.name();
    let rest = finding.title.strip_prefix(label).map(str::trim_start);
    rest.filter(|r| !r.is_empty()).unwrap_or(&finding.title)
}

fn level_name(finding: &Finding) -> &'static str {
    finding.level.map_or("default", |l| l.name())
}

/// Needs the script, so the script shows it.
fn filter(levels: &BTreeSet<&str>) -> String {
    let options: String =
        levels.iter().map(|l| format!("<option>{}</option>", escape(l))).collect();
    format!(
        "<form class=filter role=search hidden>\
         <label>Text <input type=search id=f-text placeholder=\"statement, error, table, case …\">\
         </label>\
         <label>Cause <select id=f-cause><option value=\"\">all</option><option>bug</option>\
         <option>undecided</option><option>documented</option></select></label>\
         <label>Level <select id=f-level><option value=\"\">all</option>{options}</select></label>\
         <output id=f-count></output></form>\n"
    )
}

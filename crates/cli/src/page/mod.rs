//! `report.html`: the report of a hunt as one self-contained page.
//!
//! The size of the page is bounded, however many findings there are. Findings
//! are grouped by signature; the first few of each group are shown in full,
//! more are listed with their folders, and the rest is counted. Findings shown
//! in full have a budget in bytes, and every text, table and timeline has a
//! limit. The page shows one example of every group before a second one of any.
//!
//! [`isolde_hunt::report`] has the data. The templates are written with maud,
//! which escapes whatever is put into them; foreign text also passes
//! [`html::text`], so that none of its characters is invisible.

mod card;
mod compare;
mod groups;
mod html;
mod layout;
mod overview;
mod prose;
mod setup;
#[cfg(test)]
mod tests;
mod timeline;
mod why;

use isolde_hunt::HuntError;
use isolde_hunt::folder::Folder;
use isolde_hunt::report::Report;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::path::{Path, PathBuf};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The hash of SCRIPT for the content security policy: should foreign text ever
/// get around the escaping, the browser still runs nothing but this script.
const SCRIPT_HASH: &str = include_str!("script.sha256");

/// Reads the output folder of a hunt and writes `report.html` into it.
pub fn write(dir: &Path) -> Result<PathBuf, HuntError> {
    let report = Report::read(dir)?;
    Folder::open(dir).write_page(&page(dir, &report).into_string())
}

fn page(dir: &Path, report: &Report) -> Markup {
    let Report { summary, findings, documented } = report;
    let groups = report.groups();
    let kinds = |label| groups.iter().filter(|g| g.label == label).count();
    let id = &summary.identity;
    let title = format!("{} {}: Isolde hunt report", id.target, id.server_version);
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; \
         img-src data:; script-src 'sha256-{}'",
        SCRIPT_HASH.trim()
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (html::visible(&title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (overview::headline(summary, kinds))
                    (overview::facts(summary))
                    (overview::counts(summary))
                    (groups::all(dir, &groups, findings.len()))
                    (overview::documented(summary, documented))
                    (overview::coverage(summary))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
        (html::NEW_LINE)
    }
}

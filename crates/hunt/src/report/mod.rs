//! `report.html`: a hunt as one page that needs nothing but itself.
//!
//! The page stays usable however much was found. Findings are grouped by
//! signature; the first few of a signature are shown whole, more are listed
//! with their folders, the rest is counted. What is shown whole has a budget
//! in bytes too, and every text, table and timeline has a limit of its own.
//! So the page has an upper bound, and a reader has one example of everything
//! before a second one of anything.

mod card;
mod compare;
mod groups;
mod html;
mod layout;
pub(crate) mod load;
mod overview;
mod prose;
mod setup;
#[cfg(test)]
pub(crate) mod tests;
mod timeline;

use crate::files;
use crate::folder::{Folder, FolderError, at};
use std::path::{Path, PathBuf};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Of SCRIPT, for the page's policy: should anything from outside ever get
/// around the escaping, the browser still runs nothing but this.
const SCRIPT_HASH: &str = include_str!("script.sha256");

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; base-uri 'none'; \
         form-action 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        SCRIPT_HASH.trim(),
        html::escape(title)
    )
}

/// Reads the output folder of a hunt and writes `report.html` into it.
pub fn write(dir: &Path) -> Result<PathBuf, FolderError> {
    let page = render(dir)?;
    let file = dir.join("report.html");
    at(&file, files::replace(&file, page.as_bytes()))?;
    Ok(file)
}

fn render(dir: &Path) -> Result<String, FolderError> {
    let folder = Folder::open(dir);
    let summary = folder.read_summary()?;
    let findings = folder.read_findings()?;
    let documented = folder.read_documented().map_err(|e| e.to_string());
    let known = summary.baseline.clone().unwrap_or_default().signatures;
    let groups = groups::group(&findings, &known);
    let mut body =
        overview::headline(&summary, |label| groups.iter().filter(|g| g.label == label).count());
    body.push_str(&overview::facts(&summary));
    body.push_str(&overview::counts(&summary));
    body.push_str(&groups::all(dir, &groups, findings.len()));
    body.push_str(&overview::documented(&summary, &documented));
    body.push_str(&overview::coverage(&summary));
    let id = &summary.identity;
    let title = format!("{} {}: Isolde's report", id.target, id.server_version);
    Ok(page(&title, &body))
}

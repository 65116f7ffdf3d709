//! The samples in README.md and docs/*.md are what the commands print today.
//!
//! A fenced block with the language `console` holds commands (`$ …`) and their
//! output, standard error included. The words after `console` say what becomes
//! of it:
//!
//! | fence | effect |
//! |---|---|
//! | `console` | the commands run here, in a temporary directory where `cases` is the library |
//! | `console needs=postgres` | the same, except in a run of `./test --quick` |
//! | `console needs=mariadb@10.11` | the same where a server of this version is installed; skipped by name elsewhere |
//! | `console excerpt` | not run; the line below the block names the versions, Isolde's included |
//! | any language with `file=NAME` | the block is written to this file before the commands below it run |
//!
//! In the expected output `[..]` stands for any text within a line and `...`,
//! alone on a line, for any number of lines; times and rates (`3.6 s`, `125 per
//! second`) match any number. A last line `? 1` states the exit code; without
//! it 0, 1 (a violation) and 3 (undecided) are accepted.
//!
//! `ISOLDE_DOCS=overwrite` writes the present output into the pages instead of
//! comparing, and keeps `[..]` and `...` where they still fit.

mod compare;
mod invocation;
mod link;
mod page;
mod sample;

use page::Page;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root of the repository")
}

/// All pages with samples: the README and everything in `docs`.
fn sample_pages() -> Vec<Page> {
    let root = root();
    let mut files = vec![root.join("README.md")];
    files.extend(markdown_in(&root.join("docs")));
    files.iter().map(|file| Page::read(file)).collect()
}

/// The pages with samples and the others at the root of the repository.
fn all_pages() -> Vec<Page> {
    let mut files = markdown_in(&root());
    files.extend(markdown_in(&root().join("docs")));
    files.iter().map(|file| Page::read(file)).collect()
}

fn markdown_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    files
}

#[track_caller]
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n\n{}", problems.len(), problems.join("\n\n"));
}

#[test]
fn samples_show_what_the_commands_print() {
    let overwrite = std::env::var("ISOLDE_DOCS").is_ok_and(|value| value == "overwrite");
    let mut problems = Vec::new();
    let mut compared = 0;
    for page in sample_pages() {
        let run = sample::run_page(&page, overwrite);
        compared += run.compared;
        problems.extend(run.problems);
        if let Some(text) = run.rewritten {
            std::fs::write(&page.path, text).expect("the page can be written");
            println!("{} rewritten", page.name());
        }
    }
    assert_none(&problems);
    assert!(compared >= 5, "only {compared} commands were compared");
}

#[test]
fn every_sample_is_run_or_marked_as_an_excerpt() {
    let problems: Vec<String> = sample_pages().iter().flat_map(sample::unmarked_samples).collect();
    assert_none(&problems);
}

#[test]
fn commands_and_options_in_the_pages_exist() {
    let known = invocation::Known::ask();
    let found: Vec<_> = all_pages().iter().flat_map(invocation::in_page).collect();
    let problems: Vec<String> = found.iter().filter_map(|one| known.problem(one)).collect();
    assert_none(&problems);
    assert!(found.len() > 100, "only {} invocations were found", found.len());
}

#[test]
fn relative_links_lead_to_a_file_and_a_heading() {
    let pages = all_pages();
    let links: Vec<_> = pages.iter().flat_map(link::in_page).collect();
    let problems: Vec<String> = links.iter().filter_map(link::Link::problem).collect();
    assert_none(&problems);
    assert!(links.len() > 50, "only {} links were found", links.len());
}

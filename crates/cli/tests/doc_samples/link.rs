//! Links between the pages and into the repository.

use crate::page::Page;
use std::path::PathBuf;

pub struct Link {
    place: String,
    text: String,
    file: PathBuf,
    heading: Option<String>,
}

impl Link {
    /// Why the link leads nowhere.
    pub fn problem(&self) -> Option<String> {
        let Link { place, text, file, heading } = self;
        if !file.exists() {
            return Some(format!("{place}: {text}: there is no such file"));
        }
        let heading = heading.as_ref()?;
        let has = headings(&Page::read(file)).iter().any(|one| one == heading);
        (!has).then(|| format!("{place}: {text}: the page has no heading #{heading}"))
    }
}

/// The links of a page that do not lead into the web.
pub fn in_page(page: &Page) -> Vec<Link> {
    let mut links = Vec::new();
    for (index, line) in page.lines.iter().enumerate() {
        if page.is_code(index) {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let text = rest.split(')').next().unwrap_or_default();
            if text.is_empty() || text.contains("://") {
                continue;
            }
            let (file, heading) = match text.split_once('#') {
                Some((file, heading)) => (file, Some(heading.to_owned())),
                None => (text, None),
            };
            let folder = page.path.parent().expect("a page is in a folder");
            let file = if file.is_empty() { page.path.clone() } else { folder.join(file) };
            links.push(Link { place: page.place(index), text: text.to_owned(), file, heading });
        }
    }
    links
}

/// The anchors of a page's headings, made as GitHub makes them.
fn headings(page: &Page) -> Vec<String> {
    let lines = page.lines.iter().enumerate().filter(|(index, _)| !page.is_code(*index));
    let titles = lines.filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.trim())
    });
    titles.map(anchor).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

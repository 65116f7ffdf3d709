//! A short line-by-line difference between two texts.

use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Lines kept around a change.
const CONTEXT: usize = 2;
/// After this time a difference need not be minimal.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The changed lines with their context: `-` marks a missing line, `+` an
/// unexpected one. At most `limit` lines.
pub fn short_diff(expected: &str, actual: &str, limit: usize) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old, &new);
    let mut shown: Vec<String> = Vec::new();
    for (place, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if place > 0 {
            shown.push("@@".into());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            shown.push(format!("{}{}", change.tag(), change.value()));
        }
    }
    if shown.len() > limit {
        shown.truncate(limit);
        shown.push("…".into());
    }
    if shown.is_empty() && expected != actual {
        shown.push("(only the line endings differ)".into());
    }
    shown
}

/// The number of lines that differ, for choosing the nearest of several
/// expected texts.
pub fn distance(expected: &str, actual: &str) -> usize {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_slices(&old, &new);
    diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_diff_shows_changes_with_their_context() {
        let old = "a\nb\nc\nd\ne\nf\n";
        assert_eq!(short_diff(old, "a\nb\nc\nX\ne\nf\n", 20), [" b", " c", "-d", "+X", " e", " f"]);
        assert!(short_diff(old, old, 20).is_empty());
        assert_eq!(distance(old, "a\nb\nc\nd\ne\n"), 1);
        assert_eq!(short_diff(old, "a\nb\nc\nd\n", 3), [" c", " d", "-e", "…"]);
        assert_eq!(short_diff("a\r\n", "a\n", 3), ["(only the line endings differ)"]);
    }

    #[test]
    fn short_diff_separates_distant_changes() {
        let lines: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        let old = lines.join("\n");
        let new = old.replace("\n3\n", "\nX\n").replace("\n15\n", "\n");
        let shown = short_diff(&old, &new, 40);
        assert_eq!(shown.iter().filter(|l| *l == "@@").count(), 1, "{shown:?}");
        assert!(shown.contains(&"-15".to_string()) && shown.contains(&"+X".to_string()));
    }
}

//! A short line-by-line difference between two texts.

/// Lines kept around a change.
const CONTEXT: usize = 2;
/// Beyond this many lines on both sides only the first difference is shown.
const COMPARED: usize = 3000;

enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// `-` expected and missing, `+` there and not expected; at most `limit` lines.
pub fn short_diff(expected: &str, actual: &str, limit: usize) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let lines = changes(&old, &new);
    let changed: Vec<usize> =
        (0..lines.len()).filter(|i| !matches!(lines[*i], Line::Same(_))).collect();
    let mut shown = Vec::new();
    let mut last: Option<usize> = None;
    for (i, line) in lines.iter().enumerate() {
        if changed.iter().all(|c| c.abs_diff(i) > CONTEXT) {
            continue;
        }
        if shown.len() >= limit {
            shown.push("…".into());
            break;
        }
        if last.is_some_and(|l| l + 1 < i) {
            shown.push("@@".into());
        }
        last = Some(i);
        shown.push(match line {
            Line::Same(text) => format!(" {text}"),
            Line::Gone(text) => format!("-{text}"),
            Line::New(text) => format!("+{text}"),
        });
    }
    if shown.is_empty() && expected != actual {
        shown.push("(the texts differ in their line ends only)".into());
    }
    shown
}

/// How many lines differ: to find the nearest of several expected texts.
pub fn distance(expected: &str, actual: &str) -> usize {
    let (old, new): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    changes(&old, &new).iter().filter(|l| !matches!(l, Line::Same(_))).count()
}

fn changes<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line<'a>> = old[..head].iter().map(|l| Line::Same(l)).collect();
    if a.len() > COMPARED || b.len() > COMPARED {
        lines.extend(a.iter().map(|l| Line::Gone(l)));
        lines.extend(b.iter().map(|l| Line::New(l)));
    } else {
        middle(a, b, &mut lines);
    }
    lines.extend(old[old.len() - tail..].iter().map(|l| Line::Same(l)));
    lines
}

/// The longest common subsequence, walked from the front.
fn middle<'a>(a: &[&'a str], b: &[&'a str], lines: &mut Vec<Line<'a>>) {
    let width = b.len() + 1;
    let mut common = vec![0u16; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            lines.push(Line::Same(a[i]));
            i += 1;
            j += 1;
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            lines.push(Line::Gone(a[i]));
            i += 1;
        } else {
            lines.push(Line::New(b[j]));
            j += 1;
        }
    }
    lines.extend(a[i..].iter().map(|l| Line::Gone(l)));
    lines.extend(b[j..].iter().map(|l| Line::New(l)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_and_its_neighbours_are_shown() {
        let old = "a\nb\nc\nd\ne\nf\n";
        assert_eq!(short_diff(old, "a\nb\nc\nX\ne\nf\n", 20), [" b", " c", "-d", "+X", " e", " f"]);
        assert!(short_diff(old, old, 20).is_empty());
        assert_eq!(distance(old, "a\nb\nc\nd\ne\n"), 1);
    }
}

//! Expected output with wildcards, compared with the actual output and brought
//! up to date.

/// Any text within a line.
const ANY_TEXT: &str = "[..]";
/// Any number of lines.
const ANY_LINES: &str = "...";

/// Whether the actual lines are what the expected ones describe.
pub fn matches(expected: &[String], actual: &[String]) -> bool {
    // `reached[j]`: the expected lines so far can describe the first j actual lines.
    let mut reached = vec![false; actual.len() + 1];
    reached[0] = true;
    for line in expected {
        let mut next = vec![false; actual.len() + 1];
        if line == ANY_LINES {
            let mut any = false;
            for (now, then) in reached.iter().zip(&mut next) {
                any |= now;
                *then = any;
            }
        } else {
            for (j, text) in actual.iter().enumerate() {
                next[j + 1] = reached[j] && line_matches(line, text);
            }
        }
        reached = next;
    }
    reached[actual.len()]
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let (expected, actual) = (without_timing(expected), without_timing(actual));
    let (expected, actual) = (expected.trim_end(), actual.trim_end());
    let Some((first, rest)) = expected.split_once(ANY_TEXT) else { return expected == actual };
    let Some(mut actual) = actual.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split(ANY_TEXT).collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = actual.find(piece) else { return false };
        actual = &actual[at + piece.len()..];
    }
    actual.ends_with(last)
}

/// The line with `#` for times and rates: `in 3.6 s`, `(125 per second)`.
///
/// They differ in every run, and a page reads better with a number than with a wildcard.
fn without_timing(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let word = |index: usize| {
        let punctuation = |c: char| c.is_ascii_punctuation();
        words.get(index).map_or("", |word| word.trim_matches(punctuation))
    };
    let is_number = |index: usize| word(index).parse::<f64>().is_ok();
    let is_timing = |index: usize| {
        is_number(index)
            && (matches!(word(index + 1), "s" | "ms")
                || (matches!(word(index + 1), "a" | "per") && word(index + 2) == "second"))
    };
    let masked = (0..words.len()).map(|i| match is_timing(i) {
        true => words[i].replace(word(i), "#"),
        false => words[i].to_owned(),
    });
    masked.collect::<Vec<_>>().join(" ")
}

/// The actual output with the wildcards of the expected one.
///
/// Lines that still match stay as they are written. A line that has changed is replaced by the
/// most similar actual line, with `[..]` where its neighbours in the old line are found in the new
/// one. Where nothing is similar, the expected lines before and after a `...` are replaced by the
/// actual lines at the same distance from the ends.
pub fn refresh(expected: &[String], actual: &[String]) -> Vec<String> {
    if matches(expected, actual) {
        return expected.to_vec();
    }
    let mut fresh = Vec::new();
    let (mut from, mut to) = (0, 0);
    for (i, j) in alignment(expected, actual) {
        fresh.extend(refresh_gap(&expected[from..i], &actual[to..j]));
        fresh.push(match line_matches(&expected[i], &actual[j]) {
            true => expected[i].clone(),
            false => with_wildcards(&expected[i], &actual[j]),
        });
        (from, to) = (i + 1, j + 1);
    }
    fresh.extend(refresh_gap(&expected[from..], &actual[to..]));
    if matches(&fresh, actual) { fresh } else { actual.to_vec() }
}

/// The first output with `[..]` for the words that differ in the corresponding line of the second.
pub fn without_volatile_words(first: &[String], second: &[String]) -> Vec<String> {
    let mut stable = first.to_vec();
    for (i, j) in alignment(first, second) {
        stable[i] = without_volatile_words_in(&first[i], &second[j]);
    }
    stable
}

fn without_volatile_words_in(first: &str, second: &str) -> String {
    let words =
        |line: &str| -> Vec<String> { line.split_inclusive(' ').map(str::to_owned).collect() };
    let (first_words, second_words) = (words(first), words(second));
    if first_words.len() != second_words.len() || line_matches(first, second) {
        return first.to_owned();
    }
    let stable = |(one, other): (&String, &String)| match one == other {
        true => one.clone(),
        false if one.ends_with(' ') => format!("{ANY_TEXT} "),
        false => ANY_TEXT.to_owned(),
    };
    first_words.iter().zip(&second_words).map(stable).collect()
}

/// Pairs of an expected and an actual line, both ascending, with the greatest total similarity.
fn alignment(expected: &[String], actual: &[String]) -> Vec<(usize, usize)> {
    let similar = |i: usize, j: usize| similarity(&expected[i], &actual[j]);
    let mut best = vec![vec![0; actual.len() + 1]; expected.len() + 1];
    for i in (0..expected.len()).rev() {
        for j in (0..actual.len()).rev() {
            let both = similar(i, j).map_or(0, |similarity| best[i + 1][j + 1] + similarity);
            best[i][j] = both.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < expected.len() && j < actual.len() {
        // Of equally good alignments the one that pairs lines as early as possible.
        if similar(i, j).is_some_and(|similarity| best[i][j] == best[i + 1][j + 1] + similarity) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i][j] == best[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// 1000 for a line that matches, less for one that shares at least a third of its words.
fn similarity(expected: &str, actual: &str) -> Option<usize> {
    if expected == ANY_LINES {
        return None;
    }
    if line_matches(expected, actual) {
        return Some(1000);
    }
    let words = |line: &str| line.split_whitespace().count();
    let most = words(expected).max(words(actual)).max(1);
    let share = 300 * common_words(expected, actual) / most;
    (share >= 100).then_some(share)
}

fn refresh_gap(expected: &[String], actual: &[String]) -> Vec<String> {
    let is_wild = |line: &String| line == ANY_LINES;
    let Some(first) = expected.iter().position(is_wild) else {
        return replaced(expected, actual);
    };
    let last = expected.iter().rposition(is_wild).unwrap_or(first);
    let before = first.min(actual.len());
    let after = (expected.len() - 1 - last).min(actual.len() - before);
    let end = actual.len() - after;
    let mut fresh = replaced(&expected[..first], &actual[..before]);
    fresh.push(ANY_LINES.to_owned());
    fresh.extend(replaced(&expected[last + 1..], &actual[end..]));
    fresh
}

/// The actual lines, each with the `[..]` of the old line that it is most like.
fn replaced(old: &[String], actual: &[String]) -> Vec<String> {
    let most_like = |line: &String| old.iter().max_by_key(|o| common_words(o, line));
    actual
        .iter()
        .map(|line| most_like(line).map_or_else(|| line.clone(), |o| with_wildcards(o, line)))
        .collect()
}

fn common_words(one: &str, other: &str) -> usize {
    let words: Vec<&str> = other.split_whitespace().collect();
    one.split_whitespace().filter(|word| words.contains(word)).count()
}

/// Puts `[..]` into a line where the text on both sides of it in the old line is found.
fn with_wildcards(old: &str, actual: &str) -> String {
    let pieces: Vec<&str> = old.trim_end().split(ANY_TEXT).collect();
    let mut fresh = String::new();
    let mut rest = actual.trim_end();
    for pair in pieces.windows(2) {
        let (left, right) = (last_word(pair[0]), first_word(pair[1]));
        let start = match left {
            "" if fresh.is_empty() => Some(0),
            "" => None,
            left => rest.find(left).map(|at| at + left.len()),
        };
        let Some(start) = start.or_else(|| word_before(rest, right)) else { continue };
        let end = match right {
            "" => Some(rest.len()),
            right => rest[start..].find(right).map(|at| start + at),
        };
        let Some(end) = end.filter(|end| *end > start) else { continue };
        fresh.push_str(&rest[..start]);
        fresh.push_str(ANY_TEXT);
        rest = &rest[end..];
    }
    fresh + rest
}

/// Where the word before a text begins.
fn word_before(line: &str, text: &str) -> Option<usize> {
    let ends_word = |at: &usize| !line[at + text.len()..].starts_with(char::is_alphanumeric);
    let mut places = line.match_indices(text).map(|(at, _)| at);
    let end = places.find(ends_word).filter(|_| text.starts_with(' '))?;
    line[..end].rfind(' ').map(|at| at + 1)
}

/// The last word of a piece, with the blanks around it.
fn last_word(piece: &str) -> &str {
    let word = piece.trim_end().rfind(char::is_whitespace).unwrap_or(0);
    &piece[word..]
}

fn first_word(piece: &str) -> &str {
    let start = piece.len() - piece.trim_start().len();
    let end = piece[start..].find(char::is_whitespace).map_or(piece.len(), |at| start + at);
    &piece[..end]
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn any_text_matches_within_a_line_only() {
    assert!(line_matches("in [..] s", "in 3.6 s"));
    assert!(line_matches("[..] of [..]", "1 of 2"));
    assert!(!line_matches("in [..] s", "in 3.6 minutes"));
    assert!(!line_matches("a[..]a", "a"));
    assert!(!matches(&lines("in [..] s"), &lines("in 3\n s")));
}

#[test]
fn times_and_rates_match_any_number() {
    assert!(line_matches(
        "450 cases in 3.6 s (125 a second), 9 valid",
        "450 cases in 12 s (5 a second), 9 valid"
    ));
    assert!(line_matches("(70 per second)", "(71 per second)"));
    assert!(!line_matches("450 cases in 3.6 s", "451 cases in 3.6 s"));
    assert!(!line_matches("in 3.6 s", "in 3.6 min"));
    assert!(!line_matches("4 steps", "5 steps"));
}

#[test]
fn any_lines_match_none_and_many() {
    assert!(matches(&lines("a\n...\nb"), &lines("a\nb")));
    assert!(matches(&lines("a\n...\nb"), &lines("a\nx\ny\nb")));
    assert!(!matches(&lines("a\n...\nb"), &lines("a\nx")));
    assert!(!matches(&lines("a"), &lines("a\nb")));
    assert!(!matches(&lines("a\nb"), &lines("a")));
}

#[test]
fn output_that_matches_is_not_rewritten() {
    let expected = lines("run [..]\n...\nend");
    assert_eq!(refresh(&expected, &lines("run 1\nx\nend")), expected);
}

#[test]
fn a_changed_line_is_replaced_and_the_others_keep_their_wildcards() {
    let expected = lines("took [..] s\nviolations: 1\n...\nend");
    let actual = lines("took 3 s\nfindings: 1\nx\ny\nend");
    assert_eq!(refresh(&expected, &actual), lines("took [..] s\nfindings: 1\n...\nend"));
}

#[test]
fn changed_lines_between_wildcards_are_found_again_by_their_words() {
    let expected = lines("...\ntook [..] s in all\nviolations: 1 bug, 2 documented\n...\nend");
    let actual = lines("x\nit took 3 s in all\nfound 1 bug, 2 documented\ny\nend");
    let fresh = lines("...\nit took [..] s in all\nfound 1 bug, 2 documented\n...\nend");
    assert_eq!(refresh(&expected, &actual), fresh);
}

#[test]
fn of_two_equal_sections_the_first_is_kept() {
    let expected = lines("...\nAt RR\nfailed\nrolled back [..]\n...");
    let actual = lines("x\nAt RR\nfailed\nrolled back 1\nAt SER\nfailed\nrolled back 2");
    assert_eq!(refresh(&expected, &actual), expected);
    let expected = lines("...\nAt RR\nfails\nrolled back [..]\n...");
    let fresh = lines("...\nAt RR\nfailed\nrolled back [..]\n...");
    assert_eq!(refresh(&expected, &actual), fresh);
}

#[test]
fn a_changed_line_keeps_its_wildcard_where_the_neighbours_are_found() {
    let expected = lines("450 cases in [..] s, all fine");
    let actual = lines("hunted 450 cases in 3.6 s, none failed");
    assert_eq!(refresh(&expected, &actual), lines("hunted 450 cases in [..] s, none failed"));
    let expected = lines("postgres [..]\nold");
    assert_eq!(refresh(&expected, &lines("postgres 15.18\nnew")), lines("postgres [..]\nnew"));
    let expected = lines("server: postgres [..]");
    let actual = lines("target: postgres 15.18");
    assert_eq!(refresh(&expected, &actual), lines("target: postgres [..]"));
}

#[test]
fn words_that_differ_in_a_second_run_become_wildcards() {
    let stable = |first: &str, second: &str| without_volatile_words(&lines(first), &lines(second));
    assert_eq!(
        stable("port 3601 of all (12)", "port 3702 of all (11)"),
        lines("port [..] of all [..]")
    );
    assert_eq!(stable("a\nport 36 of b", "port 37 of b"), lines("a\nport [..] of b"));
    assert_eq!(stable("a b", "a"), lines("a b"));
    assert_eq!(stable("took 3.6 s", "took 3.7 s"), lines("took 3.6 s"));
}

#[test]
fn refreshed_output_matches_the_actual_output() {
    let expected = lines("a [..] b\n...\nc\n...\nd");
    for actual in ["", "x", "a 1 b", "c\nd", "d\nc\na b", "a 1 b\nd\nx"] {
        let fresh = refresh(&expected, &lines(actual));
        assert!(matches(&fresh, &lines(actual)), "{actual}: {fresh:?}");
    }
}

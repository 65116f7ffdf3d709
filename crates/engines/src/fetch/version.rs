//! Comparing and matching version numbers, by their leading dotted parts.
//!
//! `18` matches any 18, `8.0` any 8.0: the given parts must be equal, as
//! numbers, and the highest version that has them wins.

use std::cmp::Ordering;

/// `18.4.0-beta.17` is `[18, 4, 0]`, `10.11.19-MariaDB` is `[10, 11, 19]`.
pub fn parts(version: &str) -> Vec<u64> {
    let number = version.strip_prefix('v').unwrap_or(version);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    number[..end].split('.').map_while(|part| part.parse().ok()).collect()
}

/// Whether `version` begins with the parts of `wanted`; `8.0` does not match
/// `8.01`.
///
/// A suffix after the numbers (`8.0.33-debug`) must be equal where it is given,
/// so that it never silently means another build.
pub fn matches(wanted: &str, version: &str) -> bool {
    if wanted == version {
        return true;
    }
    let dotted = wanted.strip_prefix('v').unwrap_or(wanted);
    let plain = !dotted.is_empty()
        && dotted.split('.').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    if !plain {
        return false;
    }
    let written = version.strip_prefix('v').unwrap_or(version);
    let mut have = written.split(|c: char| !c.is_ascii_digit());
    dotted.split('.').all(|want| have.next() == Some(want))
}

pub fn compare(a: &str, b: &str) -> Ordering {
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

/// The first text in a program's `--version` output that looks like a version:
/// digits with at least one dot.
pub fn in_output(output: &str) -> Option<String> {
    output
        .split(|c: char| c.is_whitespace() || c == ',' || c == '(' || c == ')')
        .map(|word| word.strip_prefix('v').unwrap_or(word))
        .find(|word| {
            word.starts_with(|c: char| c.is_ascii_digit())
                && word.contains('.')
                && parts(word).len() >= 2
        })
        .map(|word| {
            let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
            word[..end].trim_end_matches('.').to_string()
        })
}

/// The versions nearest to the requested one, for an error message.
pub fn closest(wanted: &str, known: &[String], count: usize) -> Vec<String> {
    let want = parts(wanted);
    let mut ranked: Vec<&String> = known.iter().collect();
    ranked.sort_by(|a, b| {
        let shared =
            |v: &str| parts(v).iter().zip(&want).take_while(|(left, right)| left == right).count();
        shared(b).cmp(&shared(a)).then_with(|| compare(b, a))
    });
    ranked.dedup();
    ranked.into_iter().take(count).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_major_version_matches_its_minors() {
        assert!(matches("18", "18.1"));
        assert!(matches("18", "18.4.0-beta.17"));
        assert!(matches("8.0", "8.0.33"));
        assert!(matches("12.3", "12.3"));
    }

    #[test]
    fn parts_are_compared_whole() {
        assert!(!matches("8.0", "8.01"));
        assert!(!matches("1", "18.1"));
        assert!(!matches("12.3", "12.30"));
        assert!(!matches("8.0.33", "8.0"));
    }

    #[test]
    fn nonsense_matches_nothing() {
        assert!(!matches("", "18.1"));
        assert!(!matches("newest", "18.1"));
        assert!(!matches("18.", "18.1"));
    }

    #[test]
    fn ten_is_more_than_nine() {
        assert_eq!(compare("15.10", "15.9"), Ordering::Greater);
        assert_eq!(compare("9.6.24", "10.4"), Ordering::Less);
    }

    #[test]
    fn the_version_is_found_in_what_servers_print() {
        let found = |text: &str| in_output(text).unwrap();
        assert_eq!(found("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), "15.18");
        assert_eq!(
            found("/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu"),
            "10.11.19"
        );
        assert_eq!(found("mysqld  Ver 8.0.33 for Linux on x86_64"), "8.0.33");
        assert_eq!(found("dolt version 2.2.0"), "2.2.0");
        assert_eq!(found("Release Version: v8.5.0-20251126\nEdition: Community"), "8.5.0");
    }

    #[test]
    fn the_closest_versions_share_the_leading_parts() {
        let known: Vec<String> = ["9.6.24", "12.2", "12.3", "18.1"].map(String::from).to_vec();
        assert_eq!(closest("12.4", &known, 2), ["12.3", "12.2"]);
    }
}

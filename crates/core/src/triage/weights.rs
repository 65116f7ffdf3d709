//! How much a feature tells of which bug a report is about: its mutual
//! information with the bugs, counted in labelled reports, with Laplace
//! smoothing (Pisco, appendix C).
//!
//! With N reports, n(f) those with the feature, n(y) those of the bug and
//! n(f, y) those of both:
//!
//! ```text
//!   p(f) = n(f) / N     p(y) = n(y) / N     p(f, y) = (n(f, y) + 1) / (M + n(F, Y))
//!   w(f) = sum over y of p(f, y) log (p(f, y) / (p(f) p(y)))
//! ```
//!
//! n(F, Y) is how many features all reports have together, M how many pairs of
//! a feature and a bug there are, so that p(f, y) adds up to 1.

use super::Features;
use std::collections::BTreeMap;

/// A report of which it is known which bug it is about.
#[derive(Clone, Copy)]
pub struct Labelled<'a> {
    pub features: &'a Features,
    pub bug: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    of: BTreeMap<String, f64>,
    /// What a feature weighs that no report has: it tells nothing yet, and
    /// that two share it is rare.
    unknown: f64,
}

impl Weights {
    /// Every feature weighs the same.
    pub fn equal() -> Weights {
        Weights { of: BTreeMap::new(), unknown: 1.0 }
    }

    pub fn counted(reports: &[Labelled<'_>]) -> Weights {
        let counts = Counts::of(reports);
        let told: BTreeMap<String, f64> =
            counts.features.keys().map(|f| ((*f).to_string(), counts.information(f))).collect();
        // The formula gives what is everywhere the least, which may be below
        // nothing. A weight says how much sharing a feature counts for, so the
        // least of them is nothing.
        let least = told.values().copied().fold(f64::INFINITY, f64::min);
        let most = told.values().copied().fold(f64::NEG_INFINITY, f64::max);
        if told.is_empty() || most - least <= f64::EPSILON {
            return Weights::equal();
        }
        let of = told.into_iter().map(|(f, w)| (f, (w - least) / (most - least))).collect();
        Weights { of, unknown: 0.5 }
    }

    pub fn of(&self, feature: &str) -> f64 {
        self.of.get(feature).copied().unwrap_or(self.unknown)
    }

    /// From 0, nothing in common, to 1, the same features: what is shared, by
    /// its weight, of what either has.
    pub fn similarity(&self, a: &Features, b: &Features) -> f64 {
        let sum = |all: &mut dyn Iterator<Item = &String>| all.map(|f| self.of(f)).sum::<f64>();
        let either = sum(&mut a.all.union(&b.all));
        if either <= 0.0 { 0.0 } else { sum(&mut a.all.intersection(&b.all)) / either }
    }

    /// The shared features that weigh most, and those that only one has.
    pub fn decisive<'f>(&self, a: &'f Features, b: &'f Features, most: usize) -> Decisive<'f> {
        let ordered = |all: &mut dyn Iterator<Item = &'f String>| {
            let mut all: Vec<(&'f str, f64)> = all.map(|f| (f.as_str(), self.of(f))).collect();
            all.sort_by(|(f, v), (g, w)| w.total_cmp(v).then(f.cmp(g)));
            all.truncate(most);
            all
        };
        Decisive {
            shared: ordered(&mut a.all.intersection(&b.all)),
            apart: ordered(&mut a.all.symmetric_difference(&b.all)),
        }
    }
}

/// What made two reports similar, and what did not, with the weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisive<'f> {
    pub shared: Vec<(&'f str, f64)>,
    pub apart: Vec<(&'f str, f64)>,
}

struct Counts<'a> {
    reports: usize,
    features: BTreeMap<&'a str, usize>,
    bugs: BTreeMap<&'a str, usize>,
    pairs: BTreeMap<(&'a str, &'a str), usize>,
    /// n(F, Y)
    all_pairs: usize,
}

impl<'a> Counts<'a> {
    fn of(reports: &[Labelled<'a>]) -> Counts<'a> {
        let mut counts = Counts {
            reports: reports.len(),
            features: BTreeMap::new(),
            bugs: BTreeMap::new(),
            pairs: BTreeMap::new(),
            all_pairs: 0,
        };
        for report in reports {
            *counts.bugs.entry(report.bug).or_default() += 1;
            for feature in &report.features.all {
                *counts.features.entry(feature).or_default() += 1;
                *counts.pairs.entry((feature, report.bug)).or_default() += 1;
                counts.all_pairs += 1;
            }
        }
        counts
    }

    /// p(f, y), smoothed.
    fn joint(&self, feature: &str, bug: &str) -> f64 {
        let distinct = self.features.len() * self.bugs.len();
        let seen = self.pairs.get(&(feature, bug)).copied().unwrap_or_default();
        (seen + 1) as f64 / (distinct + self.all_pairs) as f64
    }

    /// Formula (3).
    fn information(&self, feature: &str) -> f64 {
        let n = self.reports as f64;
        let of_feature = self.features.get(feature).copied().unwrap_or_default() as f64 / n;
        let of_bug = |(bug, count): (&&str, &usize)| {
            let joint = self.joint(feature, bug);
            joint * (joint / (of_feature * (*count as f64 / n))).ln()
        };
        self.bugs.iter().map(of_bug).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(all: &[&str]) -> Features {
        Features { all: all.iter().map(|f| (*f).to_string()).collect(), ..Features::default() }
    }

    #[test]
    fn the_formula_is_that_of_the_paper() {
        let (a, b) = (features(&["x", "z"]), features(&["y", "z"]));
        let reports = [
            Labelled { features: &a, bug: "1" },
            Labelled { features: &a, bug: "1" },
            Labelled { features: &b, bug: "2" },
        ];
        let counts = Counts::of(&reports);
        // 3 features and 2 bugs make 6 pairs; the reports have 6 features in all.
        assert!((counts.joint("x", "1") - 3.0 / 12.0).abs() < 1e-12);
        assert!((counts.joint("x", "2") - 1.0 / 12.0).abs() < 1e-12);
        let all: f64 =
            ["x", "y", "z"].iter().flat_map(|f| ["1", "2"].map(|y| counts.joint(f, y))).sum();
        assert!((all - 1.0).abs() < 1e-12, "probabilities add up to 1");
        let by_hand = |joint: f64, f: f64, y: f64| joint * (joint / (f * y)).ln();
        let x = by_hand(0.25, 2.0 / 3.0, 2.0 / 3.0) + by_hand(1.0 / 12.0, 2.0 / 3.0, 1.0 / 3.0);
        assert!((counts.information("x") - x).abs() < 1e-12);
    }

    #[test]
    fn what_all_reports_have_weighs_least_and_what_tells_them_apart_most() {
        let (a, b) = (features(&["x", "z"]), features(&["y", "z"]));
        let both = |n: usize| if n.is_multiple_of(2) { (&a, "1") } else { (&b, "2") };
        let reports: Vec<Labelled<'_>> =
            (0..40).map(both).map(|(features, bug)| Labelled { features, bug }).collect();
        let weights = Weights::counted(&reports);
        assert!(weights.of("z") < weights.of("x"), "{weights:?}");
        assert!((weights.of("x") - weights.of("y")).abs() < 1e-9);
        assert!((weights.of("z")).abs() < 1e-9 && (weights.of("x") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_same_is_one_and_nothing_in_common_is_none() {
        let weights = Weights::equal();
        let (a, b, c) = (features(&["x", "y"]), features(&["y", "z"]), features(&["w"]));
        assert!((weights.similarity(&a, &a) - 1.0).abs() < 1e-12);
        assert!(weights.similarity(&a, &c).abs() < 1e-12);
        let half = weights.similarity(&a, &b);
        assert!(
            (half - 1.0 / 3.0).abs() < 1e-12 && (half - weights.similarity(&b, &a)).abs() < 1e-12
        );
        assert!(weights.similarity(&features(&[]), &features(&[])).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_known_without_reports_and_of_one_bug_alone() {
        assert_eq!(Weights::counted(&[]), Weights::equal());
        let a = features(&["x"]);
        assert_eq!(Weights::counted(&[Labelled { features: &a, bug: "1" }]), Weights::equal());
    }

    #[test]
    fn what_decided_is_told_by_weight() {
        let weights = Weights::equal();
        let (a, b) = (features(&["x", "y", "v"]), features(&["y", "z", "v"]));
        let told = weights.decisive(&a, &b, 1);
        assert_eq!(told.shared, [("v", 1.0)]);
        assert_eq!(weights.decisive(&a, &b, 9).apart, [("x", 1.0), ("z", 1.0)]);
    }
}

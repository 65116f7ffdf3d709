//! How much information a feature gives about the bug of a report: the mutual
//! information of "the report has it" and "the report is about that bug",
//! counted in labelled reports, with Laplace smoothing.
//!
//! With N reports, n(y) those of bug y, n(f, y) those of them that have the feature, and
//! n(¬f, y) those that have not:
//!
//! ```text
//!   p(f, y) = (n(f, y) + 1) / (N + 2 |Y|)     p(¬f, y) the same with n(¬f, y)
//!   p(f) = Σ p(f, y) over y                   p(y) = p(f, y) + p(¬f, y)
//!   w(f) = Σ over y and over f, ¬f of p(f, y) log (p(f, y) / (p(f) p(y)))
//! ```
//!
//! Pisco's formula (3) of appendix C takes p(f, y) as a share of all pairs of a feature and
//! a bug, but p(f) and p(y) as shares of the reports. These do not belong together: the
//! logarithm is then negative for nearly all features, and the more so the more reports
//! have one, so that the result measures how rare a feature is. It also ignores the
//! information in the absence of a feature. [`Weights::of_the_paper`] implements it for
//! comparison.

use super::Features;
use std::collections::BTreeMap;

/// A report whose bug is known.
#[derive(Clone, Copy)]
pub struct LabelledReport<'a> {
    pub features: &'a Features,
    pub bug: &'a str,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    of: BTreeMap<String, f64>,
    /// The weight of a feature that no report has: its information is unknown,
    /// and it is rare that two findings share it.
    unknown: f64,
}

impl Weights {
    /// Every feature weighs the same.
    pub fn equal() -> Weights {
        Weights { of: BTreeMap::new(), unknown: 1.0 }
    }

    /// By mutual information.
    pub fn counted(reports: &[LabelledReport<'_>]) -> Weights {
        Weights::by(reports, Counts::information)
    }

    /// By formula (3) of Pisco as it is written.
    pub fn of_the_paper(reports: &[LabelledReport<'_>]) -> Weights {
        Weights::by(reports, Counts::formula_3)
    }

    /// Weights from 0, the least informative feature, to 1, the most informative.
    fn by<'a>(reports: &[LabelledReport<'a>], measure: fn(&Counts<'a>, &str) -> f64) -> Weights {
        let counts = Counts::of(reports);
        let weighed: BTreeMap<String, f64> =
            counts.features.keys().map(|f| ((*f).to_string(), measure(&counts, f))).collect();
        let least = weighed.values().copied().fold(f64::INFINITY, f64::min);
        let most = weighed.values().copied().fold(f64::NEG_INFINITY, f64::max);
        if counts.bugs.len() < 2 || most - least <= f64::EPSILON {
            return Weights::equal();
        }
        let of = weighed.into_iter().map(|(f, w)| (f, (w - least) / (most - least))).collect();
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
    pub fn compare<'f>(
        &self,
        a: &'f Features,
        b: &'f Features,
        most: usize,
    ) -> FeatureComparison<'f> {
        let ordered = |all: &mut dyn Iterator<Item = &'f String>| {
            let mut all: Vec<(&'f str, f64)> = all.map(|f| (f.as_str(), self.of(f))).collect();
            all.sort_by(|(f, v), (g, w)| w.total_cmp(v).then(f.cmp(g)));
            all.truncate(most);
            all
        };
        FeatureComparison {
            shared: ordered(&mut a.all.intersection(&b.all)),
            apart: ordered(&mut a.all.symmetric_difference(&b.all)),
        }
    }
}

/// The features that two reports share and those that only one has, with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureComparison<'f> {
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
    fn of(reports: &[LabelledReport<'a>]) -> Counts<'a> {
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

    fn seen(&self, feature: &str, bug: &str) -> usize {
        self.pairs.get(&(feature, bug)).copied().unwrap_or_default()
    }

    fn information(&self, feature: &str) -> f64 {
        let all = (self.reports + 2 * self.bugs.len()) as f64;
        let with = |bug: &str| (self.seen(feature, bug) + 1) as f64 / all;
        let of_feature: f64 = self.bugs.keys().map(|bug| with(bug)).sum();
        let of_bug = |(bug, count): (&&str, &usize)| {
            let (of_bug, with) = ((*count + 2) as f64 / all, with(bug));
            let weighed = |joint: f64, alone: f64| joint * (joint / (alone * of_bug)).ln();
            weighed(with, of_feature) + weighed(of_bug - with, 1.0 - of_feature)
        };
        self.bugs.iter().map(of_bug).sum()
    }

    fn formula_3(&self, feature: &str) -> f64 {
        let n = self.reports as f64;
        let pairs = (self.features.len() * self.bugs.len() + self.all_pairs) as f64;
        let of_feature = self.features.get(feature).copied().unwrap_or_default() as f64 / n;
        let of_bug = |(bug, count): (&&str, &usize)| {
            let joint = (self.seen(feature, bug) + 1) as f64 / pairs;
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

    /// Three reports, two of bug 1 with x and one of bug 2 with y; z is in all.
    fn three<'f>(a: &'f Features, b: &'f Features) -> [LabelledReport<'f>; 3] {
        [(a, "1"), (a, "1"), (b, "2")].map(|(features, bug)| LabelledReport { features, bug })
    }

    #[test]
    fn both_formulas_are_as_counted_by_hand() {
        let (a, b) = (features(&["x", "z"]), features(&["y", "z"]));
        let counts = Counts::of(&three(&a, &b));
        let weighed = |joint: f64, f: f64, y: f64| joint * (joint / (f * y)).ln();
        // Smoothed, of 7: with x 3 and 1, without 1 and 2; bug 1 has 4, bug 2 has 3.
        let sevenths = |joint: f64, f: f64, y: f64| weighed(joint / 7.0, f / 7.0, y / 7.0);
        let x = sevenths(3.0, 4.0, 4.0)
            + sevenths(1.0, 4.0, 3.0)
            + sevenths(1.0, 3.0, 4.0)
            + sevenths(2.0, 3.0, 3.0);
        assert!((counts.information("x") - x).abs() < 1e-12);
        // The paper's: 3 features and 2 bugs make 6 pairs; the reports have 6 features in all.
        let x =
            weighed(3.0 / 12.0, 2.0 / 3.0, 2.0 / 3.0) + weighed(1.0 / 12.0, 2.0 / 3.0, 1.0 / 3.0);
        assert!((counts.formula_3("x") - x).abs() < 1e-12);
    }

    #[test]
    fn feature_of_every_bug_weighs_less_than_feature_of_one_bug() {
        let seldom = features(&["common", "seldom"]);
        let (a, b) = (features(&["common", "one"]), features(&["common"]));
        let mut reports = Vec::new();
        for bug in ["1", "2"] {
            reports.push(LabelledReport { features: &seldom, bug });
            let rest = if bug == "1" { &a } else { &b };
            reports.extend((0..9).map(|_| LabelledReport { features: rest, bug }));
        }
        let weights = Weights::counted(&reports);
        assert!((weights.of("one") - 1.0).abs() < 1e-12, "{weights:?}");
        assert!(weights.of("seldom") < 0.05 && weights.of("common") < 0.05, "{weights:?}");
        // By the paper's formula a rare feature weighs most, however little information it gives.
        let of_the_paper = Weights::of_the_paper(&reports);
        assert!((of_the_paper.of("seldom") - 1.0).abs() < 1e-12, "{of_the_paper:?}");
    }

    #[test]
    fn common_feature_weighs_least_and_distinguishing_feature_most() {
        let (a, b) = (features(&["x", "z"]), features(&["y", "z"]));
        let both = |n: usize| if n.is_multiple_of(2) { (&a, "1") } else { (&b, "2") };
        let reports: Vec<LabelledReport<'_>> =
            (0..40).map(both).map(|(features, bug)| LabelledReport { features, bug }).collect();
        let weights = Weights::counted(&reports);
        assert!(weights.of("z") < weights.of("x"), "{weights:?}");
        assert!((weights.of("x") - weights.of("y")).abs() < 1e-9);
        assert!((weights.of("z")).abs() < 1e-9 && (weights.of("x") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn similarity_is_one_for_equal_and_zero_for_disjoint_features() {
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
    fn weights_are_equal_without_reports_of_two_bugs() {
        assert_eq!(Weights::counted(&[]), Weights::equal());
        let a = features(&["x"]);
        assert_eq!(
            Weights::counted(&[LabelledReport { features: &a, bug: "1" }]),
            Weights::equal()
        );
    }

    #[test]
    fn compared_features_are_ordered_by_weight() {
        let weights = Weights::equal();
        let (a, b) = (features(&["x", "y", "v"]), features(&["y", "z", "v"]));
        let weighed = weights.compare(&a, &b, 1);
        assert_eq!(weighed.shared, [("v", 1.0)]);
        assert_eq!(weights.compare(&a, &b, 9).apart, [("x", 1.0), ("z", 1.0)]);
    }
}

//! What the benchmarks share: opening targets and describing distributions.

#![forbid(unsafe_code)]

pub mod explained;
pub mod simulate;
pub mod timed;

use isolde_engines::engine::Engine;
use isolde_engines::fetch::install::{self, Cache};
use isolde_engines::target::{Options, Target};
use isolde_model::case;
use isolde_model::case::Case;
use std::time::Duration;

/// The target's engine, or none with a line that says why.
pub fn open(name: &str) -> Option<Box<dyn Engine>> {
    let target = Target::parse(name).expect("a target of the benchmark");
    if let Target::Named(named) = &target
        && named.engine != "sqlite"
        && let Err(why) = install::find(&named.engine, named.version.as_deref(), &Cache::open())
    {
        println!("{name}: skipped: {why}");
        return None;
    }
    match target.open(&Options { cache: Cache::open(), via: None }) {
        Ok(engine) => Some(engine),
        Err(error) => {
            println!("{name}: skipped: {error}");
            None
        }
    }
}

pub fn case(text: &str) -> Case {
    case::parse(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Sorted times with the usual questions.
pub struct Times(Vec<Duration>);

impl Times {
    pub fn new(mut times: Vec<Duration>) -> Times {
        times.sort();
        Times(times)
    }

    pub fn at(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        // A share of a length is never negative and never beyond the end.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let index = ((last as f64) * share).round() as usize;
        self.0.get(index.min(last)).copied().unwrap_or_default()
    }

    pub fn show(&self) -> String {
        let ms = |d: Duration| format!("{:8.2}", d.as_secs_f64() * 1000.0);
        format!(
            "{} {} {} {} {:6}",
            ms(self.at(0.5)),
            ms(self.at(0.9)),
            ms(self.at(0.99)),
            ms(self.at(1.0)),
            self.0.len()
        )
    }
}

//! Runs cases on one engine and explains them.

use crate::open;
use isolde_engines::runner::Runner;
use isolde_hunt::account;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::Case;
use isolde_reference::Account;

/// Explains cases on one target. An engine that fails is opened again.
pub struct Explainer {
    target: String,
    executor: Option<Executor>,
}

impl Explainer {
    pub fn new(target: &str) -> Explainer {
        Explainer { target: target.into(), executor: None }
    }

    /// Runs a case at its level and explains it; prints why if that is not possible.
    pub fn explain(&mut self, case: &Case, run: &str) -> Option<Account> {
        let mut opened = match self.executor.take() {
            Some(executor) => executor,
            None => Executor::new(Runner::new(open(&self.target)?)),
        };
        let info = opened.runner.engine.info().clone();
        let default = opened.runner.engine.profile().default_level;
        let mut case = case.clone().read_as(info.family());
        let level = case.level.unwrap_or(default);
        let history = match opened.runner.run(&case, Some(level)) {
            Ok(history) => history,
            Err(why) => {
                println!("{run}: not run: {why}");
                return None;
            }
        };
        opened.forget_tables();
        case.level = Some(level);
        let fixture = Fixture::of_case(&case, &info, default);
        match account::of_run(&mut opened, (&fixture, &case), &history) {
            Ok(account) => {
                self.executor = Some(opened);
                account
            }
            Err(why) => {
                println!("{run}: not explained: {why}");
                None
            }
        }
    }
}

/// Why a run is undecided, without names of steps, and with the beginning of a
/// statement that is not read.
pub fn reason(account: &Account) -> String {
    let why = match account.why.split_once("not modelled: ") {
        Some((before, why)) if before.len() < 12 => why,
        _ => account.why.as_str(),
    };
    let place = account.why.split(": ").next().unwrap_or_default();
    match account.steps.iter().find(|s| s.step == place) {
        Some(step) if why == "it is not read" || why.starts_with("changes of the schema") => {
            let words: Vec<&str> = step.sql.split_whitespace().take(4).collect();
            format!("{why}: {}", words.join(" "))
        }
        _ => why.into(),
    }
}

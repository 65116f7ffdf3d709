//! The arguments of `isolde explain`.

use super::shared::ServerArgs;
use clap::Args;
use std::path::PathBuf;

pub const EXAMPLE: &str = "\
Example, a lost update:
  case: lost-update

  setup:
    create table account (id int primary key, balance int);
    insert into account values (1, 100);

  s1> begin;
  s2> begin;
  s1> select balance from account where id = 1;
  s2> select balance from account where id = 1;
  s1> update account set balance = 110 where id = 1;
  s2> update account set balance = 120 where id = 1;
  s1> commit;
  s2> commit;

  isolde explain lost-update.case --on postgres --level all
  isolde explain lost-update.case --on postgres mariadb sqlite --level all

At READ COMMITTED the second update blocks and then overwrites the first; from
REPEATABLE READ on it fails with error 40001. docs/explain.md explains the
output line by line; docs/semantics.md lists all rules.";

#[derive(Args)]
pub struct ExplainArgs {
    /// A case file, or the folder of a finding.
    #[arg(value_name = "CASE", required_unless_present = "on")]
    pub case: Option<PathBuf>,
    /// Target to run on; several are compared side by side [default: the target of the hunt for a
    /// finding, else the first engine of the case that is installed, else sqlite]
    #[arg(long, value_name = "TARGET", num_args = 1..)]
    pub on: Vec<String>,
    /// Levels to run at, or `all`: the level of the case, then how the others differ
    /// [default: the level of the case, else the target's default]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', num_args = 1..)]
    pub level: Vec<String>,
    /// For an anomaly, also run what prevents it: the case with SELECT … FOR UPDATE, and at the
    /// weakest level that does not allow the anomaly.
    #[arg(long)]
    pub fix: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

impl ExplainArgs {
    /// The case and the targets. `--on` takes all words that follow, so the case is the
    /// last of them where it was written behind.
    pub fn case_and_targets(&self) -> Option<(PathBuf, &[String])> {
        match (&self.case, self.on.split_last()) {
            (Some(case), _) => Some((case.clone(), &self.on)),
            (None, Some((case, on))) if !on.is_empty() => Some((case.into(), on)),
            (None, _) => None,
        }
    }
}

//! What to hunt for: from the command line, and for a resumed hunt from its
//! hunt.json.

use crate::args::hunt::HuntArgs;
use crate::commands::report;
use crate::commands::seed::new_seed;
use crate::exit_code::{ExitCode, Failure};
use isolde_engines::built_in::DEFAULT_TARGET;
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::{RunSettings, Shard, Summary};
use isolde_oracles::{ORACLES, Oracle, OracleOptions, topological};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit of a hunt without `--time` and `--cases`.
const DEFAULT_TIME: Duration = Duration::from_secs(20);
const DEFAULT_RATE: f64 = 0.5;

pub struct HuntRequest {
    pub target: String,
    pub oracles: Vec<String>,
    pub levels: Vec<String>,
    pub seed: u64,
    pub cases: Option<u64>,
    /// The time limit of this run.
    pub time: Option<Duration>,
    /// The limits of the whole hunt, over all its resumed runs.
    pub asked: RunSettings,
    pub fault: Option<String>,
    pub fault_rate: f64,
    pub shard: Shard,
    pub all: bool,
    pub reduces: bool,
    /// Whether a finding in which only the locking differs fails the hunt.
    pub strict: bool,
    pub ddl: bool,
    pub depth: Option<u8>,
    pub prepared: bool,
    pub rounds: Rounds,
    pub oracle_options: OracleOptions,
}

/// The size of rounds at full speed.
#[derive(Clone, Copy)]
pub struct Rounds {
    pub sessions: u64,
    pub keys: u64,
    pub transactions: u64,
}

impl Rounds {
    fn of(args: &HuntArgs, known: impl Fn(&str) -> Option<u64>) -> Rounds {
        let value =
            |given: Option<u64>, name, default| given.or_else(|| known(name)).unwrap_or(default);
        Rounds {
            sessions: value(args.sessions.map(u64::from), SESSIONS, 12),
            keys: value(args.keys.map(u64::from), KEYS, 6),
            transactions: value(args.round.map(u64::from), TRANSACTIONS, 400),
        }
    }
}

/// The options of the oracles: those of the command line, else those of the resumed hunt.
fn oracle_options(args: &HuntArgs, earlier: impl Fn(&str) -> Option<String>) -> OracleOptions {
    let mut options = OracleOptions::default();
    for option in ORACLES.iter().flat_map(|oracle| oracle.options()) {
        let given = match *option {
            topological::ORDERS => args.orders.map(|orders| orders.to_string()),
            topological::ALL_EDGES => args.all_edges.then(|| true.to_string()),
            _ => None,
        };
        if let Some(value) = given.or_else(|| earlier(option.name)) {
            options.set(*option, value);
        }
    }
    options
}

const NO_REDUCE: &str = "no reduce";
const SESSIONS: &str = "sessions";
const KEYS: &str = "keys";
const TRANSACTIONS: &str = "transactions a round";

impl HuntRequest {
    pub fn new(args: &HuntArgs) -> Result<HuntRequest, Failure> {
        if args.resume {
            report::check_is_hunt(&args.out)?;
            return resumed(args, &Folder::open(&args.out).read_summary()?);
        }
        if args.shard.is_some() && args.seed.is_none() {
            return Err(usage(
                "--shard needs --seed: all shards of a hunt must have the same one".into(),
            ));
        }
        let default = args.cases.is_none().then_some(DEFAULT_TIME);
        let time = args.time.or(default);
        Ok(HuntRequest {
            target: args.target.clone().unwrap_or_else(|| DEFAULT_TARGET.into()),
            oracles: args.oracle.clone(),
            levels: args.level.clone(),
            seed: args.seed.unwrap_or_else(new_seed),
            cases: args.cases,
            time,
            asked: RunSettings {
                seconds: time.map(|t| t.as_secs_f64()),
                jobs: args.jobs.unwrap_or(1).into(),
            },
            fault: args.fault.clone(),
            fault_rate: args.fault_rate.unwrap_or(DEFAULT_RATE),
            shard: args.shard.unwrap_or(Shard::WHOLE),
            all: args.all,
            reduces: !args.no_reduce,
            strict: args.strict,
            ddl: args.ddl,
            depth: args.depth,
            prepared: args.prepared,
            rounds: Rounds::of(args, |_| None),
            oracle_options: oracle_options(args, |_| None),
        })
    }

    /// Whether the hunt runs sessions at full speed: with the isolation oracle
    /// alone.
    pub fn runs_rounds(&self) -> bool {
        self.oracles.len() == 1 && self.oracles[0] == Oracle::Isolation.name()
    }

    /// The options that, with the seed, determine the cases of a hunt.
    pub fn options(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        options.insert("ddl".to_string(), self.ddl.to_string());
        if let Some(depth) = self.depth {
            options.insert("depth".into(), depth.to_string());
        }
        options.insert("prepared".to_string(), self.prepared.to_string());
        options.insert("all".to_string(), self.all.to_string());
        if !self.reduces {
            options.insert(NO_REDUCE.into(), "true".into());
        }
        if self.runs_rounds() {
            options.insert(SESSIONS.into(), self.rounds.sessions.to_string());
            options.insert(KEYS.into(), self.rounds.keys.to_string());
            options.insert(TRANSACTIONS.into(), self.rounds.transactions.to_string());
        }
        let wanted = |oracle: &&Oracle| {
            self.oracles.iter().any(|name| name == oracle.name() || name == "all")
        };
        for option in ORACLES.iter().filter(wanted).flat_map(|oracle| oracle.options()) {
            options.insert(option.name.into(), self.oracle_options.get(*option).into());
        }
        if let Some(cases) = self.cases {
            options.insert("cases".into(), cases.to_string());
        }
        if let Some(fault) = &self.fault {
            options.insert("fault".into(), fault.clone());
            options.insert("fault_rate".into(), self.fault_rate.to_string());
        }
        options
    }
}

/// The request of a resumed hunt: options that were not given are those of
/// hunt.json. Whether the given ones agree with it is checked later, when the
/// identity of the hunt is known.
fn resumed(args: &HuntArgs, earlier: &Summary) -> Result<HuntRequest, Failure> {
    let id = &earlier.identity;
    let option = |name: &str| id.options.get(name).cloned();
    let is_set = |name: &str| option(name).is_some_and(|value| value == "true");
    let or_else = |given: &[String], known: &[String]| match given {
        [] => known.to_vec(),
        given => given.to_vec(),
    };
    if args.target.is_none() && id.target.contains(":***@") {
        return Err(usage(format!(
            "hunt.json does not contain the password of {}; name the target again, with its password",
            id.target
        )));
    }
    let shard = args.shard.or_else(|| earlier.shards.first().copied().filter(|s| s.of > 1));
    Ok(HuntRequest {
        target: args.target.clone().unwrap_or_else(|| id.target.clone()),
        oracles: or_else(&args.oracle, &id.oracles),
        levels: or_else(&args.level, &id.levels),
        seed: args.seed.unwrap_or(id.seed),
        cases: args.cases.or_else(|| option("cases")?.parse().ok()),
        time: time_left(args, earlier)?,
        asked: RunSettings {
            jobs: args.jobs.map_or(earlier.run_settings.jobs.clamp(1, 64), Into::into),
            seconds: earlier.run_settings.seconds,
        },
        fault: args.fault.clone().or_else(|| option("fault")),
        fault_rate: match args.fault_rate {
            Some(rate) => rate,
            None => option("fault_rate").and_then(|r| r.parse().ok()).unwrap_or(DEFAULT_RATE),
        },
        shard: shard.unwrap_or(Shard::WHOLE),
        all: args.all || is_set("all"),
        reduces: !args.no_reduce && !is_set(NO_REDUCE),
        strict: args.strict,
        ddl: args.ddl || is_set("ddl"),
        depth: args.depth.or_else(|| option("depth")?.parse().ok()),
        prepared: args.prepared || is_set("prepared"),
        rounds: Rounds::of(args, |name| option(name)?.parse().ok()),
        oracle_options: oracle_options(args, option),
    })
}

/// The time limit of a resumed hunt: `--time` counts from now; without it the
/// rest of the original limit.
fn time_left(args: &HuntArgs, earlier: &Summary) -> Result<Option<Duration>, Failure> {
    let (Some(asked), None) = (earlier.run_settings.seconds, args.time) else {
        return Ok(args.time);
    };
    let left = Duration::try_from_secs_f64(asked - earlier.seconds).unwrap_or_default();
    if left.is_zero() {
        let had = humantime::format_duration(Duration::from_secs(asked as u64));
        let out = args.out.display();
        return Err(usage(format!(
            "the hunt in {out} has used up its time of {had}; continue it with --time"
        )));
    }
    Ok(Some(left))
}

fn usage(message: String) -> Failure {
    Failure::new(ExitCode::Usage, message)
}

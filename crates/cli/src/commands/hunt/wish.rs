//! What a hunt was asked for: the command line, and for a resumed hunt what
//! its hunt.json knows.

use crate::exit_code::{ExitCode, Failure};
use crate::hunt_args::HuntArgs;
use isolde_core::oracle::{Oracle, topological};
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::{Asked, Shard, Summary};
use std::collections::BTreeMap;
use std::time::Duration;

/// A hunt that was asked for nothing in particular ends after this.
const DEFAULT_TIME: Duration = Duration::from_secs(20);
const DEFAULT_RATE: f64 = 0.5;

pub struct Wish {
    pub target: String,
    pub oracles: Vec<String>,
    pub levels: Vec<String>,
    pub seed: u64,
    pub cases: Option<u64>,
    /// For this part of the hunt.
    pub time: Option<Duration>,
    /// For the whole of it.
    pub asked: Asked,
    pub fault: Option<String>,
    pub fault_rate: f64,
    pub shard: Shard,
    pub all: bool,
    pub reduces: bool,
    pub ddl: bool,
    pub prepared: bool,
    pub rounds: Rounds,
    pub topological: topological::Options,
}

/// How rounds at full speed are shaped.
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

/// How graphs are made and used.
fn graphs(args: &HuntArgs, known: impl Fn(&str) -> Option<String>) -> topological::Options {
    let usual = topological::Options::default();
    let orders = args.orders.map(usize::from);
    let all_edges = args.all_edges || known(ALL_EDGES).is_some_and(|value| value == "true");
    topological::Options {
        orders: orders.or_else(|| known(ORDERS)?.parse().ok()).unwrap_or(usual.orders),
        exact_matches: !all_edges,
    }
}

const ORDERS: &str = "orders";
const ALL_EDGES: &str = "all edges";
const NO_REDUCE: &str = "no reduce";
const SESSIONS: &str = "sessions";
const KEYS: &str = "keys";
const TRANSACTIONS: &str = "transactions a round";

impl Wish {
    pub fn of(args: &HuntArgs) -> Result<Wish, Failure> {
        if args.resume {
            super::super::report::is_hunt(&args.out)?;
            return resumed(args, &Folder::open(&args.out).read_summary()?);
        }
        if args.shard.is_some() && args.seed.is_none() {
            return Err(usage("the shards of a hunt need the same --seed; choose one".into()));
        }
        let default = args.cases.is_none().then_some(DEFAULT_TIME);
        let time = args.time.or(default);
        Ok(Wish {
            target: args.target.clone().unwrap_or_else(|| "sqlite".into()),
            oracles: args.oracle.clone(),
            levels: args.level.clone(),
            seed: args.seed.unwrap_or_else(new_seed),
            cases: args.cases,
            time,
            asked: Asked {
                seconds: time.map(|t| t.as_secs_f64()),
                jobs: args.jobs.unwrap_or(1).into(),
            },
            fault: args.fault.clone(),
            fault_rate: args.fault_rate.unwrap_or(DEFAULT_RATE),
            shard: args.shard.unwrap_or(Shard::WHOLE),
            all: args.all,
            reduces: !args.no_reduce,
            ddl: args.ddl,
            prepared: args.prepared,
            rounds: Rounds::of(args, |_| None),
            topological: graphs(args, |_| None),
        })
    }

    /// Alone, the isolation oracle judges what sessions do at full speed.
    pub fn runs_rounds(&self) -> bool {
        self.oracles.len() == 1 && self.oracles[0] == Oracle::Isolation.name()
    }

    /// What the generator and the faults are told beside the seed: hunts that
    /// differ in it have different cases.
    pub fn options(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        options.insert("ddl".to_string(), self.ddl.to_string());
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
        if self.oracles.iter().any(|name| name == Oracle::Topological.name() || name == "all") {
            options.insert(ORDERS.into(), self.topological.orders.to_string());
            options.insert(ALL_EDGES.into(), (!self.topological.exact_matches).to_string());
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

/// What was not given is that of hunt.json. Whether what was given agrees with
/// it is seen when the hunt's identity is known.
fn resumed(args: &HuntArgs, earlier: &Summary) -> Result<Wish, Failure> {
    let id = &earlier.identity;
    let option = |name: &str| id.options.get(name).cloned();
    let is_set = |name: &str| option(name).is_some_and(|value| value == "true");
    let or_else = |given: &[String], known: &[String]| match given {
        [] => known.to_vec(),
        given => given.to_vec(),
    };
    if args.target.is_none() && id.target.contains(":***@") {
        return Err(usage(format!(
            "the password of {} is not kept; name the target again, with it",
            id.target
        )));
    }
    let shard = args.shard.or_else(|| earlier.shards.first().copied().filter(|s| s.of > 1));
    Ok(Wish {
        target: args.target.clone().unwrap_or_else(|| id.target.clone()),
        oracles: or_else(&args.oracle, &id.oracles),
        levels: or_else(&args.level, &id.levels),
        seed: args.seed.unwrap_or(id.seed),
        cases: args.cases.or_else(|| option("cases")?.parse().ok()),
        time: time_left(args, earlier)?,
        asked: Asked {
            jobs: args.jobs.map_or(earlier.asked.jobs.clamp(1, 64), Into::into),
            seconds: earlier.asked.seconds,
        },
        fault: args.fault.clone().or_else(|| option("fault")),
        fault_rate: match args.fault_rate {
            Some(rate) => rate,
            None => option("fault_rate").and_then(|r| r.parse().ok()).unwrap_or(DEFAULT_RATE),
        },
        shard: shard.unwrap_or(Shard::WHOLE),
        all: args.all || is_set("all"),
        reduces: !args.no_reduce && !is_set(NO_REDUCE),
        ddl: args.ddl || is_set("ddl"),
        prepared: args.prepared || is_set("prepared"),
        rounds: Rounds::of(args, |name| option(name)?.parse().ok()),
        topological: graphs(args, option),
    })
}

/// `--time` of a resumed hunt begins now; without it the hunt gets what is left
/// of the time that it was given first.
fn time_left(args: &HuntArgs, earlier: &Summary) -> Result<Option<Duration>, Failure> {
    let (Some(asked), None) = (earlier.asked.seconds, args.time) else { return Ok(args.time) };
    let left = Duration::try_from_secs_f64(asked - earlier.seconds).unwrap_or_default();
    if left.is_zero() {
        let had = humantime::format_duration(Duration::from_secs(asked as u64));
        let out = args.out.display();
        return Err(usage(format!("the hunt in {out} has had its {had}; give more with --time")));
    }
    Ok(Some(left))
}

pub fn new_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // Short enough to be typed again.
    since.map_or(1, |d| d.as_millis() as u64 % 1_000_000_007)
}

fn usage(message: String) -> Failure {
    Failure::new(ExitCode::Usage, message)
}

//! `isolde hunt`: generates cases, runs them, and reports violations.
//!
//! `request.rs` turns the command line, or the hunt.json of a resumed hunt,
//! into what to hunt for; [`run`] prepares the target and the output folder and
//! starts the hunt; [`finish`] writes the report and decides the exit code.

mod junit;
mod next;
mod request;
mod show;

use super::Outcome;
use super::context::{Context, LevelChoice};
use crate::args::hunt::HuntArgs;
use crate::baseline::BaselineFile;
use crate::exit_code::{ExitCode, Failure};
use crate::junit::JunitFile;
use crate::{interrupt, library, page};
use isolde_engines::engine::{Engine, EngineResult};
use isolde_engines::fault::{self, Planted};
use isolde_engines::server::abandoned;
use isolde_engines::server::owner::Owner;
use isolde_engines::target::Target;
use isolde_generator::{Generator, Options};
use isolde_hunt::folder::Folder;
use isolde_hunt::hunt::{self, Hunt, HuntMonitor, HuntResult};
use isolde_hunt::isolation::Shape;
use isolde_hunt::known::KnownBugs;
use isolde_hunt::resume::PreviousRun;
use isolde_hunt::summary::{Identity, Shard};
use isolde_model::{Level, Profile};
use isolde_oracles as oracle;
use isolde_oracles::{DEFAULT_ORACLES, ORACLES, Oracle};
use request::HuntRequest;
use std::time::Duration;

pub fn run(context: &Context<'_>, args: &HuntArgs) -> Outcome {
    let request = HuntRequest::new(args)?;
    let baseline = BaselineFile::read(&args.baseline)?;
    let oracles = chosen_oracles(&request.oracles)?;
    let target = context.parse_target(&request.target)?;
    let planted = planted_fault(&request)?;
    if !args.resume {
        Folder::check(&args.out)?;
    }
    let junit = match &args.junit {
        Some(path) => Some(JunitFile::begin(path, &format!("hunt {target}"))?),
        None => None,
    };
    context.console.progress(&format!("starting {target}"));
    let open = || open_engine(context, &target, planted);
    let first = open()?;
    context.console.end_progress();
    let info = first.info().clone();
    if let Some(Planted { fault, .. }) = planted
        && let Some(why) = fault.unsupported_on(&info.engine, first.profile())
    {
        let message = format!("{} cannot be planted in {target}: {why}", fault.name);
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let levels = chosen_levels(&request.levels, first.profile())?;
    let dialect = info.dialect();
    let mut options = Options::new(levels.clone(), first.profile().default_level);
    options.ddl = request.ddl;
    options.depth = request.depth.map(usize::from);
    options.prepared = request.prepared;
    let generator = Generator::new(dialect, request.seed, options);
    let identity = Identity {
        version: env!("CARGO_PKG_VERSION").into(),
        seed: request.seed,
        target: info.target.clone(),
        server_version: info.version.clone(),
        settings: info.settings.clone(),
        levels: levels.iter().map(|l| l.name().to_string()).collect(),
        oracles: oracles.iter().map(|o| o.name().to_string()).collect(),
        options: request.options(),
    };
    let (folder, earlier) = open_folder(args, &identity, request.shard)?;
    if matches!(target, Target::Url(_)) {
        remove_leftovers(context, &target, &folder);
        folder.set_owner(&Owner::this_process().to_string())?;
    }
    // Findings in an engine with a planted fault are due to the fault.
    let known = if planted.is_some() { KnownBugs::default() } else { known_bugs() };
    let hunt = Hunt {
        identity,
        generator: &generator,
        oracles: &oracles,
        known: &known,
        shard: request.shard,
        cases: request.cases,
        time: request.time,
        workers: usize::try_from(request.asked.jobs).unwrap_or(1),
        run_settings: request.asked,
        all: request.all,
        reduces: request.reduces,
        rounds: request.runs_rounds().then(|| shape(&request)),
        oracle_options: request.oracle_options.clone(),
        open: &open,
        interrupted: interrupt::is_requested,
    };
    if let Some(old) = folder.moved() {
        context.console.note(&format!("moved the earlier hunt to {}", old.display()));
    }
    show::beginning(context, &hunt, &folder);
    let watch = HuntMonitor::default();
    let cases = earlier.as_ref().map_or(0, |e| e.counted().cases);
    let ended = show::watching(context, &hunt, cases, &watch, || {
        hunt::run(&hunt, first, &folder, earlier, &watch)
    });
    Ok(finish(context, &request, &folder, (junit.as_ref(), baseline), ended))
}

/// Writes and prints the results. After an error, everything else is still
/// written, and a bug that was found still decides the exit code.
fn finish(
    context: &Context<'_>,
    request: &HuntRequest,
    folder: &Folder,
    (junit, baseline): (Option<&JunitFile>, Option<BaselineFile>),
    ended: HuntResult,
) -> ExitCode {
    let HuntResult { mut summary, failure: ended_by } = ended;
    let mut failures: Vec<Failure> = ended_by.map(Failure::from).into_iter().collect();
    let findings = folder.read_findings().unwrap_or_else(|error| {
        failures.push(error.into());
        Vec::new()
    });
    if let Some(mut baseline) = baseline {
        match baseline.judge(context.console, &findings) {
            Ok(judged) => {
                summary.baseline = Some(judged);
                failures.extend(folder.write_summary(&summary).err().map(Failure::from));
            }
            Err(error) => failures.push(error),
        }
    }
    if let Err(error) = page::write(folder.path()) {
        failures.push(error.into());
    }
    if let Some(file) = junit {
        let failure = failures.first().map(|f| f.message.as_str());
        failures.extend(file.write(&junit::report(&summary, &findings, failure)).err());
    }
    if context.json {
        match serde_json::to_string(&summary) {
            Ok(text) => context.console.print(&text),
            Err(error) => failures.push(error.into()),
        }
    } else {
        show::ending(context, request, folder, &summary, &findings);
    }
    for failure in &failures {
        context.console.error(&failure.message);
    }
    match (interrupt::is_requested(), summary.new_bugs()) {
        (true, _) => ExitCode::Interrupted,
        (false, 0) if failures.is_empty() => match summary.violations.locking {
            1.. if request.strict => ExitCode::Violation,
            _ if summary.nothing_tested().is_some() => ExitCode::Undecided,
            _ => ExitCode::Success,
        },
        // The other failures are consequences of the first.
        (false, 0) => failures.first().map_or(ExitCode::Success, |failure| failure.code),
        (false, _) => ExitCode::Violation,
    }
}

fn planted_fault(request: &HuntRequest) -> Result<Option<Planted>, Failure> {
    let Some(name) = &request.fault else { return Ok(None) };
    let fault = fault::find(name).map_err(|e| Failure::new(ExitCode::Usage, e))?;
    Ok(Some(Planted { fault, rate: request.fault_rate, seed: request.seed }))
}

/// Opens a target, with a fault planted in it if there is one.
pub fn open_engine(
    context: &Context<'_>,
    target: &Target,
    planted: Option<Planted>,
) -> EngineResult<Box<dyn Engine>> {
    let engine = target.open(&context.options)?;
    Ok(match planted {
        Some(planted) => fault::plant(engine, planted),
        None => engine,
    })
}

fn open_folder(
    args: &HuntArgs,
    identity: &Identity,
    shard: Shard,
) -> Result<(Folder, Option<PreviousRun>), Failure> {
    if args.resume {
        let folder = Folder::reopen(&args.out)?;
        let earlier = PreviousRun::read(&folder, identity, shard)?;
        return Ok((folder, Some(earlier)));
    }
    Ok((Folder::create(&args.out)?, None))
}

/// Removes the databases that this hunt left on a user's server when it was
/// killed. Errors are noted and do not stop the hunt.
fn remove_leftovers(context: &Context<'_>, target: &Target, folder: &Folder) {
    let Some(owner) = folder.owner().and_then(|text| Owner::parse(&text)) else { return };
    let cleaned = target
        .admin_connection()
        .and_then(|mut connection| abandoned::clean(connection.as_mut(), Some(&owner)));
    let console = context.console;
    match cleaned {
        Ok(found) => {
            for name in &found.removed {
                console.note(&format!("removed {name}, a leftover of the killed hunt"));
            }
            for name in &found.elsewhere {
                console.note(&format!(
                    "{name} was created on another machine; run `isolde clean {target}` there to remove it"
                ));
            }
            for (name, why) in &found.failed {
                console
                    .note(&format!("cannot remove {name}, a leftover of the killed hunt: {why}"));
            }
        }
        Err(error) => {
            console.note(&format!("cannot check for leftovers of the killed hunt: {error}"))
        }
    }
}

/// The time limit of a round, so that a hunt ends in time and shows progress on
/// a slow engine.
const LONGEST_ROUND: Duration = Duration::from_secs(10);

fn shape(request: &HuntRequest) -> Shape {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Shape {
        sessions: size(request.rounds.sessions),
        keys: size(request.rounds.keys),
        transactions: request.rounds.transactions,
        time: request.time.map_or(LONGEST_ROUND, |time| time.min(LONGEST_ROUND)),
        all_predicates: false,
    }
}

fn chosen_oracles(names: &[String]) -> Result<Vec<Oracle>, Failure> {
    if names.is_empty() {
        return Ok(DEFAULT_ORACLES.to_vec());
    }
    if names.len() == 1 && names[0] == "all" {
        return Ok(ORACLES.to_vec());
    }
    let found: Result<Vec<_>, String> = names.iter().map(|n| oracle::find(n)).collect();
    found.map_err(|e| Failure::new(ExitCode::Usage, e))
}

/// The levels of a target that were asked for; all if none were.
pub fn chosen_levels(names: &[String], profile: &Profile) -> Result<Vec<Level>, Failure> {
    let all = profile.level_names();
    let levels = match LevelChoice::parse(names)? {
        Some(LevelChoice::These(levels)) => levels,
        _ => return Ok(all),
    };
    if let Some(unknown) = levels.iter().find(|l| !all.contains(l)) {
        let known: Vec<&str> = all.iter().map(|l| l.name()).collect();
        let text = format!("this target has no level {unknown}; it has {}", known.join(", "));
        return Err(Failure::new(ExitCode::Usage, text));
    }
    Ok(levels)
}

/// The library of known bugs; empty if it cannot be read, which does not stop a
/// hunt.
fn known_bugs() -> KnownBugs {
    let entries = library::load(None, None).unwrap_or_default();
    KnownBugs::of(entries.into_iter().map(|entry| entry.case))
}

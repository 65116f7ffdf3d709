//! `isolde hunt`: the main job.

pub mod faults;
mod junit;
mod next;
mod show;
pub mod wish;

use super::{Context, Levels, Outcome, parse_levels};
use crate::baseline::BaselineFile;
use crate::exit_code::{ExitCode, Failure};
use crate::hunt_args::HuntArgs;
use crate::junit::JunitFile;
use crate::{interrupt, library};
use isolde_core::generate::{Generator, Options};
use isolde_core::oracle::{self, ORACLES, Oracle, USUAL};
use isolde_core::{Level, Profile};
use isolde_engines::engine::{Engine, EngineResult};
use isolde_engines::fault::{self, Planted};
use isolde_engines::server::leftovers;
use isolde_engines::server::owner::Owner;
use isolde_engines::target::Target;
use isolde_hunt::folder::Folder;
use isolde_hunt::hunt::{self, Ended, Hunt, Watch};
use isolde_hunt::isolation::Shape;
use isolde_hunt::known::KnownBugs;
use isolde_hunt::resume::Earlier;
use isolde_hunt::summary::{Identity, Shard};
use std::time::Duration;
use wish::Wish;

pub fn run(context: &Context<'_>, args: &HuntArgs) -> Outcome {
    let wish = Wish::of(args)?;
    let baseline = args.baseline.read()?;
    let oracles = chosen_oracles(&wish.oracles)?;
    let target = context.parse_target(&wish.target)?;
    let planted = match &wish.fault {
        Some(name) => {
            let fault = fault::find(name).map_err(|e| Failure::new(ExitCode::Usage, e))?;
            Some(Planted { fault, rate: wish.fault_rate, seed: wish.seed })
        }
        None => None,
    };
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
    let levels = chosen_levels(&wish.levels, first.profile())?;
    let dialect = info.dialect();
    let mut options = Options::new(levels.clone(), first.profile().default_level);
    options.ddl = wish.ddl;
    options.prepared = wish.prepared;
    let generator = Generator::new(dialect, wish.seed, options);
    let identity = Identity {
        version: env!("CARGO_PKG_VERSION").into(),
        seed: wish.seed,
        target: info.target.clone(),
        server_version: info.version.clone(),
        settings: info.settings.clone(),
        levels: levels.iter().map(|l| l.name().to_string()).collect(),
        oracles: oracles.iter().map(|o| o.name().to_string()).collect(),
        options: wish.options(),
    };
    let (folder, earlier) = open_folder(args, &identity, wish.shard)?;
    if matches!(target, Target::Url(_)) {
        remove_leftovers(context, &target, &folder);
        folder.set_owner(&Owner::this_process().to_string())?;
    }
    // What is found in an engine with a planted fault is the fault's.
    let known = if planted.is_some() { KnownBugs::default() } else { known_bugs() };
    let hunt = Hunt {
        identity,
        generator: &generator,
        oracles: &oracles,
        known: &known,
        shard: wish.shard,
        cases: wish.cases,
        time: wish.time,
        workers: usize::try_from(wish.asked.jobs).unwrap_or(1),
        asked: wish.asked,
        all: wish.all,
        reduces: wish.reduces,
        rounds: wish.runs_rounds().then(|| shape(&wish)),
        topological: wish.topological,
        open: &open,
        interrupted: interrupt::asked,
    };
    if let Some(old) = folder.moved() {
        context.console.note(&format!("the earlier hunt is now in {}", old.display()));
    }
    show::beginning(context, &hunt, &folder);
    let watch = Watch::default();
    let cases = earlier.as_ref().map_or(0, |e| e.counted().cases);
    let ended = show::watching(context, &hunt, cases, &watch, || {
        hunt::run(&hunt, first, &folder, earlier, &watch)
    });
    Ok(finish(context, &wish, &folder, (junit.as_ref(), baseline), ended))
}

/// Everything that can still be written is written, whatever went wrong
/// before; and a bug that was found is what the exit code says.
fn finish(
    context: &Context<'_>,
    wish: &Wish,
    folder: &Folder,
    (junit, baseline): (Option<&JunitFile>, Option<BaselineFile>),
    ended: Ended,
) -> ExitCode {
    let Ended { mut summary, failure: ended_by } = ended;
    let mut troubles: Vec<Failure> = ended_by.map(Failure::from).into_iter().collect();
    let findings = folder.read_findings().unwrap_or_else(|error| {
        troubles.push(error.into());
        Vec::new()
    });
    if let Some(mut baseline) = baseline {
        match baseline.judge(context.console, &findings) {
            Ok(judged) => {
                summary.baseline = Some(judged);
                troubles.extend(folder.write_summary(&summary).err().map(Failure::from));
            }
            Err(error) => troubles.push(error),
        }
    }
    if let Err(error) = crate::page::write(folder.path()) {
        troubles.push(error.into());
    }
    if let Some(file) = junit {
        let trouble = troubles.first().map(|t| t.message.as_str());
        troubles.extend(file.write(&junit::report(&summary, &findings, trouble)).err());
    }
    if context.json {
        context.console.print(&serde_json::to_string(&summary).unwrap_or_default());
    } else {
        show::ending(context, wish, folder, &summary, &findings);
    }
    for trouble in &troubles {
        context.console.error(&trouble.message);
    }
    match (interrupt::asked(), summary.new_bugs()) {
        (true, _) => ExitCode::Interrupted,
        // The others follow from the first.
        (false, 0) => troubles.first().map_or(ExitCode::Fine, |trouble| trouble.code),
        (false, _) => ExitCode::Violation,
    }
}

fn open_engine(
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
) -> Result<(Folder, Option<Earlier>), Failure> {
    if args.resume {
        let folder = Folder::reopen(&args.out)?;
        let earlier = Earlier::read(&folder, identity, shard)?;
        return Ok((folder, Some(earlier)));
    }
    Ok((Folder::create(&args.out)?, None))
}

/// The databases that this hunt has left on a user's server when it was
/// killed. What goes wrong with it is no reason not to hunt.
fn remove_leftovers(context: &Context<'_>, target: &Target, folder: &Folder) {
    let Some(owner) = folder.owner().and_then(|text| Owner::parse(&text)) else { return };
    let cleaned = target.door().and_then(|mut door| leftovers::clean(door.as_mut(), Some(&owner)));
    let console = context.console;
    match cleaned {
        Ok(found) => {
            for name in &found.removed {
                console.note(&format!("removed {name}, which the killed hunt had left"));
            }
            for name in &found.elsewhere {
                console.note(&format!(
                    "{name} was made on another machine: `isolde clean {target}` there removes it"
                ));
            }
            for (name, why) in &found.stuck {
                console.note(&format!("{name} of the killed hunt stays: {why}"));
            }
        }
        Err(error) => console.note(&format!("databases of the killed hunt may be left: {error}")),
    }
}

/// No round takes longer, so that a hunt ends in time and a slow engine shows progress.
const LONGEST_ROUND: Duration = Duration::from_secs(10);

fn shape(wish: &Wish) -> Shape {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Shape {
        sessions: size(wish.rounds.sessions),
        keys: size(wish.rounds.keys),
        transactions: wish.rounds.transactions,
        time: wish.time.map_or(LONGEST_ROUND, |time| time.min(LONGEST_ROUND)),
        all_predicates: false,
    }
}

fn chosen_oracles(names: &[String]) -> Result<Vec<Oracle>, Failure> {
    if names.is_empty() {
        return Ok(USUAL.to_vec());
    }
    if names.len() == 1 && names[0] == "all" {
        return Ok(ORACLES.to_vec());
    }
    let found: Result<Vec<_>, String> = names.iter().map(|n| oracle::find(n)).collect();
    found.map_err(|e| Failure::new(ExitCode::Usage, e))
}

fn chosen_levels(names: &[String], profile: &Profile) -> Result<Vec<Level>, Failure> {
    let all = profile.level_names();
    let levels = match parse_levels(names)? {
        Some(Levels::These(levels)) => levels,
        _ => return Ok(all),
    };
    if let Some(unknown) = levels.iter().find(|l| !all.contains(l)) {
        let known: Vec<&str> = all.iter().map(|l| l.name()).collect();
        let text = format!("this target has no level {unknown}; it has {}", known.join(", "));
        return Err(Failure::new(ExitCode::Usage, text));
    }
    Ok(levels)
}

/// The library, as far as it can be read: a hunt goes on without it.
fn known_bugs() -> KnownBugs {
    let entries = library::load(None, None).unwrap_or_default();
    KnownBugs::of(entries.into_iter().map(|entry| entry.case))
}

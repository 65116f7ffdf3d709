//! The hunt: workers that take blocks of case numbers until the work is done.
//!
//! A block is the cases that share a schema. Which cases a block holds depends
//! on the seed alone, and what is found in it on nothing outside of it, so the
//! number of workers and shards changes the speed and not the result.

use crate::bed::{Bed, BedError, Notices};
use crate::cause::Label;
use crate::finding::Finding;
use crate::folder::{Folder, FolderError};
use crate::hunter::Hunter;
use crate::known::Known;
use crate::summary::{Identity, Progress, Shard, Summary};
use crate::tally::Tally;
use isolde_core::case;
use isolde_core::generate::{CASES_PER_BLOCK, Generator};
use isolde_core::oracle::Oracle;
use isolde_engines::engine::{Engine, EngineError, EngineResult};
use isolde_engines::runner::{RunError, Runner};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Trials of one reduction at most.
const TRIALS: u32 = 400;

pub struct Hunt<'a> {
    pub identity: Identity,
    pub generator: &'a Generator,
    pub oracles: &'a [&'static dyn Oracle],
    pub known: &'a [Known],
    pub shard: Shard,
    /// Case numbers below this.
    pub cases: Option<u64>,
    pub time: Option<Duration>,
    pub workers: usize,
    /// Documented violations are findings, too.
    pub all: bool,
    /// An engine for a worker; the first is already open.
    pub open: &'a (dyn Fn() -> EngineResult<Box<dyn Engine>> + Sync),
    pub interrupted: fn() -> bool,
}

/// What people watch while it runs.
#[derive(Default)]
pub struct Watch {
    pub cases: AtomicU64,
    pub statements: AtomicU64,
    pub waited: AtomicU64,
    pub transactions: AtomicU64,
    pub aborted: AtomicU64,
    pub bug: AtomicU64,
    pub documented: AtomicU64,
    pub undecided: AtomicU64,
    /// Findings that nobody has been told of.
    pub news: Mutex<Vec<Finding>>,
    /// What the workers have to say of their servers.
    pub notices: Notices,
}

impl Watch {
    fn count(&self, before: &Tally, after: &Tally) {
        let add = |to: &AtomicU64, a: u64, b: u64| to.fetch_add(b - a, Ordering::Relaxed);
        add(&self.cases, before.cases, after.cases);
        add(&self.statements, before.statements, after.statements);
        add(&self.waited, before.waited, after.waited);
        add(&self.transactions, before.transactions, after.transactions);
        add(&self.aborted, before.aborted, after.aborted);
        add(&self.bug, before.violations.bug, after.violations.bug);
        add(&self.documented, before.violations.documented, after.violations.documented);
        add(&self.undecided, before.violations.undecided, after.violations.undecided);
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HuntError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl From<BedError> for HuntError {
    fn from(error: BedError) -> HuntError {
        HuntError::Run(match error {
            BedError::Run(error) => error,
            // Only the first run of a case may meet one, and counts it.
            BedError::Ground { sql, error } => RunError::Setup { line: 0, sql, error },
            // The hunter makes a finding of each.
            BedError::Broke(broke) => {
                RunError::Engine(EngineError::Lost(format!("the engine broke {}", broke.moment)))
            }
        })
    }
}

/// What the workers share.
struct Shared {
    next: u64,
    progress: Progress,
    tally: Tally,
    failure: Option<HuntError>,
}

struct Ctx<'a> {
    hunt: &'a Hunt<'a>,
    folder: &'a Folder,
    watch: &'a Watch,
    shared: Mutex<Shared>,
    began: Instant,
    /// Seconds of earlier parts of a resumed hunt.
    earlier: f64,
    ended: AtomicBool,
}

/// What a hunt did, and what ended it before its time.
pub struct Ended {
    pub summary: Summary,
    pub failure: Option<HuntError>,
}

/// Runs the hunt into a folder; `earlier` is what a resumed one did before.
pub fn run(
    hunt: &Hunt<'_>,
    first: Box<dyn Engine>,
    folder: &Folder,
    earlier: Option<Summary>,
    watch: &Watch,
) -> Ended {
    let (tally, progress, seconds) = match &earlier {
        Some(summary) => (summary.tally(), summary.progress.clone(), summary.seconds),
        None => Default::default(),
    };
    watch.count(&Tally::default(), &tally);
    let shared = Mutex::new(Shared { next: 0, progress, tally, failure: None });
    let ctx = Ctx {
        hunt,
        folder,
        watch,
        shared,
        began: Instant::now(),
        earlier: seconds,
        ended: AtomicBool::new(false),
    };
    let begun = ctx.save(&ctx.lock());
    if let Err(error) = begun {
        ctx.fail(error);
    }
    std::thread::scope(|scope| {
        for worker in 1..hunt.workers {
            let ctx = &ctx;
            scope.spawn(move || match (hunt.open)() {
                Ok(engine) => ctx.work(worker, engine),
                Err(error) => ctx.fail(RunError::Engine(error).into()),
            });
        }
        ctx.work(0, first);
    });
    let saved = ctx.save(&ctx.lock());
    if let Err(error) = saved {
        ctx.fail(error);
    }
    let mut shared = ctx.lock();
    let failure = shared.failure.take();
    if failure.is_none() {
        folder.forget_current();
    }
    Ended { summary: ctx.summary(&shared), failure }
}

impl Ctx<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        let over = self.hunt.time.is_some_and(|time| self.began.elapsed() >= time);
        over || self.ended.load(Ordering::Relaxed) || (self.hunt.interrupted)()
    }

    fn fail(&self, error: HuntError) {
        self.ended.store(true, Ordering::Relaxed);
        if !matches!(error, HuntError::Run(RunError::Interrupted)) {
            self.lock().failure.get_or_insert(error);
        }
    }

    fn work(&self, worker: usize, engine: Box<dyn Engine>) {
        let mut runner = Runner::new(engine);
        runner.interrupted = self.hunt.interrupted;
        runner.deadline = self.hunt.time.map(|time| self.began + time);
        let stop = || self.stopped();
        let mut bed = Bed::new(runner);
        bed.heeds_errors = self.hunt.oracles.iter().any(|o| o.name() == "crash");
        bed.notices = Notices::clone(&self.watch.notices);
        let mut hunter = Hunter {
            bed,
            generator: self.hunt.generator,
            oracles: self.hunt.oracles,
            known: self.hunt.known,
            stop: &stop,
            trials: TRIALS,
            seen: BTreeMap::new(),
        };
        while let Some((block, skip)) = self.take_block() {
            if let Err(error) = self.hunt_block(worker, &mut hunter, block, skip) {
                return self.fail(error);
            }
        }
    }

    /// The next block that is not done, with how many of its cases are.
    fn take_block(&self) -> Option<(u64, u64)> {
        let mut shared = self.lock();
        let block = shared.progress.open_from(shared.next, self.hunt.shard);
        let beyond = self.hunt.cases.is_some_and(|cases| block * CASES_PER_BLOCK >= cases);
        if beyond || self.stopped() {
            return None;
        }
        shared.next = block + 1;
        Some((block, shared.progress.partial.get(&block).copied().unwrap_or(0)))
    }

    fn hunt_block(
        &self,
        worker: usize,
        hunter: &mut Hunter<'_>,
        block: u64,
        skip: u64,
    ) -> Result<(), HuntError> {
        let first = block * CASES_PER_BLOCK;
        let last = self.hunt.cases.unwrap_or(u64::MAX).min(first + CASES_PER_BLOCK);
        let mut tally = Tally::default();
        hunter.seen.clear();
        let mut done = skip;
        for number in first + skip..last {
            if self.stopped() {
                break;
            }
            let before = tally.clone();
            let ended = match self.hunt_case(worker, hunter, number, &mut tally) {
                Ok(ended) => ended,
                Err(error) => {
                    self.finish_block(block, done, false, &before)?;
                    return Err(error);
                }
            };
            done += 1;
            self.watch.count(&before, &tally);
            if let Some(error) = ended {
                self.finish_block(block, done, first + done >= last, &tally)?;
                return Err(error);
            }
        }
        self.finish_block(block, done, first + done >= last, &tally)
    }

    fn finish_block(
        &self,
        block: u64,
        done: u64,
        whole: bool,
        tally: &Tally,
    ) -> Result<(), HuntError> {
        let mut shared = self.lock();
        shared.tally.merge(tally);
        if whole {
            shared.progress.finish(block);
        } else if done > 0 {
            shared.progress.partial.insert(block, done);
        }
        self.save(&shared)?;
        Ok(())
    }

    fn hunt_case(
        &self,
        worker: usize,
        hunter: &mut Hunter<'_>,
        number: u64,
        tally: &mut Tally,
    ) -> Result<Option<HuntError>, HuntError> {
        let plan = hunter.generator.plan(number);
        self.folder.announce(worker, &case::format(&plan.to_case()))?;
        let examined = hunter.examine(&plan, tally)?;
        for evidence in examined.evidence {
            let finding = evidence.finding.clone();
            if finding.cause.label == Label::Documented && !self.hunt.all {
                self.folder.note_documented(&finding)?;
                continue;
            }
            self.folder.write(&evidence)?;
            self.watch.news.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
        }
        Ok(examined.ended.map(HuntError::from))
    }

    fn summary(&self, shared: &Shared) -> Summary {
        let seconds = self.earlier + self.began.elapsed().as_secs_f64();
        Summary::new(
            self.hunt.identity.clone(),
            vec![self.hunt.shard],
            &shared.tally,
            seconds,
            shared.progress.clone(),
        )
    }

    fn save(&self, shared: &Shared) -> Result<(), HuntError> {
        Ok(self.folder.write_summary(&self.summary(shared))?)
    }
}

/// What an interrupted hunt left in its folder, ready to go on: what was found
/// in cases that will be run again is taken away.
pub fn resume(folder: &Folder, identity: &Identity, shard: Shard) -> Result<Summary, FolderError> {
    let summary = folder.read_summary()?;
    if summary.identity != *identity || summary.shards != [shard] {
        let what = crate::merge::first_difference(&summary.identity, identity)
            .unwrap_or_else(|| "the shard".into());
        return Err(FolderError::Unusable(format!(
            "{} holds another hunt ({what} differs); give the same arguments, or another --out",
            folder.path().display()
        )));
    }
    let progress = summary.progress.clone();
    let keep = |number: u64| {
        let block = number / CASES_PER_BLOCK;
        let done = progress.partial.get(&block).copied().unwrap_or(0);
        progress.is_done(block) || number % CASES_PER_BLOCK < done
    };
    folder.keep_only(&keep)?;
    Ok(summary)
}

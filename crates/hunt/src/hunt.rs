//! The hunt: workers that take blocks of case numbers until the work is done.
//!
//! A block is the cases that share a schema. Which cases a block holds depends
//! on the seed alone, and what is found in it on nothing outside of it, so the
//! number of workers and shards changes the speed and not the result.

use crate::error::HuntError;
use crate::execution::executor::{Executor, Notices};
use crate::finding::Finding;
use crate::isolation::Shape;
use crate::output::folder::Folder;
use crate::output::resume::PreviousRun;
use crate::output::summary::{Identity, Progress, RunSettings, Summary};
use crate::output::tally::Tally;
use crate::shard::Shard;
use crate::worker::hunter::Hunter;
use crate::worker::known::KnownBugs;
use isolde_engines::engine::{Engine, EngineResult};
use isolde_engines::runner::{RunError, Runner};
use isolde_generator::{CASES_PER_BLOCK, Generator};
use isolde_model::Verdict;
use isolde_model::case;
use isolde_oracles::{Oracle, OracleOptions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Trials of one reduction at most.
const TRIALS: u32 = 200;

/// When the time of a hunt is over no case is begun, but what was found is
/// reduced to its end, for this long at most.
const TIME_TO_REDUCE: Duration = Duration::from_secs(60);

pub struct Hunt<'a> {
    pub identity: Identity,
    pub generator: &'a Generator,
    pub oracles: &'a [Oracle],
    pub known: &'a KnownBugs,
    pub shard: Shard,
    /// Case numbers below this.
    pub cases: Option<u64>,
    pub time: Option<Duration>,
    pub workers: usize,
    /// What is written down of that, for a resumed hunt.
    pub run_settings: RunSettings,
    /// Documented violations are findings, too.
    pub all: bool,
    /// Findings are made smaller.
    pub reduces: bool,
    /// Each number is a round of sessions at full speed instead of a scheduled case.
    pub rounds: Option<Shape>,
    pub oracle_options: OracleOptions,
    /// An engine for a worker; the first is already open.
    pub open: &'a (dyn Fn() -> EngineResult<Box<dyn Engine>> + Sync),
    pub interrupted: fn() -> bool,
}

/// What people watch while it runs.
#[derive(Default)]
pub struct HuntMonitor {
    pub cases: AtomicU64,
    pub statements: AtomicU64,
    pub waited: AtomicU64,
    pub transactions: AtomicU64,
    pub aborted: AtomicU64,
    pub bug: AtomicU64,
    pub documented: AtomicU64,
    pub undecided: AtomicU64,
    pub locking: AtomicU64,
    /// Findings that have not been announced yet.
    pub news: Mutex<Vec<Finding>>,
    /// What the workers have to say of their servers.
    pub notices: Notices,
}

impl HuntMonitor {
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
        add(&self.locking, before.violations.locking, after.violations.locking);
    }
}

/// What the workers share.
struct SharedState {
    next: u64,
    progress: Progress,
    /// Of the blocks that are done.
    tally: Tally,
    /// Of the others, as far as they have come.
    unfinished: BTreeMap<u64, Tally>,
    /// Findings of an earlier part of the hunt in cases that were not yet run
    /// again.
    aside: BTreeMap<u64, Vec<Finding>>,
    failure: Option<HuntError>,
}

struct HuntContext<'a> {
    hunt: &'a Hunt<'a>,
    folder: &'a Folder,
    watch: &'a HuntMonitor,
    shared: Mutex<SharedState>,
    began: Instant,
    /// Seconds of earlier parts of a resumed hunt.
    earlier: f64,
    ended: AtomicBool,
}

/// What a hunt did, and what ended it before its time.
pub struct HuntResult {
    pub summary: Summary,
    pub failure: Option<HuntError>,
}

/// Runs the hunt into a folder; `earlier` is what a resumed one did before.
pub fn run(
    hunt: &Hunt<'_>,
    first: Box<dyn Engine>,
    folder: &Folder,
    earlier: Option<PreviousRun>,
    watch: &HuntMonitor,
) -> HuntResult {
    let seconds = earlier.as_ref().map_or(0.0, |e| e.summary.seconds);
    if earlier.is_some() {
        hunt.known.remember(folder.read_known());
    }
    let shared = match earlier {
        Some(earlier) => SharedState {
            next: 0,
            tally: earlier.counted(),
            unfinished: earlier.counted_aside(),
            progress: Progress { done: None, ..earlier.summary.progress },
            aside: earlier.aside,
            failure: None,
        },
        None => SharedState {
            next: 0,
            progress: Progress::default(),
            tally: Tally::default(),
            unfinished: BTreeMap::new(),
            aside: BTreeMap::new(),
            failure: None,
        },
    };
    watch.count(&Tally::default(), &shared.tally);
    let shared = Mutex::new(shared);
    let ctx = HuntContext {
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
    if let Err(error) = ctx.keep_aside().and_then(|()| folder.write_known(&hunt.known.reproduced()))
    {
        ctx.fail(error);
    }
    let saved = ctx.save(&ctx.lock());
    if let Err(error) = saved {
        ctx.fail(error);
    }
    let mut shared = ctx.lock();
    let failure = shared.failure.take();
    if failure.is_none() {
        folder.forget_current();
    }
    HuntResult { summary: ctx.summary(&shared), failure }
}

impl HuntContext<'_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, SharedState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No further case is begun.
    fn stopped(&self) -> bool {
        self.over(Duration::ZERO) || self.hurried()
    }

    /// No further trial of a reduction is begun.
    fn must_end(&self) -> bool {
        self.over(TIME_TO_REDUCE) || self.hurried()
    }

    fn over(&self, more: Duration) -> bool {
        self.hunt.time.is_some_and(|time| self.began.elapsed() >= time.saturating_add(more))
    }

    fn hurried(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || (self.hunt.interrupted)()
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
        let stop = || self.must_end();
        let mut executor = Executor::new(runner);
        executor.oracle_options = self.hunt.oracle_options.clone();
        executor.reports_session_errors = self.hunt.oracles.contains(&Oracle::Crash);
        executor.notices = Notices::clone(&self.watch.notices);
        let mut hunter = Hunter {
            executor,
            generator: self.hunt.generator,
            oracles: self.hunt.oracles,
            known: self.hunt.known,
            stop: &stop,
            trials: if self.hunt.reduces { TRIALS } else { 0 },
            similar: BTreeMap::new(),
        };
        while let Some(block) = self.take_block() {
            if let Err(error) = self.hunt_block(worker, &mut hunter, block) {
                return self.fail(error);
            }
        }
    }

    /// The next block that is not done.
    fn take_block(&self) -> Option<u64> {
        let mut shared = self.lock();
        let block = shared.progress.open_from(shared.next, self.hunt.shard);
        let beyond = self.hunt.cases.is_some_and(|cases| block * CASES_PER_BLOCK >= cases);
        if beyond || self.stopped() {
            return None;
        }
        shared.next = block + 1;
        Some(block)
    }

    fn hunt_block(
        &self,
        worker: usize,
        hunter: &mut Hunter<'_>,
        block: u64,
    ) -> Result<(), HuntError> {
        let first = block * CASES_PER_BLOCK;
        let last = self.hunt.cases.unwrap_or(u64::MAX).min(first + CASES_PER_BLOCK);
        let mut tally = Tally::default();
        hunter.similar.clear();
        for number in first..last {
            if self.stopped() {
                return self.break_off(block, tally);
            }
            let before = tally.clone();
            let ended = match self.hunt_case(worker, hunter, number, &mut tally) {
                Ok(ended) => ended,
                Err(error) => {
                    self.break_off(block, before)?;
                    return Err(error);
                }
            };
            self.watch.count(&before, &tally);
            if let Some(error) = ended {
                self.break_off(block, tally)?;
                return Err(error);
            }
            // What is in the folder is counted there, too, should this be the
            // last message of the hunt.
            if tally.violations != before.violations {
                let mut shared = self.lock();
                shared.unfinished.insert(block, tally.clone());
                self.save(&shared)?;
            }
        }
        let mut shared = self.lock();
        shared.unfinished.remove(&block);
        shared.tally.merge(&tally);
        shared.progress.finish(block);
        self.save(&shared)
    }

    /// A block that will be run again, should the hunt be resumed.
    fn break_off(&self, block: u64, tally: Tally) -> Result<(), HuntError> {
        let mut shared = self.lock();
        shared.unfinished.insert(block, tally);
        self.save(&shared)
    }

    /// What was found before in cases that this part of the hunt did not
    /// come to is still found.
    fn keep_aside(&self) -> Result<(), HuntError> {
        let mut shared = self.lock();
        let aside = std::mem::take(&mut shared.aside);
        for finding in aside.values().flatten() {
            self.folder.note_finding(finding)?;
            // A block that was not begun again has it counted.
            let block = finding.case_number / CASES_PER_BLOCK;
            if block < shared.next {
                shared.unfinished.entry(block).or_default().count_finding(finding);
            }
        }
        Ok(())
    }

    fn hunt_case(
        &self,
        worker: usize,
        hunter: &mut Hunter<'_>,
        number: u64,
        tally: &mut Tally,
    ) -> Result<Option<HuntError>, HuntError> {
        let plan = match &self.hunt.rounds {
            Some(shape) => hunter.generator.round(number, shape.keys).plan,
            None => hunter.generator.plan(number),
        };
        self.folder.announce(worker, &case::format(&plan.to_case()))?;
        let mut examined = match &self.hunt.rounds {
            Some(shape) => hunter.examine_round(number, shape, tally)?,
            None => hunter.examine(&plan, tally)?,
        };
        let last = (number + 1).is_multiple_of(CASES_PER_BLOCK)
            || self.hunt.cases == Some(number + 1)
            || self.stopped();
        if last && examined.ended.is_none() && !self.hurried() {
            examined.evidence.extend(hunter.check_server(&plan, tally));
        }
        let mut earlier = self.lock().aside.remove(&number).unwrap_or_default();
        let mut news = Vec::new();
        for evidence in examined.evidence {
            if self.is_finding(&evidence.finding) {
                self.folder.write(&evidence)?;
                tally.note_signature(&evidence.finding);
                earlier.retain(|f| f.id != evidence.finding.id);
                news.push(evidence.finding);
            } else {
                self.folder.note_documented(&evidence.finding)?;
            }
        }
        // Not everything happens twice.
        for finding in earlier {
            self.folder.note_finding(&finding)?;
            tally.count_finding(&finding);
            news.push(finding);
        }
        self.watch.news.lock().unwrap_or_else(PoisonError::into_inner).extend(news);
        Ok(examined.ended)
    }

    fn is_finding(&self, finding: &Finding) -> bool {
        finding.cause.label != Verdict::Documented || self.hunt.all
    }

    fn summary(&self, shared: &SharedState) -> Summary {
        let seconds = self.earlier + self.began.elapsed().as_secs_f64();
        let mut progress = shared.progress.clone();
        let mut tally = shared.tally.clone();
        shared.unfinished.values().for_each(|block| tally.merge(block));
        progress.done = (tally != shared.tally).then(|| shared.tally.clone());
        let identity = self.hunt.identity.clone();
        let summary = Summary::new(identity, vec![self.hunt.shard], &tally, seconds, progress);
        Summary { run_settings: self.hunt.run_settings, ..summary }
    }

    fn save(&self, shared: &SharedState) -> Result<(), HuntError> {
        self.folder.write_summary(&self.summary(shared))
    }
}

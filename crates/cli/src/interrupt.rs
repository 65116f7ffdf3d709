//! Ctrl-C: the first ends the work and tidies up, the second ends the process
//! at once (the kernel then stops the servers). Signals within a second of the
//! first are the same one: a terminal, a shell and `timeout` may each send
//! theirs. Who asks for more than a break (a closed terminal, a `kill`) is told
//! apart, for the repl, where Ctrl-C ends only what is being done.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const ONE_SIGNAL: Duration = Duration::from_secs(1);

static END: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// When the signal came that is being obeyed.
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);

pub fn install() {
    let stop = Arc::clone(STOP.get_or_init(|| Arc::new(AtomicBool::new(false))));
    let end = Arc::clone(END.get_or_init(|| Arc::new(AtomicBool::new(false))));
    // Without handlers Ctrl-C still ends the process; nothing to report. The
    // flags are set by the handlers themselves, so that a call which a signal
    // interrupts finds them set.
    for signal in [SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&end));
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if is_another_signal() {
                    signal_hook::low_level::exit(130);
                }
            }
        });
    }
}

fn is_another_signal() -> bool {
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert_with(Instant::now).elapsed() > ONE_SIGNAL
}

pub fn asked() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Whether the process is meant to end, not only what it does.
pub fn told_to_end() -> bool {
    END.get().is_some_and(|end| end.load(Ordering::Relaxed))
}

/// A Ctrl-C that has done its work.
pub fn forget() {
    if let Some(stop) = STOP.get()
        && !told_to_end()
    {
        stop.store(false, Ordering::Relaxed);
        *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

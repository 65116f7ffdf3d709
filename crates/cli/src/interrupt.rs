//! Ctrl-C: the first one ends the work and cleans up, the second one ends the
//! process at once (the kernel then stops the servers). Signals within one
//! second of the first count as the same one: a terminal, a shell and `timeout`
//! may each send theirs. SIGTERM and SIGHUP (a `kill`, a closed terminal) also
//! set a second flag, for the repl, where Ctrl-C ends only the current
//! statement and not the process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const ONE_SIGNAL: Duration = Duration::from_secs(1);

static END: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// When the signal arrived that is being handled.
static FIRST: Mutex<Option<Instant>> = Mutex::new(None);

/// Installs the signal handlers.
pub fn install() {
    let stop = Arc::clone(STOP.get_or_init(|| Arc::new(AtomicBool::new(false))));
    let end = Arc::clone(END.get_or_init(|| Arc::new(AtomicBool::new(false))));
    // A handler that cannot be installed is no error: Ctrl-C then ends the
    // process. The handlers set the flags themselves, so that a system call
    // interrupted by the signal finds them set.
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

/// Whether a signal has asked to stop the work.
pub fn is_requested() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

/// Whether a signal has asked the process to end, not only its current work.
pub fn is_exit_requested() -> bool {
    END.get().is_some_and(|end| end.load(Ordering::Relaxed))
}

/// Clears a Ctrl-C that has been handled.
pub fn clear() {
    if let Some(stop) = STOP.get()
        && !is_exit_requested()
    {
        stop.store(false, Ordering::Relaxed);
        *FIRST.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

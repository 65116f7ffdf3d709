//! Ctrl-C: the first ends the work and tidies up, the second ends the process
//! at once (the kernel then stops the servers). Who asks for more than a
//! break (a closed terminal, a `kill`) is told apart, for the repl, where
//! Ctrl-C ends only what is being done.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static END: OnceLock<Arc<AtomicBool>> = OnceLock::new();
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

pub fn install() {
    let stop = Arc::clone(STOP.get_or_init(|| Arc::new(AtomicBool::new(false))));
    let end = Arc::clone(END.get_or_init(|| Arc::new(AtomicBool::new(false))));
    for signal in [SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&end));
    }
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without handlers Ctrl-C still ends the process; nothing to report.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop));
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
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
    }
}

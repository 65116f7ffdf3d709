//! Ctrl-C: the first ends the work and tidies up, the second ends the process
//! at once (the kernel then stops the servers).

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

pub fn install() {
    let stop = Arc::clone(STOP.get_or_init(|| Arc::new(AtomicBool::new(false))));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without handlers Ctrl-C still ends the process; nothing to report.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop));
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
}

pub fn asked() -> bool {
    STOP.get().is_some_and(|stop| stop.load(Ordering::Relaxed))
}

//! Seeds for runs that were not given one.

use std::time::{SystemTime, UNIX_EPOCH};

/// A new seed, short enough to be typed again.
pub fn new_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |time| time.as_millis() as u64 % 1_000_000_007)
}

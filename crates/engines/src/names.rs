//! Names: of databases on servers that are not ours, and how to quote them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Unlikely to exist; CREATE DATABASE fails if it does, and nothing is touched.
pub fn fresh_database_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let nth = COUNTER.fetch_add(1, Ordering::Relaxed);
    let now =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() % 100_000_000);
    format!("isolde_{}_{now}_{nth}", std::process::id())
}

/// Plain names stay readable; others are quoted with the engine's mark.
pub fn quote_if_needed(name: &str, mark: char) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.into()
    } else {
        format!("{mark}{}{mark}", name.replace(mark, &format!("{mark}{mark}")))
    }
}

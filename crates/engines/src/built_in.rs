//! The engines that are part of this program: they need no server and no
//! installation.

use crate::sqlite;

/// The target that commands use if none is named.
pub const DEFAULT_TARGET: &str = "sqlite";

/// An engine that is compiled into this program.
pub struct BuiltIn {
    pub engine: &'static str,
    pub version: &'static str,
}

pub fn engines() -> Vec<BuiltIn> {
    vec![BuiltIn { engine: "sqlite", version: sqlite::version() }]
}

/// The version of a built-in engine, named with or without its mode; none if
/// the engine is not built in.
pub fn version_of(engine: &str) -> Option<&'static str> {
    let plain = engine.split('+').next().unwrap_or(engine);
    engines().iter().find(|e| e.engine == plain).map(|e| e.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_ignores_the_mode() {
        assert_eq!(version_of("sqlite+wal"), Some(sqlite::version()));
        assert_eq!(version_of(DEFAULT_TARGET), Some(sqlite::version()));
        assert_eq!(version_of("postgres"), None);
    }
}

//! Where a case is at home: the hunt's target for a finding, else the first
//! engine it is meant for that is here, else SQLite.

use super::Context;
use isolde_core::case::{Case, Selector};
use isolde_engines::fetch::install::{self, Install};
use isolde_hunt::again::Seen;

/// A target as on the command line. When none of a case's engines is here it
/// is the first all the same: opening it says how to get it.
pub fn own_target(context: &Context<'_>, case: &Case, seen: Option<&Seen>) -> String {
    if let Some(seen) = seen {
        return without_hidden_password(&seen.finding.target);
    }
    let Some(first) = case.engines.first() else { return "sqlite".into() };
    if context.options.via.is_some() {
        return name(first, None);
    }
    let mut here = install::machine_installs();
    here.extend(install::cached_installs(&context.options.cache));
    let found = case.engines.iter().find_map(|selector| at_hand(selector, &here));
    found.unwrap_or_else(|| name(first, None))
}

fn at_hand(selector: &Selector, here: &[Install]) -> Option<String> {
    let plain = selector.engine.split('+').next().unwrap_or(&selector.engine);
    if plain == "sqlite" {
        let bundled = isolde_engines::sqlite::version();
        return selector.matches(&selector.engine, bundled).then(|| selector.engine.clone());
    }
    let fits = |i: &&Install| i.engine == plain && selector.matches(&selector.engine, &i.version);
    here.iter().find(fits).map(|install| name(selector, Some(install)))
}

/// `mysql@8.0`; of a range the version that is here.
fn name(selector: &Selector, install: Option<&Install>) -> String {
    let version = match install {
        _ if selector.is_one_version() => selector.from.as_ref(),
        Some(found) if selector.from.is_some() || selector.to.is_some() => Some(&found.version),
        _ => None,
    };
    version.map_or(selector.engine.clone(), |v| format!("{}@{v}", selector.engine))
}

/// A hunt never writes a password down; it then has to come from the
/// environment, or with `--on`.
fn without_hidden_password(target: &str) -> String {
    target.replacen(":***@", "@", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(engine: &str, version: &str) -> Install {
        let text = format!(
            r#"{{"engine":"{engine}","version":"{version}","source":"","basedir":"/","server":"/"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_version_of_the_range_that_is_here_is_named() {
        let here = [install("mariadb", "11.4.5"), install("mariadb", "10.11.19")];
        let chosen = |text: &str| at_hand(&text.parse().unwrap(), &here);
        assert_eq!(chosen("mariadb@10.2-10.11").as_deref(), Some("mariadb@10.11.19"));
        assert_eq!(chosen("mariadb@11.4").as_deref(), Some("mariadb@11.4"));
        assert_eq!(chosen("mariadb+snapshot").as_deref(), Some("mariadb+snapshot"));
        assert_eq!(chosen("mariadb@12-"), None);
        assert_eq!(chosen("postgres"), None);
        assert_eq!(chosen("sqlite+wal").as_deref(), Some("sqlite+wal"));
    }
}

//! The default target of a case: the target of the hunt for a finding, else the
//! first engine of the case that is installed here, else the built-in engine.

use super::context::Context;
use isolde_engines::built_in;
use isolde_engines::fetch::install::{self, Install};
use isolde_hunt::recheck::RecordedFinding;
use isolde_model::case::Case;
use isolde_sql::selector::Selector;

/// The target, as written on the command line. If no engine of the case is
/// installed it is the first one all the same: opening it says how to get it.
pub fn own_target(context: &Context<'_>, case: &Case, finding: Option<&RecordedFinding>) -> String {
    if let Some(finding) = finding {
        return without_hidden_password(&finding.finding.target);
    }
    let Some(first) = case.engines.first() else { return built_in::DEFAULT_TARGET.into() };
    if context.options.via.is_some() {
        return target_name(first, None);
    }
    let mut installed = install::machine_installs();
    installed.extend(install::cached_installs(&context.options.cache));
    let found = case.engines.iter().find_map(|selector| installed_target(selector, &installed));
    found.unwrap_or_else(|| target_name(first, None))
}

fn installed_target(selector: &Selector, installed: &[Install]) -> Option<String> {
    if let Some(version) = built_in::version_of(&selector.engine) {
        return selector.matches(&selector.engine, version).then(|| selector.engine.clone());
    }
    let plain = selector.engine.split('+').next().unwrap_or(&selector.engine);
    let fits = |i: &&Install| i.engine == plain && selector.matches(&selector.engine, &i.version);
    installed.iter().find(fits).map(|install| target_name(selector, Some(install)))
}

/// The target of a selector, such as `mysql@8.0`; for a range of versions the
/// installed one.
fn target_name(selector: &Selector, install: Option<&Install>) -> String {
    let version = match install {
        _ if selector.is_one_version() => selector.from.as_ref(),
        Some(found) if selector.from.is_some() || selector.to.is_some() => Some(&found.version),
        _ => None,
    };
    version.map_or(selector.engine.clone(), |v| format!("{}@{v}", selector.engine))
}

/// A hunt never records a password; it must come from the environment or with
/// `--on`.
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
    fn own_target_names_the_installed_version_of_a_range() {
        let installed = [install("mariadb", "11.4.5"), install("mariadb", "10.11.19")];
        let chosen = |text: &str| installed_target(&text.parse().unwrap(), &installed);
        assert_eq!(chosen("mariadb@10.2-10.11").as_deref(), Some("mariadb@10.11.19"));
        assert_eq!(chosen("mariadb@11.4").as_deref(), Some("mariadb@11.4"));
        assert_eq!(chosen("mariadb+snapshot").as_deref(), Some("mariadb+snapshot"));
        assert_eq!(chosen("mariadb@12-"), None);
        assert_eq!(chosen("postgres"), None);
        assert_eq!(chosen("sqlite+wal").as_deref(), Some("sqlite+wal"));
    }
}

//! Databases that killed hunts have left on a user's server.

use crate::engine::EngineResult;
use crate::server::owner::{Owner, OwnerState};

/// A login to a user's server that can list and drop databases.
pub trait AdminConnection {
    fn databases(&mut self) -> EngineResult<Vec<String>>;
    fn drop_database(&mut self, name: &str) -> EngineResult<()>;
}

/// The databases that Isolde has made on a server, by what became of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    pub removed: Vec<String>,
    /// Their owner is still running.
    pub in_use: Vec<String>,
    /// Made on another machine; only there can it be checked whether the owner
    /// is still running.
    pub elsewhere: Vec<String>,
    /// Could not be dropped, with the reason.
    pub failed: Vec<(String, String)>,
}

/// Drops the databases whose owner is dead, judged by their names alone. With
/// `only`, databases of other owners are ignored.
pub fn clean(server: &mut dyn AdminConnection, only: Option<&Owner>) -> EngineResult<Cleanup> {
    let mut cleanup = Cleanup::default();
    for name in server.databases()? {
        let Some(owner) = Owner::of_database(&name) else { continue };
        if only.is_some_and(|only| *only != owner) {
            continue;
        }
        match owner.state() {
            OwnerState::Alive => cleanup.in_use.push(name),
            OwnerState::Elsewhere => cleanup.elsewhere.push(name),
            OwnerState::Dead => match server.drop_database(&name) {
                Ok(()) => cleanup.removed.push(name),
                Err(error) => cleanup.failed.push((name, error.to_string())),
            },
        }
    }
    Ok(cleanup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineError;

    struct DatabaseList(Vec<String>);

    impl AdminConnection for DatabaseList {
        fn databases(&mut self) -> EngineResult<Vec<String>> {
            Ok(self.0.clone())
        }
        fn drop_database(&mut self, name: &str) -> EngineResult<()> {
            if name.ends_with("_7") {
                return Err(EngineError::Refused("no".into()));
            }
            self.0.retain(|n| n != name);
            Ok(())
        }
    }

    #[test]
    fn clean_drops_only_databases_of_dead_owners() {
        let me = Owner::this_process();
        let mine = me.fresh_database_name();
        let dead = format!("{}", me).replace(&format!("_{}_", std::process::id()), "_4294967295_");
        let names = ["postgres", "isolde", "isolde_notes", &mine, &format!("{dead}_1")];
        let mut all: Vec<String> = names.map(String::from).into();
        all.push(format!("{dead}_7"));
        all.push("isolde_ffffffff_ffff_1_2_3".into());
        let mut server = DatabaseList(all);
        let another = Owner::parse("isolde_0123abcd_01ab_12_34").unwrap();
        assert_eq!(clean(&mut server, Some(&another)).unwrap(), Cleanup::default());
        let cleanup = clean(&mut server, None).unwrap();
        assert_eq!(cleanup.removed, [format!("{dead}_1")]);
        assert_eq!(cleanup.in_use, [mine]);
        assert_eq!(cleanup.elsewhere, ["isolde_ffffffff_ffff_1_2_3"]);
        assert_eq!(cleanup.failed, [(format!("{dead}_7"), "no".to_string())]);
        assert_eq!(server.0.len(), 6);
    }
}

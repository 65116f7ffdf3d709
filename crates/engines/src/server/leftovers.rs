//! Databases that killed hunts have left on a server that is not ours.

use crate::engine::EngineResult;
use crate::server::owner::{Life, Owner};

/// A login to a server, to look which databases it has.
pub trait Door {
    fn databases(&mut self) -> EngineResult<Vec<String>>;
    fn drop_database(&mut self, name: &str) -> EngineResult<()>;
}

/// What became of the databases that Isolde has made, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub removed: Vec<String>,
    /// Their owner is at work.
    pub in_use: Vec<String>,
    /// Made on another machine, which alone can tell.
    pub elsewhere: Vec<String>,
    /// Should be gone and are not, with the reason.
    pub stuck: Vec<(String, String)>,
}

/// Removes the databases whose owner is dead, by their names and nothing else.
/// With `only`, no others than that owner's are looked at.
pub fn clean(door: &mut dyn Door, only: Option<&Owner>) -> EngineResult<Leftovers> {
    let mut found = Leftovers::default();
    for name in door.databases()? {
        let Some(owner) = Owner::of_database(&name) else { continue };
        if only.is_some_and(|only| *only != owner) {
            continue;
        }
        match owner.life() {
            Life::Alive => found.in_use.push(name),
            Life::Elsewhere => found.elsewhere.push(name),
            Life::Dead => match door.drop_database(&name) {
                Ok(()) => found.removed.push(name),
                Err(error) => found.stuck.push((name, error.to_string())),
            },
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineError;

    struct Listed(Vec<String>);

    impl Door for Listed {
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
    fn only_what_the_dead_have_made_is_dropped() {
        let me = Owner::this_process();
        let mine = me.fresh_database_name();
        let dead = format!("{}", me).replace(&format!("_{}_", std::process::id()), "_4294967295_");
        let names = ["postgres", "isolde", "isolde_notes", &mine, &format!("{dead}_1")];
        let mut all: Vec<String> = names.map(String::from).into();
        all.push(format!("{dead}_7"));
        all.push("isolde_ffffffff_ffff_1_2_3".into());
        let mut door = Listed(all);
        let another = Owner::parse("isolde_0123abcd_01ab_12_34").unwrap();
        assert_eq!(clean(&mut door, Some(&another)).unwrap(), Leftovers::default());
        let found = clean(&mut door, None).unwrap();
        assert_eq!(found.removed, [format!("{dead}_1")]);
        assert_eq!(found.in_use, [mine]);
        assert_eq!(found.elsewhere, ["isolde_ffffffff_ffff_1_2_3"]);
        assert_eq!(found.stuck, [(format!("{dead}_7"), "no".to_string())]);
        assert_eq!(door.0.len(), 6);
    }
}

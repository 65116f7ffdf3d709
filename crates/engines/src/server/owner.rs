//! The process that made a database on a user's server, encoded in the
//! database's name: `isolde_MACHINE_BOOT_PROCESS_START_NUMBER`. A killed
//! process leaves nothing else behind, so the name must show whether its owner
//! can still be alive.

use crate::names::quote_if_needed;
use std::fmt;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// A process on a machine, since a boot of that machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    machine: String,
    boot: String,
    process: u32,
    /// In ticks since the boot: another process with the same number began at
    /// another time.
    start: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
    Dead,
    Alive,
    /// On another machine or in another container, so that its state is unknown
    /// here.
    Elsewhere,
}

const PREFIX: &str = "isolde";

impl Owner {
    pub fn this_process() -> Owner {
        let process = std::process::id();
        let start = start_of(process).unwrap_or(0);
        Owner { machine: this_machine(), boot: this_boot(), process, start }
    }

    /// A database name that is unlikely to exist; if it does, CREATE DATABASE
    /// fails, and nothing is touched.
    pub fn fresh_database_name(&self) -> String {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name = format!("{self}_{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        debug_assert_eq!(quote_if_needed(&name, '"'), name);
        name
    }

    /// The owner of a database. None unless the name has exactly the form that
    /// Isolde uses: any other database belongs to the user.
    pub fn of_database(name: &str) -> Option<Owner> {
        let (owner, number) = name.rsplit_once('_')?;
        let number: u32 = number.parse().ok()?;
        let owner = Owner::parse(owner)?;
        (format!("{owner}_{number}") == name).then_some(owner)
    }

    pub fn parse(text: &str) -> Option<Owner> {
        let mut parts = text.split('_');
        if parts.next()? != PREFIX {
            return None;
        }
        let hex = |part: &str, digits: usize| {
            let fits = part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
            fits.then(|| part.to_string())
        };
        let owner = Owner {
            machine: hex(parts.next()?, 8)?,
            boot: hex(parts.next()?, 4)?,
            process: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        (parts.next().is_none() && owner.to_string() == text).then_some(owner)
    }

    pub fn state(&self) -> OwnerState {
        if self.machine != this_machine() {
            return OwnerState::Elsewhere;
        }
        // All processes from before the last boot have ended.
        if self.boot == this_boot() && start_of(self.process) == Some(self.start) {
            return OwnerState::Alive;
        }
        OwnerState::Dead
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Owner { machine, boot, process, start } = self;
        write!(f, "{PREFIX}_{machine}_{boot}_{process}_{start}")
    }
}

/// Identifies a machine or container: two that share a server must not mistake
/// each other's processes for their own.
fn this_machine() -> String {
    let mut text = String::new();
    for file in ["/etc/machine-id", "/proc/sys/kernel/hostname"] {
        text += &fs::read_to_string(file).unwrap_or_default();
    }
    // Process numbers are valid only within one PID namespace.
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    text += &processes.to_string_lossy();
    format!("{:08x}", fingerprint(&text) as u32)
}

fn this_boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{:04x}", fingerprint(&text) as u16)
}

/// FNV-1a: the same in every version of Isolde.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// When a process began; none if there is no such process, or it has ended and
/// is a zombie.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name is in parentheses and may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_name_identifies_its_living_owner() {
        let me = Owner::this_process();
        let name = me.fresh_database_name();
        assert!(name.len() <= 63 && name != me.fresh_database_name(), "{name}");
        assert_eq!(Owner::of_database(&name), Some(me.clone()));
        assert_eq!(me.state(), OwnerState::Alive);
    }

    #[test]
    fn dead_owners_are_distinguished_from_other_machines() {
        let me = Owner::this_process();
        let other = |change: fn(&mut Owner)| {
            let mut owner = me.clone();
            change(&mut owner);
            owner.state()
        };
        // The same number, but another start time: another process.
        assert_eq!(other(|o| o.start += 1), OwnerState::Dead);
        assert_eq!(other(|o| o.process = u32::MAX), OwnerState::Dead);
        assert_eq!(other(|o| o.boot = "zzzz".into()), OwnerState::Dead);
        assert_eq!(other(|o| o.machine = "zzzzzzzz".into()), OwnerState::Elsewhere);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = child.id();
        let start = start_of(process).unwrap();
        let owner = Owner { process, start, ..me };
        assert_eq!(owner.state(), OwnerState::Alive);
        child.kill().unwrap();
        while start_of(process).is_some() {
            std::thread::yield_now();
        }
        // It has ended and is not reaped yet.
        assert_eq!(owner.state(), OwnerState::Dead);
        child.wait().unwrap();
    }

    #[test]
    fn other_database_names_have_no_owner() {
        for name in [
            "isolde",
            "isolde_notes",
            "isolde_1_2_3",
            "isolde_0123abcd_01ab_12_34",
            "isolde_0123abcd_01ab_12_34_x",
            "isolde_0123abcd_01ab_12_34_5_6",
            "isolde_0123abcd_01ab_012_34_5",
            "isolde_0123abcd_01ab_+12_34_5",
            "Isolde_0123abcd_01ab_12_34_5",
            "myisolde_0123abcd_01ab_12_34_5",
        ] {
            assert_eq!(Owner::of_database(name), None, "{name}");
        }
        assert!(Owner::of_database("isolde_0123abcd_01ab_12_34_5").is_some());
    }
}

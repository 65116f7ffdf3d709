//! What the transactions of a workload consist of.

use std::fmt;

/// What transactions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Lists to whose end unique elements are appended: every read shows the order of
    /// all versions up to the one it saw.
    ListAppend,
    /// Registers that are set to unique values: a read shows whose version it saw.
    RwRegister,
}

impl Workload {
    pub const ALL: [Workload; 2] = [Workload::ListAppend, Workload::RwRegister];

    pub fn name(self) -> &'static str {
        match self {
            Workload::ListAppend => "list-append",
            Workload::RwRegister => "rw-register",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The shape of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub workload: Workload,
    /// How many keys are in use at a time: few make hot rows.
    pub keys: usize,
    /// A key makes room for a new one after so many writes, so that lists stay short.
    pub writes_per_key: usize,
    /// From one to so many operations a transaction.
    pub operations: usize,
    /// So many of a hundred operations are reads.
    pub reads: usize,
    /// So many of a hundred come to their row by a column without an index.
    pub scans: usize,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            workload: Workload::ListAppend,
            keys: 10,
            writes_per_key: 32,
            operations: 4,
            reads: 50,
            scans: 25,
        }
    }
}

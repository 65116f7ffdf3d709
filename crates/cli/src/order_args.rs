//! The arguments of `isolde order`.

use clap::{Args, ValueEnum};
use isolde_core::order::BUDGET;
use isolde_core::profile::Protocol;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  isolde run-history postgres --level rr --transactions 200 --out h.jsonl --trace t.jsonl
  isolde order t.jsonl --summary
  isolde order t.jsonl --case t.case && isolde replay t.case --on postgres
  isolde order leopard-traces/ --protocol mvcc-2pl --json

docs/order.md says what each rule tells and what stays open.";

#[derive(Args)]
pub struct OrderArgs {
    /// The trace (docs/trace-format.md; - is the standard input), or a folder of Leopard's or
    /// Pisco's JSON files, one a thread.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// How the engine keeps transactions apart; without it what the trace says, as the
    /// profile of its engine does.
    #[arg(long, value_name = "PROTOCOL", value_enum)]
    pub protocol: Option<ProtocolName>,
    /// Write the order as a case that `isolde replay` runs. The trace must have its setup, as
    /// Isolde's own have.
    #[arg(long, value_name = "FILE", alias = "out")]
    pub case: Option<PathBuf>,
    /// Say what was inferred, without the batches.
    #[arg(long)]
    pub summary: bool,
    /// Orders of timestamps that are tried at most.
    #[arg(long, value_name = "N", default_value_t = BUDGET)]
    pub budget: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolName {
    /// Versions for readers, locks for writers.
    #[value(name = "mvcc-2pl")]
    Mvcc2pl,
    /// Optimistic: conflicts show at COMMIT.
    Occ,
    /// Timestamp ordering.
    To,
}

impl From<ProtocolName> for Protocol {
    fn from(name: ProtocolName) -> Protocol {
        match name {
            ProtocolName::Mvcc2pl => Protocol::Mvcc2pl,
            ProtocolName::Occ => Protocol::Occ,
            ProtocolName::To => Protocol::TimestampOrdering,
        }
    }
}

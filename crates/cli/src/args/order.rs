//! The arguments of `isolde order`.

use clap::{Args, ValueEnum};
use isolde_model::profile::Protocol;
use isolde_order::BUDGET;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  isolde run-history postgres --level rr --transactions 200 --out h.jsonl --trace t.jsonl
  isolde order t.jsonl --summary
  isolde order t.jsonl --case t.case && isolde replay t.case --on postgres
  isolde order leopard-traces/ --protocol mvcc-2pl --json

docs/order.md explains what each rule orders and what stays undecided.";

#[derive(Args)]
pub struct OrderArgs {
    /// A trace (docs/trace-format.md; - for stdin), or a folder of Leopard's or Pisco's JSON
    /// files, one per thread.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Concurrency-control protocol of the engine [default: as recorded in the trace]
    #[arg(long, value_name = "PROTOCOL", value_enum)]
    pub protocol: Option<ProtocolName>,
    /// Write the order as a case for `isolde replay`. The trace must contain its setup, as
    /// Isolde's own traces do.
    #[arg(long, value_name = "FILE", alias = "out")]
    pub case: Option<PathBuf>,
    /// Print the summary only, without the batches.
    #[arg(long)]
    pub summary: bool,
    /// Maximum number of timestamp orders to try.
    #[arg(long, value_name = "N", default_value_t = BUDGET)]
    pub budget: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolName {
    /// Multi-version reads, two-phase locking for writes.
    #[value(name = "mvcc-2pl")]
    Mvcc2pl,
    /// Optimistic: conflicts are detected at COMMIT.
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

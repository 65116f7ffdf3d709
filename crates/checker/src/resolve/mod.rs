//! Resolves every read of a history to the write that it observed, and collects the version
//! orders that are known.
//!
//! The anomalies that need no graph fall out on the way: aborted, intermediate, future and
//! thin-air reads (Adya's G1a and G1b, Elle's internal anomalies). The module does not verify
//! that known version orders agree with reads of other items; `graph` does.

mod anomaly_log;
mod committed;
mod committed_lists;
mod orders;
mod reads;
mod resolved;
mod types;
mod writes;

pub(crate) use anomaly_log::{AnomalyLog, all_observed};
pub(crate) use resolved::ResolvedHistory;
pub(crate) use types::{PredicateRead, Read, UNKNOWN_POSITION};

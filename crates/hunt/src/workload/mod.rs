//! Workloads whose reads identify the writes they observed, run at full speed. The
//! result is a history for our checker or another one.
//!
//! ```text
//!   Draw ─► transactions ─► FreeRun ─► answers ─► History
//! ```

mod draw;
mod record;
mod replay;
mod shape;
mod sql;

pub use record::{WorkloadRecorder, WorkloadRecording};
pub use replay::{Agreement, replay_recording};
pub use shape::{Shape, Workload};

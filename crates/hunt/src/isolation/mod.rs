//! The isolation oracle at full speed: rounds of generated transactions on instrumented tables,
//! whose results reveal which row versions were read and written.
//!
//! ```text
//!   Generator::round ─► Instrument ─► FreeRun ─► probe results ─► history ─► checker
//!                                                                              │
//!        Excerpt, a scheduled case ◄── forbidden by the level's promise? ◄─────┘
//! ```

mod accesses;
mod evaluate;
mod excerpt;
mod round;
mod transactions;

pub use evaluate::evaluate;
pub(crate) use excerpt::replay;
pub use excerpt::{Effort, Excerpt, OrderSource, excerpt};
pub use round::{RoundRecord, Shape, run_round};

//! The isolation oracle on sessions that run at full speed: rounds of generated
//! transactions on tables that tell which versions were read and written.
//!
//! ```text
//!   Generator::round ─► Instrument ─► FreeRun ─► answers ─► Told ─► Account ─► checker
//!                                                                                │
//!        Excerpt, a scheduled case ◄── forbidden by the level's promise? ◄───────┘
//! ```

mod accesses;
mod evaluate;
mod excerpt;
mod hunting;
mod round;

pub use evaluate::evaluate;
pub use excerpt::{Effort, Excerpt, Order, excerpt};
pub use round::{Played, Shape, play};

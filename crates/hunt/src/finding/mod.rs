//! Findings: what one consists of, what it is called, how it is explained and exported.
//!
//! Nothing here runs a case or touches a file: the module `output` writes and reads the folders.

pub mod defect;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod features;
pub mod known_bug;
pub mod script;
pub mod signature;

pub use defect::Defect;
pub use evidence::{Evidence, Finding, Reduction};
pub use known_bug::KnownBug;
pub use signature::{shape, signature, title};

//! The connections of a faulty engine, which its sessions share.

use crate::engine::Session;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection that several sessions may use.
pub(super) type Link = Arc<Mutex<Box<dyn Session>>>;

/// Locks a mutex. The state is consistent even if a holder has panicked,
/// because each of them only replaces single values.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

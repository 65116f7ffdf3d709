//! Decodes arbitrary bytes as the bytes of a server, for fuzzing.

use super::MySqlSession;
use crate::connect::address::{Login, ServerAddress};
use crate::connect::poll::LOGIN_LIMIT;
use crate::connect::stream::Stream;
use crate::engine::Session;
use crate::secret::Secret;
use isolde_model::history::ErrorClass;
use std::io;
use std::sync::Arc;

/// Logs in to a server that sends `bytes` and, if that succeeds, decodes the
/// rest as the reply to a query; then decodes all of `bytes` as a reply. Returns
/// whether one of them was a whole reply. The error is one of the sockets.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> io::Result<bool> {
    let address = ServerAddress::loopback(0, "u", Some(&Secret::new("p")));
    let login = Login { address: &address, database: None, settings: &[] };
    let profile = Arc::new(isolde_catalog::engines::profile("mysql", ""));
    let mut accepted = false;
    for logs_in in [true, false] {
        let (stream, _peer) = Stream::with_input(bytes)?;
        let mut session = MySqlSession::new(stream, Arc::clone(&profile));
        if logs_in && session.authenticate(&login, None).is_err() {
            continue;
        }
        session.start("select a from t");
        let reply = session.reply(LOGIN_LIMIT).expect("the end of the input ends the reply");
        accepted |= reply.error().is_none_or(|error| error.class != ErrorClass::Lost);
    }
    Ok(accepted)
}

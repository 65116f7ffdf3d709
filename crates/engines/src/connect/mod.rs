//! How one comes to a server: where it is (`url`), as whom (`password`,
//! `secret`), whether in clear or not (`tls`), and the socket that results
//! (`stream`, `poll`). Both wire clients stand on it. `client_command` is how a
//! person gets in with the database's own client.

pub mod client_command;
#[cfg(test)]
pub(crate) mod hostile_peer;
pub mod password;
pub(crate) mod poll;
pub mod secret;
pub(crate) mod stream;
pub mod tls;
pub mod url;
mod url_parameters;

//! Connections to servers, shared by both wire clients: the URL of a server
//! (`url`, `url_parameters`), its `address`, the `password`, encryption
//! (`tls`), the `login`, and the socket (`stream`, `poll`). `client_command`
//! builds the command line of the database's own client.

pub mod address;
pub mod client_command;
#[cfg(test)]
pub(crate) mod hostile_peer;
pub(crate) mod login;
pub mod password;
pub(crate) mod poll;
pub(crate) mod stream;
pub mod tls;
pub mod url;
mod url_parameters;

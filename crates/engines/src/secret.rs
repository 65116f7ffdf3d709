//! Passwords: sent to a server, put into a child's environment or into a file
//! that only its owner can read. They never appear in output or on a command
//! line, which all users of the machine can list.

use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// A password for a private server: letters and digits that need no quoting
    /// in a shell, in SQL or in a URL.
    pub fn random() -> Secret {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        Secret(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The password itself, for code that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_passwords_differ_and_are_never_shown() {
        let (one, two) = (Secret::random(), Secret::random());
        assert!(one != two && one.reveal().len() == 32);
        assert!(one.reveal().bytes().all(|b| b.is_ascii_alphanumeric()));
        assert!(!format!("{one:?} {:?}", Some(&two)).contains(one.reveal()));
    }
}

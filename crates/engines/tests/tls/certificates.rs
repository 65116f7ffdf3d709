//! Certificates for tests, made by the openssl command.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Two authorities; a server's certificate for `localhost` and a client's for
/// `certified`, both signed by the first.
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    pub fn make() -> Option<Certificates> {
        isolde_testing::servers::tool("openssl")?;
        let folder = tempfile::tempdir().unwrap();
        let made = Certificates { folder };
        made.authority("ca");
        made.authority("stranger");
        made.signed("server", "/CN=localhost", "subjectAltName=DNS:localhost");
        made.signed("client", "/CN=certified", "subjectAltName=DNS:certified");
        Some(made)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(self.folder.path());
        let output = command.output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments}: {printed}");
    }

    fn authority(&self, name: &str) {
        self.openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
             -keyout {name}.key -out {name}.pem -subj /CN={name}"
        ));
    }

    fn signed(&self, name: &str, subject: &str, extension: &str) {
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
             -keyout {name}.key -out {name}.csr -subj {subject}"
        ));
        std::fs::write(self.file("extension"), extension).unwrap();
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
             -out {name}.pem -extfile extension"
        ));
    }

    /// Copies the files for a server: they get the owner of the folder, and only
    /// the owner can read the key.
    pub fn hand_to_server(&self, folder: &Path) {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let owner = folder.metadata().unwrap();
        for name in ["ca.pem", "server.pem", "server.key"] {
            let copy = folder.join(name);
            std::fs::copy(self.file(name), &copy).unwrap();
            std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o600)).unwrap();
            chown(&copy, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
}

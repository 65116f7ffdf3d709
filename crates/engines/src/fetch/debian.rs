//! Servers from Debian packages of any suite, unpacked into the cache.
//!
//! The machine's package state is never touched: apt works in a private root
//! inside the cache, whose sources are the machine's own Debian entries with
//! the suite replaced (see [`super::apt`]), and packages are unpacked with
//! dpkg-deb, not installed. A server of a newer Debian needs a newer C library
//! than the machine has, so its libraries are fetched too and it runs through
//! its own dynamic loader. apt verifies signatures and hashes.

use super::FetchError;
use super::apt::Apt;
use super::client::{self, Reporter};
use super::install::Cache;
use super::job::{Job, Layout, Offer};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub struct Package {
    pub suite: &'static str,
    /// The package that contains the server; its version is the server's.
    pub server_package: &'static str,
    /// Other packages with programs or files that are needed.
    pub more: &'static [&'static str],
    pub server: &'static str,
    pub init: Option<&'static str>,
    /// Programs that the init script starts by itself and that therefore become
    /// small scripts around the loader. Without them the loader is the
    /// launcher.
    pub wrapped: &'static [&'static str],
}

pub const MARIADB_TRIXIE: Package = Package {
    suite: "trixie",
    server_package: "mariadb-server-core",
    more: &["mariadb-client-core"],
    server: "usr/sbin/mariadbd",
    init: Some("usr/bin/mariadb-install-db"),
    wrapped: &["usr/sbin/mariadbd", "usr/bin/my_print_defaults", "usr/bin/resolveip"],
};

pub const MARIADB_BULLSEYE: Package = Package {
    suite: "bullseye",
    server_package: "mariadb-server-core-10.5",
    more: &["mariadb-client-core-10.5"],
    init: Some("usr/bin/mysql_install_db"),
    ..MARIADB_TRIXIE
};

pub const MYSQL_SID: Package = Package {
    suite: "sid",
    server_package: "mysql-server-core",
    more: &[],
    server: "usr/sbin/mysqld",
    init: None,
    wrapped: &[],
};

impl Package {
    pub fn offers(&self, cache: &Cache, report: &mut Reporter) -> Result<Vec<Offer>, FetchError> {
        let apt = Apt::open(cache, Some(self.suite), report)?;
        let candidate = apt.candidate(self.server_package, report)?;
        let offer = |token: String| Offer { version: upstream(&token).to_string(), token };
        Ok(candidate.map(offer).into_iter().collect())
    }

    pub fn unpack(&self, offer: &Offer, job: &mut Job) -> Result<Layout, FetchError> {
        let apt = Apt::open(job.cache, Some(self.suite), job.report)?;
        let mut packages = vec![self.server_package.to_string()];
        packages.extend(self.more.iter().map(|name| name.to_string()));
        let libraries = apt.libraries_of(&packages, job.report)?;
        job.report.say(format!(
            "apt-get: downloading {} {} and {} libraries",
            self.server_package,
            offer.token,
            libraries.len()
        ));
        packages.extend(libraries);
        apt.unpack(&packages, &job.stage, job.report)?;

        let loader = find_loader(&job.stage).ok_or_else(|| FetchError::Unpack {
            archive: job.stage.clone(),
            reason: "no dynamic loader (ld-linux*.so) came with libc6".into(),
        })?;
        let launcher = self.launcher(&loader, &job.stage, &job.home);
        for program in self.wrapped {
            wrap(&job.stage, program, &job.home, &launcher)
                .map_err(|error| FetchError::io(&job.stage.join(program), error))?;
        }
        Ok(Layout {
            basedir: "usr".into(),
            server: self.server.into(),
            init: self.init.map(PathBuf::from),
            launcher: if self.wrapped.is_empty() { launcher } else { Vec::new() },
            version_args: vec!["--no-defaults".into(), "--version".into()],
            ..Layout::default()
        })
    }

    fn launcher(&self, loader: &Path, stage: &Path, home: &Path) -> Vec<String> {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let folders: Vec<String> = [format!("usr/lib/{triplet}"), format!("lib/{triplet}")]
            .into_iter()
            .chain(["usr/lib/mysql/private".to_string()])
            .filter(|folder| stage.join(folder).is_dir())
            .map(|folder| home.join(folder).display().to_string())
            .collect();
        vec![home.join(loader).display().to_string(), "--library-path".into(), folders.join(":")]
    }
}

/// `1:11.8.6-0+deb13u1` packages 11.8.6.
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    &version[..end]
}

/// The loader's path relative to the root, which has changed over the years.
fn find_loader(root: &Path) -> Option<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = [
        format!("usr/lib/{triplet}"),
        format!("lib/{triplet}"),
        "usr/lib64".into(),
        "lib64".into(),
    ];
    folders.iter().find_map(|folder| {
        let entries = fs::read_dir(root.join(folder)).ok()?;
        entries
            .flatten()
            .map(|entry| entry.file_name())
            .find(|name| {
                let name = name.to_string_lossy();
                name.starts_with("ld-linux") && name.contains(".so")
            })
            .map(|name| Path::new(folder).join(name))
    })
}

/// Replaces the program by a script that starts it through its loader.
fn wrap(stage: &Path, program: &str, home: &Path, launcher: &[String]) -> std::io::Result<()> {
    let place = stage.join(program);
    if !place.is_file() {
        return Ok(());
    }
    let real = format!("{program}.real");
    fs::rename(&place, stage.join(&real))?;
    let quoted: Vec<String> = launcher.iter().map(|word| client::shell_quote(word)).collect();
    let script = format!(
        "#!/bin/sh\n# Made by isolde fetch: runs with the libraries that came along.\n\
         exec {} {} \"$@\"\n",
        quoted.join(" "),
        client::shell_quote(&home.join(&real).display().to_string())
    );
    fs::write(&place, script)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_version_has_no_epoch_and_no_revision() {
        assert_eq!(upstream("1:11.8.6-0+deb13u1"), "11.8.6");
        assert_eq!(upstream("9.7.4-2"), "9.7.4");
    }

    #[test]
    fn a_wrapped_program_starts_through_the_launcher() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        let program = dir.path().join("bin/tool");
        fs::write(&program, "#!/bin/sh\necho \"real $0 $@\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let launcher = ["env".to_string(), "A=b c".to_string()];
        wrap(dir.path(), "bin/tool", dir.path(), &launcher).unwrap();
        let output = std::process::Command::new(&program).arg("one two").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("real {}/bin/tool.real one two\n", dir.path().display()));
    }
}

//! Servers that are built from Go modules. The go command verifies every module
//! with go.sum and the checksum database.
//!
//! `go install module@version` does not work: TiDB has its parser in a separate
//! module that its go.mod replaces by a folder. So the sources are copied out
//! of the module cache and built there.

use super::FetchError;
use super::client;
use super::job::{Job, Layout, Offer};
use serde::Deserialize;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Module {
    pub path: &'static str,
    /// The version that users request, and the module's: only exact
    /// pseudo-versions resolve.
    pub version: &'static str,
    pub token: &'static str,
    /// Further modules to copy into folders of the first.
    pub parts: &'static [Part],
    /// The folder of the program, and its name.
    pub package: &'static str,
    pub program: &'static str,
    pub build_flags: &'static [&'static str],
    pub version_args: &'static [&'static str],
}

pub struct Part {
    pub path: &'static str,
    pub token: &'static str,
    pub folder: &'static str,
}

pub const TIDB_8_5: Module = Module {
    path: "github.com/pingcap/tidb",
    version: "8.5",
    token: "v1.1.0-beta.0.20251126154744-e4e814fdc0af",
    parts: &[Part {
        path: "github.com/pingcap/tidb/pkg/parser",
        token: "v0.0.0-20251126154744-e4e814fdc0af",
        folder: "pkg/parser",
    }],
    package: "./cmd/tidb-server",
    program: "tidb-server",
    // The sources say v8.4.0-this-is-a-placeholder. This name is Isolde's, not
    // a release's: the release line, then the date and the commit that were
    // built.
    build_flags: &[
        "-ldflags=-X github.com/pingcap/tidb/pkg/parser/mysql.TiDBReleaseVersion=v8.5.0-20251126-e4e814fdc0af",
    ],
    version_args: &["-V"],
};

pub const TIDB_6_6: Module = Module {
    path: "github.com/pingcap/tidb",
    version: "6.6",
    token: "v1.1.0-beta.0.20230103132820-3ccff46aa3bc",
    parts: &[Part {
        path: "github.com/pingcap/tidb/parser",
        token: "v0.0.0-20230103132820-3ccff46aa3bc",
        folder: "parser",
    }],
    package: "./tidb-server",
    program: "tidb-server",
    // An old dependency accesses internals of the runtime, which newer linkers
    // refuse.
    build_flags: &[
        "-ldflags=-checklinkname=0 -X github.com/pingcap/tidb/parser/mysql.TiDBReleaseVersion=v6.6.0-20230103-3ccff46aa3bc",
    ],
    version_args: &["-V"],
};

pub const DOLT: Module = Module {
    path: "github.com/dolthub/dolt/go",
    version: "2.2.0",
    token: "v0.40.5-0.20260715172757-a6690826d767",
    parts: &[],
    package: "./cmd/dolt",
    program: "dolt",
    // The regular expressions of ICU would need its headers.
    build_flags: &["-tags=gms_pure_go"],
    version_args: &["version"],
};

impl Module {
    pub fn offers(&self) -> Result<Vec<Offer>, FetchError> {
        client::require("go")?;
        Ok(vec![Offer { version: self.version.into(), token: self.token.into() }])
    }

    pub fn unpack(&self, _offer: &Offer, job: &mut Job) -> Result<Layout, FetchError> {
        let source = job.stage.join("src");
        let io = |error| FetchError::io(&source, error);
        copy_writable(&download(self.path, self.token, job)?, &source).map_err(io)?;
        for part in self.parts {
            let folder = source.join(part.folder);
            copy_writable(&download(part.path, part.token, job)?, &folder).map_err(io)?;
        }
        job.report.say(format!("go: building {} (this takes minutes)", self.program));
        let bin = job.stage.join("bin");
        let mut command = go(&source)?;
        command.arg("build").args(self.build_flags).arg("-o").arg(bin.join(self.program));
        command.arg(self.package);
        let label = format!("go: building {}", self.program);
        // Only Go's own cache grows meanwhile, which is no measure of progress.
        client::run(job.report, &label, &mut command, None)?;
        fs::remove_dir_all(&source).map_err(io)?;
        let program = Path::new("bin").join(self.program);
        Ok(Layout {
            server: program,
            version_args: self.version_args.iter().map(|arg| arg.to_string()).collect(),
            ..Layout::default()
        })
    }
}

fn go(folder: &Path) -> Result<Command, FetchError> {
    let mut command = Command::new(client::require("go")?);
    // A workspace file in a parent folder would change the build.
    command.current_dir(folder).env("GOWORK", "off");
    Ok(command)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
}

/// The module's folder in Go's cache.
fn download(path: &str, token: &str, job: &mut Job) -> Result<PathBuf, FetchError> {
    job.report.say(format!("go: downloading {path} {token}"));
    let mut command = go(&job.stage)?;
    command.args(["mod", "download", "-json", &format!("{path}@{token}")]);
    let out = client::run(job.report, &format!("go: downloading {path}"), &mut command, None)?;
    let answer: Downloaded = serde_json::from_str(&out).map_err(|error| {
        let command = format!("go mod download -json {path}@{token}");
        FetchError::ClientFailed { command, tail: format!("{error}:\n{}", client::tail(&out)) }
    })?;
    Ok(answer.dir)
}

/// Copies writable: the module cache is read-only.
fn copy_writable(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_writable(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            let mode = entry.metadata()?.permissions().mode() | 0o200;
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_read_only_sources_is_writable() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/a.go"), "package deep").unwrap();
        fs::set_permissions(from.join("deep/a.go"), fs::Permissions::from_mode(0o444)).unwrap();
        copy_writable(&from, &to).unwrap();
        let mode = to.join("deep/a.go").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }
}

//! A private apt: its own sources, lists and downloads, inside the cache.
//!
//! The package sources are the machine's own Debian entries with only the suite
//! replaced. So mirrors, proxies and keys are the machine's.

use super::client::{self, Reporter};
use super::install::Cache;
use super::{FetchError, lock};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a suite's package lists count as fresh.
const FRESH: Duration = Duration::from_secs(3600);

pub struct Apt {
    root: PathBuf,
}

impl Apt {
    /// The private root of a suite, with fresh package lists. Without a suite:
    /// that of the machine.
    pub fn open(
        cache: &Cache,
        suite: Option<&str>,
        report: &mut Reporter,
    ) -> Result<Apt, FetchError> {
        for program in ["apt-get", "apt-cache", "dpkg-deb"] {
            client::require(program)?;
        }
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let own = os_field(&release, "VERSION_CODENAME").unwrap_or_default();
        let suite = suite.unwrap_or(&own);
        if suite != own && os_field(&release, "ID").as_deref() != Some("debian") {
            return Err(FetchError::MissingClient {
                client: format!("an apt with Debian's {suite}"),
                fix: "this recipe needs a Debian machine; elsewhere use --via podman or docker"
                    .into(),
            });
        }
        let root = cache
            .folder(&format!(".apt/{suite}"))
            .map_err(|error| FetchError::io(cache.root(), error))?;
        let apt = Apt { root };
        let _lock = lock::take(&apt.root.join(".isolde.lock"), "apt-get update", report)?;
        apt.prepare(&own, suite)?;
        let stamp = apt.root.join("updated");
        let age = stamp.metadata().and_then(|meta| meta.modified()).ok();
        let fresh = age.and_then(|at| at.elapsed().ok()).is_some_and(|age| age < FRESH);
        if !fresh {
            report.say(format!("apt-get: reading the package lists of {suite}"));
            let mut command = apt.command("apt-get");
            command.args(["-o", "APT::Update::Error-Mode=any", "update"]);
            client::run(report, "apt-get: update", &mut command, Some(&apt.root.join("lists")))?;
            fs::write(&stamp, "").map_err(|error| FetchError::io(&stamp, error))?;
        }
        Ok(apt)
    }

    fn prepare(&self, own: &str, suite: &str) -> Result<(), FetchError> {
        let io = |error| FetchError::io(&self.root, error);
        for folder in ["lists/partial", "archives/partial", "none"] {
            fs::create_dir_all(self.root.join(folder)).map_err(io)?;
        }
        fs::write(self.root.join("status"), "").map_err(io)?;
        let mut entries = String::new();
        for (path, text) in machine_sources() {
            let deb822 = path.extension().is_some_and(|extension| extension == "sources");
            entries +=
                &if deb822 { from_deb822(&text, own, suite) } else { from_list(&text, own, suite) };
        }
        if entries.is_empty() {
            return Err(FetchError::MissingClient {
                client: format!("an apt source for {own}"),
                fix: "/etc/apt has no entry for the machine's own release that could be \
                      derived from; add one"
                    .into(),
            });
        }
        fs::write(self.root.join("isolde.list"), entries).map_err(io)
    }

    /// apt, configured to write only below the private root.
    fn command(&self, program: &str) -> Command {
        let at = |name: &str| self.root.join(name).display().to_string();
        let mut command = Command::new(program);
        for option in [
            format!("Dir::Etc::SourceList={}", at("isolde.list")),
            format!("Dir::Etc::SourceParts={}", at("none")),
            format!("Dir::State::Lists={}", at("lists")),
            format!("Dir::State::Status={}", at("status")),
            format!("Dir::Cache={}", at("")),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_string(),
            "Acquire::Languages=none".to_string(),
            // Root's apt switches to a user that may not write here.
            "APT::Sandbox::User=root".to_string(),
        ] {
            command.arg("-o").arg(option);
        }
        command.env("LC_ALL", "C");
        command
    }

    /// The version that the suite has of a package.
    pub fn candidate(
        &self,
        package: &str,
        report: &mut Reporter,
    ) -> Result<Option<String>, FetchError> {
        let mut command = self.command("apt-cache");
        command.args(["policy", package]);
        let out = client::run(report, "apt-cache", &mut command, None)?;
        let candidate = out.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.filter(|version| *version != "(none)").map(String::from))
    }

    /// The libraries that programs of these packages load, recursively.
    pub fn libraries_of(
        &self,
        packages: &[String],
        report: &mut Reporter,
    ) -> Result<Vec<String>, FetchError> {
        let mut command = self.command("apt-cache");
        command.args(["depends", "--recurse", "--no-recommends", "--no-suggests"]);
        command.args(["--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"]);
        command.args(packages);
        let out = client::run(report, "apt-cache", &mut command, None)?;
        Ok(closure(packages, &depends(&out)))
    }

    /// Downloads packages and unpacks them into a folder.
    pub fn unpack(
        &self,
        packages: &[String],
        into: &Path,
        report: &mut Reporter,
    ) -> Result<(), FetchError> {
        let debs = into.join(".debs");
        fs::create_dir_all(&debs).map_err(|error| FetchError::io(&debs, error))?;
        let mut command = self.command("apt-get");
        command.arg("download").args(packages).current_dir(&debs);
        client::run(report, "apt-get: downloading", &mut command, Some(&debs))?;
        let found = fs::read_dir(&debs).map_err(|error| FetchError::io(&debs, error))?;
        for deb in found.flatten().map(|entry| entry.path()) {
            let mut command = Command::new("dpkg-deb");
            command.arg("--extract").arg(&deb).arg(into);
            client::run(report, "dpkg-deb: unpacking", &mut command, Some(into)).map_err(
                |error| FetchError::Unpack { archive: deb.clone(), reason: error.to_string() },
            )?;
        }
        fs::remove_dir_all(&debs).map_err(|error| FetchError::io(&debs, error))
    }
}

fn os_field(release: &str, field: &str) -> Option<String> {
    let line = release.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix('='))?;
    Some(line.trim_matches('"').to_string())
}

fn machine_sources() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> = vec!["/etc/apt/sources.list".into()];
    let parts = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    paths.extend(parts.map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "list" || extension == "sources")
    }));
    paths.sort();
    paths.into_iter().filter_map(|p| fs::read_to_string(&p).ok().map(|text| (p, text))).collect()
}

/// One-line entries of the machine's own release, for another suite. Updates,
/// security and backports are left out: not every suite has them.
fn from_list(text: &str, own: &str, suite: &str) -> String {
    let mut entries = String::new();
    for line in text.lines().map(str::trim).filter(|line| line.starts_with("deb ")) {
        let options_end = line.find(']').map_or(3, |at| at + 1);
        let (head, rest) = line.split_at(options_end);
        let words: Vec<&str> = rest.split_whitespace().collect();
        if words.len() >= 3 && words[1] == own {
            entries += &format!("{head} {} {suite} main\n", words[0]);
        }
    }
    entries
}

/// The same for the newer format of paragraphs, as one-line entries.
fn from_deb822(text: &str, own: &str, suite: &str) -> String {
    let mut entries = String::new();
    for paragraph in text.replace("\r\n", "\n").split("\n\n") {
        let field = |name: &str| {
            let value =
                paragraph.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        let has = |name: &str, word: &str| {
            field(name).is_some_and(|value| value.split_whitespace().any(|part| part == word))
        };
        if !has("Types", "deb") || !has("Suites", own) || has("Enabled", "no") {
            continue;
        }
        // A key that is included in full does not fit on one line.
        let key = field("Signed-By").filter(|key| key.starts_with('/'));
        let options = key.map(|key| format!("[signed-by={key}] ")).unwrap_or_default();
        for uri in field("URIs").unwrap_or_default().split_whitespace() {
            entries += &format!("deb {options}{uri} {suite} main\n");
        }
    }
    entries
}

/// The output of `apt-cache depends --recurse`: each package's dependencies.
fn depends(output: &str) -> HashMap<&str, Vec<&str>> {
    let mut all: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut current = "";
    for line in output.lines() {
        if !line.starts_with([' ', '|']) {
            current = line.trim();
        } else if let Some((_, name)) = line.split_once("Depends: ")
            && !name.starts_with('<')
        {
            all.entry(current).or_default().push(name.trim());
        }
    }
    all
}

/// Libraries only: interpreters, scripts and configuration are not followed.
fn closure(packages: &[String], depends: &HashMap<&str, Vec<&str>>) -> Vec<String> {
    let is_library = |name: &str| {
        (name.starts_with("lib") || name == "zlib1g")
            && !["-perl", "-common", "-data", "-extra"].iter().any(|end| name.ends_with(end))
    };
    let mut found = BTreeSet::new();
    let mut queue: Vec<&str> = packages.iter().map(String::as_str).collect();
    while let Some(package) = queue.pop() {
        for name in depends.get(package).into_iter().flatten() {
            if is_library(name) && found.insert(name.to_string()) {
                queue.push(name);
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_replaced_and_the_mirror_stays() {
        let list = "# comment\ndeb [signed-by=/k.gpg] http://mirror/debian bookworm main contrib\n\
                    deb http://mirror/security bookworm-security main\n\
                    deb-src http://mirror/debian bookworm main\n";
        assert_eq!(
            from_list(list, "bookworm", "sid"),
            "deb [signed-by=/k.gpg] http://mirror/debian sid main\n"
        );
        let paragraphs = "Types: deb\n# comment\nURIs: http://mirror/debian\n\
             Suites: bookworm bookworm-updates\nComponents: main\nSigned-By: /k.gpg\n\n\
             Types: deb\nURIs: http://mirror/security\nSuites: bookworm-security\n";
        assert_eq!(
            from_deb822(paragraphs, "bookworm", "sid"),
            "deb [signed-by=/k.gpg] http://mirror/debian sid main\n"
        );
    }

    #[test]
    fn libraries_are_followed_and_interpreters_are_not() {
        let output = "server\n  Depends: liba1\n |Depends: perl\n  Depends: <perl:any>\n    perl\n\
                      liba1\n  Depends: libc6\n  Depends: liba-common\n\
                      perl\n  Depends: libperl5\nlibc6\n";
        assert_eq!(closure(&["server".to_string()], &depends(output)), ["liba1", "libc6"]);
    }
}

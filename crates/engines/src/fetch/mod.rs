//! Getting a database server without installing one: `isolde fetch postgres@18`.
//!
//! Everything goes through the package clients that the machine has, each with
//! its own configuration: which registry, mirror or proxy to use is said there
//! and nowhere in Isolde. The clients also verify what they download, see
//! docs/fetch.md.
//!
//! A fetch asks the engine's sources in order for a version that fits, unpacks
//! it into a temporary folder of the cache, renames that into place, runs the
//! server once with `--version` and writes the manifest last. A lock file per
//! version keeps two Isoldes from fetching the same thing at the same time.

mod apt;
pub(crate) mod archive;
pub(crate) mod client;
mod debian;
mod go;
pub mod install;
mod libraries;
mod lock;
mod maven;
mod npm;
mod pip;
mod recipes;
pub mod version;

use client::Reporter;
use install::{Cache, Install, MANIFEST, cached_installs, version_output};
use recipes::Source;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{client} is not on this machine and this fetch needs it: {fix}")]
    MissingClient { client: String, fix: String },
    #[error("Isolde has no recipe for {engine}; it can fetch {}", known.join(", "))]
    UnknownEngine { engine: String, known: Vec<String> },
    #[error(
        "{engine} {version} is nowhere to be had. Closest: {}. \
         `isolde servers` lists what can be fetched",
        if closest.is_empty() { "nothing".to_string() } else { closest.join(", ") }
    )]
    UnknownVersion { engine: String, version: String, closest: Vec<String> },
    #[error(
        "there are no {client} packages of {engine} for {platform}; \
         use --via podman or --via docker"
    )]
    WrongPlatform { engine: String, client: String, platform: String },
    #[error(
        "`{command}` failed:\n{tail}\nCheck that client's own settings (registry, proxy) and try again"
    )]
    ClientFailed { command: String, tail: String },
    #[error("{} cannot be unpacked: {reason}", archive.display())]
    Unpack { archive: PathBuf, reason: String },
    #[error("what was fetched does not run: {reason}")]
    DoesNotRun { reason: String },
    #[error("{}: {source}. ISOLDE_CACHE names another folder for the cache", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl FetchError {
    pub(crate) fn io(path: &Path, source: io::Error) -> FetchError {
        FetchError::Io { path: path.to_path_buf(), source }
    }
}

/// One line of `isolde servers`: what could be fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetchable {
    pub engine: &'static str,
    /// For people: `10 to 18`, `8.0.33`.
    pub versions: &'static str,
    /// The program that has to be on PATH.
    pub client: &'static str,
    pub note: &'static str,
}

pub fn fetchable() -> Vec<Fetchable> {
    recipes::RECIPES
        .iter()
        .map(|recipe| Fetchable {
            engine: recipe.engine,
            versions: recipe.versions,
            client: recipe.source.client(),
            note: recipe.note,
        })
        .collect()
}

/// A version that a source offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offer {
    /// As the server will call it: `18.4`.
    pub version: String,
    /// As the client calls it: `18.4.0-beta.17`.
    pub token: String,
}

/// An unpacked server; paths are relative to the version's folder.
#[derive(Default)]
pub(crate) struct Layout {
    pub basedir: PathBuf,
    pub server: PathBuf,
    pub init: Option<PathBuf>,
    /// Absolute already, as the folder's final place is known beforehand.
    pub launcher: Vec<String>,
    pub env: Vec<(String, String)>,
    /// What the server prints its version with.
    pub version_args: Vec<String>,
}

/// What a source gets to work with.
pub(crate) struct Job<'a, 'b> {
    pub cache: &'a Cache,
    pub report: &'a mut Reporter<'b>,
    /// Where to unpack.
    pub stage: PathBuf,
    /// Where the stage will be afterwards, for paths that must be absolute.
    pub home: PathBuf,
}

/// Gets `engine`, in the newest version that has the leading parts of
/// `version`, and says through `progress` what it is doing.
pub fn fetch(
    engine: &str,
    version: Option<&str>,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Install, FetchError> {
    let mut report = Reporter { progress };
    if let Some(install) = version.and_then(|version| cache.load(engine, version)) {
        report.say(format!("{engine} {} is in the cache", install.version));
        return Ok(install);
    }
    let (source, offer) = match resolve(engine, version, cache, &mut report) {
        Ok(found) => found,
        Err(error) => return cached_instead(engine, version, cache, &mut report, error),
    };
    let folder = cache.folder(engine).map_err(|e| FetchError::io(cache.root(), e))?;
    let what = format!("{engine} {}", offer.version);
    let _lock = lock::take(&folder.join(format!(".{}.lock", offer.version)), &what, &mut report)?;
    // Whoever held the lock before may have brought it already.
    if let Some(install) = cache.load(engine, &offer.version) {
        report.say(format!("{what} is in the cache"));
        return Ok(install);
    }
    let stage =
        new_stage(&folder, &offer.version).map_err(|error| FetchError::io(&folder, error))?;
    let home = cache.home(engine, &offer.version);
    let mut job = Job { cache, report: &mut report, stage: stage.path().to_path_buf(), home };
    let layout = source.unpack(&offer, &mut job)?;
    let home = job.home;
    settle(stage, &home)?;
    let install = Install {
        engine: engine.to_string(),
        version: offer.version.clone(),
        source: source.describe(&offer),
        basedir: if layout.basedir.as_os_str().is_empty() {
            home.clone()
        } else {
            home.join(&layout.basedir)
        },
        server: home.join(&layout.server),
        launcher: layout.launcher,
        env: layout.env,
        init: layout.init.map(|init| home.join(init)),
    };
    let says = check_it_runs(&install, &layout.version_args)?;
    cache.store(&install).map_err(|error| FetchError::io(&home.join(MANIFEST), error))?;
    report.say(format!("{what} is ready in {}: {says}", home.display()));
    Ok(install)
}

/// Which source has a version that fits. With a version asked for, the first
/// source that has one; without, the highest of all.
fn resolve(
    engine: &str,
    version: Option<&str>,
    cache: &Cache,
    report: &mut Reporter,
) -> Result<(&'static Source, Offer), FetchError> {
    let recipes: Vec<_> = recipes::RECIPES.iter().filter(|r| r.engine == engine).collect();
    if recipes.is_empty() {
        let mut known: Vec<String> =
            recipes::RECIPES.iter().map(|recipe| recipe.engine.to_string()).collect();
        known.dedup();
        return Err(FetchError::UnknownEngine { engine: engine.to_string(), known });
    }
    let mut failure = None;
    let mut offered: Vec<(&'static Source, Offer)> = Vec::new();
    for recipe in recipes {
        let offers = match recipe.offers(cache, report) {
            Ok(offers) => offers,
            Err(error) => {
                // Another source may do; if none does, the first error is told.
                report.say(format!("not from {}: {}", recipe.source.client(), first_line(&error)));
                failure.get_or_insert(error);
                continue;
            }
        };
        if let Some(best) = best(version, &offers)
            && version.is_some()
        {
            return Ok((&recipe.source, best.clone()));
        }
        offered.extend(offers.into_iter().map(|offer| (&recipe.source, offer)));
    }
    let newest = offered
        .iter()
        .enumerate()
        // Of equal versions the first source's: the recipes are in order of preference.
        .max_by(|(i, a), (j, b)| version::compare(&a.1.version, &b.1.version).then(j.cmp(i)));
    match (version, newest, failure) {
        (None, Some((index, _)), _) => Ok(offered.swap_remove(index)),
        (_, _, Some(error)) => Err(error),
        (version, _, None) => {
            let version = version.unwrap_or("(any version)").to_string();
            let known: Vec<String> = offered.into_iter().map(|(_, offer)| offer.version).collect();
            let closest = version::closest(&version, &known, 6);
            Err(FetchError::UnknownVersion { engine: engine.to_string(), version, closest })
        }
    }
}

/// The highest version that fits. Among equals the last one listed, which is
/// the latest packaging of it.
fn best<'a>(wanted: Option<&str>, offers: &'a [Offer]) -> Option<&'a Offer> {
    offers
        .iter()
        .filter(|offer| wanted.is_none_or(|wanted| version::matches(wanted, &offer.version)))
        .max_by(|a, b| version::compare(&a.version, &b.version))
}

/// Without network, a version that is here already and fits is good enough.
fn cached_instead(
    engine: &str,
    version: Option<&str>,
    cache: &Cache,
    report: &mut Reporter,
    error: FetchError,
) -> Result<Install, FetchError> {
    let fits = |install: &Install| {
        install.engine == engine && version.is_none_or(|v| version::matches(v, &install.version))
    };
    match cached_installs(cache).into_iter().find(fits) {
        Some(install) => {
            report.say(format!(
                "{engine} {} of the cache will do, as no newer one can be had: {}",
                install.version,
                first_line(&error)
            ));
            Ok(install)
        }
        None => Err(error),
    }
}

fn first_line(error: &FetchError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_string()
}

/// A folder to unpack into. Who holds the lock of a version may delete what a
/// fetch of it left that was killed.
fn new_stage(folder: &Path, version: &str) -> io::Result<tempfile::TempDir> {
    let prefix = format!(".fetching-{version}-");
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    tempfile::Builder::new().prefix(&prefix).tempdir_in(folder)
}

/// Puts the stage in its final place, over what an interrupted fetch left.
fn settle(stage: tempfile::TempDir, home: &Path) -> Result<(), FetchError> {
    archive::make_readable(stage.path()).map_err(|e| FetchError::io(stage.path(), e))?;
    if home.exists() {
        fs::remove_dir_all(home).map_err(|error| FetchError::io(home, error))?;
    }
    fs::rename(stage.keep(), home).map_err(|error| FetchError::io(home, error))
}

fn check_it_runs(install: &Install, args: &[String]) -> Result<String, FetchError> {
    let mut words = install.launcher.clone();
    words.push(install.server.display().to_string());
    words.extend_from_slice(args);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(install.env.iter().cloned());
    if let Some(says) = version_output(&mut command) {
        return Ok(says.lines().find(|line| !line.trim().is_empty()).unwrap_or("").to_string());
    }
    let reason = match command.output() {
        Ok(output) => client::tail(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => error.to_string(),
    };
    Err(FetchError::DoesNotRun { reason: format!("{}\n{reason}", words.join(" ")) })
}

#[cfg(test)]
mod tests;

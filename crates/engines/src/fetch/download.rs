//! Fetches a server into the cache.

use super::client::{self, Reporter};
use super::install::{Cache, Install, MANIFEST, cached_installs, version_output};
use super::job::{Job, Offer};
use super::recipes::{self, Source};
use super::{FetchError, Fetchable, archive, lock, version};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// What can be fetched, one entry per recipe.
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

/// Fetches the newest version of `engine` that has the leading parts of
/// `version`, and reports progress through `progress`.
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
    // The previous holder of the lock may have fetched it already.
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

/// Finds a source with a matching version. If a version is requested, the first
/// source that has one; otherwise the highest of all.
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
                // Another source may have it; if none does, the first error is
                // reported.
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
        // Of equal versions that of the first source: recipes are in order of
        // preference.
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

/// The highest matching version. Among equals the last one listed, which is its
/// latest packaging.
fn best<'a>(wanted: Option<&str>, offers: &'a [Offer]) -> Option<&'a Offer> {
    offers
        .iter()
        .filter(|offer| wanted.is_none_or(|wanted| version::matches(wanted, &offer.version)))
        .max_by(|a, b| version::compare(&a.version, &b.version))
}

/// Without network, a matching version in the cache is good enough.
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
                "using {engine} {} of the cache, because no newer version can be fetched: {}",
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

/// A folder to unpack into. The holder of a version's lock may delete what a
/// killed fetch of it has left.
fn new_stage(folder: &Path, version: &str) -> io::Result<tempfile::TempDir> {
    let prefix = format!(".fetching-{version}-");
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    tempfile::Builder::new().prefix(&prefix).tempdir_in(folder)
}

/// Moves the stage to its final path, replacing the rest of an interrupted
/// fetch.
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
#[path = "tests.rs"]
mod tests;

use super::*;

fn install(cache: &Cache, engine: &str, version: &str) -> Install {
    let home = cache.home(engine, version);
    fs::create_dir_all(&home).unwrap();
    let install = Install {
        engine: engine.into(),
        version: version.into(),
        source: "a test".into(),
        basedir: home,
        server: "/bin/sh".into(),
        launcher: Vec::new(),
        env: Vec::new(),
        init: None,
    };
    cache.store(&install).unwrap();
    install
}

fn offers(versions: &[(&str, &str)]) -> Vec<Offer> {
    let offer = |(version, token): &(&str, &str)| Offer {
        version: (*version).into(),
        token: (*token).into(),
    };
    versions.iter().map(offer).collect()
}

#[test]
fn an_exact_version_in_the_cache_needs_no_client() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let here = install(&cache, "postgres", "18.4");
    let mut lines = Vec::new();
    let found = fetch("postgres", Some("18.4"), &cache, &mut |line| lines.push(line.to_string()));
    assert_eq!(found.unwrap(), here);
    assert_eq!(lines, ["postgres 18.4 is in the cache"]);
}

#[test]
fn an_unknown_engine_lists_the_known_ones() {
    let cache = Cache::at("/nowhere");
    let error = fetch("oracle", None, &cache, &mut |_| {}).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Isolde has no recipe for oracle; it can fetch \
         postgres, mariadb, mysql, tidb, dolt, turso, duckdb"
    );
}

#[test]
fn the_latest_packaging_of_the_highest_version_is_taken() {
    let offers = offers(&[("18.9", "18.9.0"), ("18.10", "18.10.0"), ("18.10", "18.10.0-1")]);
    assert_eq!(best(Some("18"), &offers).unwrap().token, "18.10.0-1");
    assert_eq!(best(Some("18.9"), &offers).unwrap().token, "18.9.0");
    assert_eq!(best(Some("17"), &offers), None);
}

#[test]
fn a_cached_version_is_used_without_network() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let here = install(&cache, "postgres", "18.4");
    let offline =
        || FetchError::ClientFailed { command: "npm view".into(), tail: "no network".into() };
    let mut quiet = |_: &str| {};
    let mut report = Reporter { progress: &mut quiet };
    let found = cached_instead("postgres", Some("18"), &cache, &mut report, offline());
    assert_eq!(found.unwrap(), here);
    let error = cached_instead("postgres", Some("17"), &cache, &mut report, offline()).unwrap_err();
    assert!(error.to_string().contains("no network"));
}

#[test]
fn an_interrupted_fetch_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let home = cache.home("postgres", "18.4");
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::write(home.join("bin/half"), "").unwrap();
    assert_eq!(cache.load("postgres", "18.4"), None);

    let folder = cache.folder("postgres").unwrap();
    fs::create_dir_all(folder.join(".fetching-18.4-killed")).unwrap();
    fs::create_dir_all(folder.join(".fetching-18.40-at-work")).unwrap();
    let stage = new_stage(&folder, "18.4").unwrap();
    assert!(!folder.join(".fetching-18.4-killed").exists());
    assert!(folder.join(".fetching-18.40-at-work").exists());
    fs::write(stage.path().join("whole"), "").unwrap();
    settle(stage, &home).unwrap();
    let left: Vec<_> = fs::read_dir(&home).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["whole"]);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_server_that_does_not_run_is_not_called_ready() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::at(dir.path());
    let here = install(&cache, "dolt", "2.2.0");
    let args = |script: &str| vec!["-c".to_string(), script.to_string()];
    assert_eq!(check_it_runs(&here, &args("echo; echo version 2.2.0")).unwrap(), "version 2.2.0");
    let error = check_it_runs(&here, &args("echo no such library >&2; exit 127")).unwrap_err();
    assert!(error.to_string().contains("no such library"), "{error}");
}

#[test]
fn every_recipe_says_what_it_offers_and_through_which_client() {
    for line in fetchable() {
        assert!(!line.versions.is_empty() && !line.client.is_empty() && !line.note.is_empty());
    }
    let engines: Vec<&str> = fetchable().iter().map(|line| line.engine).collect();
    let mut sorted = engines.clone();
    sorted.dedup();
    assert_eq!(sorted.len(), 7, "the recipes of an engine stand together: {engines:?}");
}

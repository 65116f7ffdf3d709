//! No crate has a dependency cycle among its modules.
//!
//! In each folder the modules must have an order in which each one refers only
//! to earlier ones. References are `use` declarations and paths in the code
//! (`crate::…`, `super::…`, names of imported modules); re-exports are followed
//! to the module that defines the item. Code for tests does not count, nor do
//! references between a folder's `mod.rs` and the modules inside the folder.

mod cycles;
mod lexer;
mod modules;

use cycles::{Cycle, cycles, drawing, module_name};
use modules::Crate;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// TEMPORARY: folders that still have cycles, as (crate, module of the folder).
/// Delete an entry when its cycles are gone; an entry that is not needed fails
/// the test. The list must end up empty.
const KNOWN_CYCLES: &[(&str, &str)] = &[];

/// Modules that depend on each other by nature, as (crate, module of the
/// folder, modules of the cycle). Give the reason with each entry.
const RECURSIVE: &[(&str, &str, &[&str])] = &[];

/// Prints the graph of each crate; `--nocapture` shows it.
#[test]
fn modules_of_every_crate_have_no_dependency_cycles() {
    let mut found = Vec::new();
    let crates = crates();
    assert!(crates.len() > 5, "only {} crates were found", crates.len());
    for name in crates {
        for root in roots(&name) {
            let edges = Crate::read(&root, &read_source).edges();
            println!("{name}\n{}", drawing(&edges));
            found.extend(cycles(&edges).into_iter().map(|cycle| (name.clone(), cycle)));
        }
    }
    compare(&found, KNOWN_CYCLES, RECURSIVE).unwrap_or_else(|difference| panic!("{difference}"));
}

/// Compares the cycles of all crates with the two lists of exceptions: each
/// cycle must be in one of them, and each entry must be needed.
fn compare(
    found: &[(String, Cycle)],
    known: &[(&str, &str)],
    recursive: &[(&str, &str, &[&str])],
) -> Result<(), String> {
    let mut unexpected = Vec::new();
    let mut unneeded_folders: BTreeSet<_> = known.iter().collect();
    let mut unneeded_recursion: BTreeSet<_> = recursive.iter().collect();
    for (name, cycle) in found {
        let folder = module_name(&cycle.parent);
        let is_known = |(n, f): &&(&str, &str)| n == name && *f == folder;
        let is_recursive = |(n, f, members): &&(&str, &str, &[&str])| {
            n == name && *f == folder && cycle.members.iter().eq(*members)
        };
        if let Some(entry) = recursive.iter().find(is_recursive) {
            unneeded_recursion.remove(entry);
        } else if let Some(entry) = known.iter().find(is_known) {
            unneeded_folders.remove(entry);
        } else {
            unexpected.push(format!("{name}, {cycle}"));
        }
    }
    if !unexpected.is_empty() {
        return Err(format!("dependency cycles:\n{}", unexpected.join("\n")));
    }
    if !unneeded_folders.is_empty() || !unneeded_recursion.is_empty() {
        return Err(format!(
            "no such cycles any more; delete {unneeded_folders:?} from KNOWN_CYCLES and \
             {unneeded_recursion:?} from RECURSIVE"
        ));
    }
    Ok(())
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The text of a source file of the workspace.
fn read_source(path: &Path) -> Option<String> {
    std::fs::read_to_string(workspace().join(path)).ok()
}

/// The folders of the crates.
fn crates() -> Vec<String> {
    let entries = std::fs::read_dir(workspace().join("crates")).unwrap().flatten();
    let with_source = entries.filter(|entry| entry.path().join("src").is_dir());
    let mut names: Vec<String> =
        with_source.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The root files of a crate: its library and its programs.
fn roots(name: &str) -> Vec<PathBuf> {
    let source = Path::new("crates").join(name).join("src");
    let mut roots = vec![source.join("lib.rs"), source.join("main.rs")];
    let programs = std::fs::read_dir(workspace().join(&source).join("bin")).into_iter().flatten();
    roots.extend(programs.flatten().map(|entry| source.join("bin").join(entry.file_name())));
    roots.retain(|path| workspace().join(path).is_file());
    assert!(!roots.is_empty(), "no root in {}", source.display());
    roots
}

/// The cycles of a crate that is made of these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<Cycle> {
    let files: BTreeMap<PathBuf, &str> =
        files.iter().map(|(name, text)| (PathBuf::from("src").join(name), *text)).collect();
    let read = |path: &Path| files.get(path).map(|text| text.to_string());
    cycles(&Crate::read(Path::new("src/lib.rs"), &read).edges())
}

/// The same as text.
fn cycles_in(files: &[(&str, &str)]) -> Vec<String> {
    cycles_of(files).iter().map(Cycle::to_string).collect()
}

#[test]
fn a_crate_in_layers_has_no_cycle() {
    let files = [
        ("lib.rs", "pub mod a; pub mod b; pub use a::A; pub fn f() { b::g() }"),
        ("a.rs", "pub struct A; // use crate::b::B;\nconst TEXT: &str = \"crate::b::B\";"),
        ("b/mod.rs", "mod inner; mod outer; pub use outer::B; use crate::a::A; pub fn g() {}"),
        ("b/inner.rs", "use super::g; pub struct Inner(crate::A);"),
        ("b/outer.rs", "use super::inner::Inner; pub struct B(Inner);"),
    ];
    assert_eq!(cycles_in(&files), [""; 0]);
}

#[test]
fn a_cycle_is_shown_with_the_file_and_line_of_each_edge() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "\n\nuse crate::{b::B, std};\npub struct A(B);"),
        ("b.rs", "pub struct B;\nfn f() { super::c::g() }"),
        ("c.rs", "pub fn g() -> Option<crate::a::A> { None }"),
    ];
    let expected = "in crate: a -> b -> c -> a\n    \
        a -> b: src/a.rs:3: crate::b::B\n    \
        b -> c: src/b.rs:2: super::c::g\n    \
        c -> a: src/c.rs:1: crate::a::A";
    assert_eq!(cycles_in(&files), [expected]);
}

#[test]
fn siblings_inside_a_folder_form_a_cycle_too() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b; mod c;"),
        ("a/b.rs", "use super::c;\nfn f() { c::g() }"),
        ("a/c.rs", "mod deep; pub fn g() {}"),
        ("a/c/deep.rs", "use crate::a::b::*;"),
    ];
    let found = cycles_in(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("in crate::a: b -> c -> b\n"), "{found:?}");
    assert!(found[0].contains("src/a/c/deep.rs:1"), "{found:?}");
}

#[test]
fn a_cycle_through_a_re_export_is_found() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use b::B as Renamed;"),
        ("a.rs", "pub struct A(crate::Renamed);"),
        ("b.rs", "pub struct B(Vec<super::a::A>);"),
    ];
    assert_eq!(cycles_in(&files).len(), 1);
}

#[test]
fn a_cycle_through_a_glob_import_is_found() {
    let files = [
        ("lib.rs", "mod a; mod b; use b::B; fn helper() {}"),
        ("a.rs", "use super::*;\npub struct A(B);"),
        ("b.rs", "use crate::a::A;\npub struct B(Vec<A>);"),
    ];
    let found = cycles_in(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("src/a.rs:2: B"), "{found:?}");
}

#[test]
fn references_of_tests_do_not_count() {
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod samples;"),
        ("a.rs", "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
        ("b.rs", "use crate::a::A;\npub struct B(A);\n#[cfg(test)]\nmod tests;"),
    ];
    assert_eq!(cycles_in(&files), [""; 0]);
}

#[test]
fn inline_modules_are_modules() {
    let files = [(
        "lib.rs",
        "mod a { pub struct A(super::b::B); }\nmod b { use super::a::A; pub struct B(Vec<A>); }",
    )];
    let found = cycles_in(&files);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("b -> a: src/lib.rs:2"), "{found:?}");
}

#[test]
fn an_exception_is_accepted_only_while_it_is_needed() {
    let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b;"), ("b.rs", "use crate::a;")];
    let found: Vec<(String, Cycle)> =
        cycles_of(&files).into_iter().map(|cycle| ("some".to_string(), cycle)).collect();
    assert_eq!(compare(&found, &[("some", "crate")], &[]), Ok(()));
    assert_eq!(compare(&found, &[], &[("some", "crate", &["a", "b"])]), Ok(()));
    assert_eq!(compare(&[], &[], &[]), Ok(()));
    assert!(compare(&found, &[], &[]).is_err());
    assert!(compare(&found, &[("other", "crate")], &[]).is_err());
    assert!(compare(&found, &[], &[("some", "crate", &["a", "c"])]).is_err());
    assert!(compare(&[], &[("some", "crate")], &[]).is_err());
    assert!(compare(&[], &[], &[("some", "crate", &["a", "b"])]).is_err());
}

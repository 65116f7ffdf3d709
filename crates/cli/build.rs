//! Builds the library of cases into the program: generates a table of names and
//! texts, which `library.rs` includes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = PathBuf::from(manifest).join("cases");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut table = String::from("pub const BUILT_IN: &[(&str, &str)] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&root).expect("found below it").display();
        let _ = writeln!(table, "    ({:?}, include_str!({file:?})),", name.to_string());
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("built_in.rs");
    fs::write(out, table).expect("cargo's output folder is writable");
}

/// Adds the case files below a folder. Cargo runs the build script again when
/// the folder changes.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder).expect("a folder of cases").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "case") {
            files.push(path);
        }
    }
}

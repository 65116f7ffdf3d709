//! Code that `docs/add-an-engine.md` quotes is the code of the engine that it
//! describes.

use std::path::Path;

const SOURCES: [&str; 3] =
    ["catalog/src/engines/dolt.rs", "engines/src/mysql/dolt.rs", "engines/src/target.rs"];

/// The words of a piece of code, without comments: documents wrap it in their own
/// way.
fn words(code: &str) -> String {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<String>().split_whitespace().collect()
}

#[test]
fn quoted_code_is_the_code_of_the_engine() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let sources: Vec<String> = SOURCES.iter().map(|s| words(&read(&crates.join(s)))).collect();
    let page = read(&crates.join("../docs/add-an-engine.md"));
    let mut quoted = 0;
    for block in page.split("```rust\n").skip(1) {
        let code = block.split("```").next().unwrap();
        for part in code.trim().split("\n\n") {
            quoted += 1;
            let part = words(part);
            assert!(
                sources.iter().any(|s| s.contains(&part)),
                "not in the engine's files:\n{code}"
            );
        }
    }
    assert!(quoted >= 6, "{quoted} pieces of code");
}

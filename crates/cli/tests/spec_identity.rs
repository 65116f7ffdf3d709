//! Isolde's output for every spec in `specs/` against the output of the real
//! isolationtester on the same server, byte for byte.

use isolde_engines::engine::Engine;
use isolde_engines::spec::{self, Options};
use isolde_testing::program::{self, isolde, stdout};
use isolde_testing::servers;
use isolde_testing::tools::isolation_output;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After this time both cancel a step that is still blocked.
const STEP_LIMIT: Duration = Duration::from_secs(4);

/// Some specs have timeouts of the server in them. On a busy machine either
/// program may observe such a step too late, so a spec differs only if it does
/// so every time.
const ATTEMPTS: usize = 3;

fn specs() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs");
    let files = std::fs::read_dir(dir).unwrap().flatten().map(|f| f.path());
    let mut specs: Vec<PathBuf> =
        files.filter(|p| p.extension().is_some_and(|e| e == "spec")).collect();
    specs.sort();
    specs
}

fn ours(engine: &mut dyn Engine, name: &str, text: &str) -> String {
    let parsed = isolde_interop::spec::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut options = Options::new(name);
    options.step_limit = STEP_LIMIT;
    let mut output = String::new();
    spec::run(engine, &parsed, &options, &mut |piece| output.push_str(piece)).unwrap();
    output
}

#[test]
fn spec_output_equals_isolationtesters_byte_for_byte() {
    let Some(mut engine) = servers::open_engine("postgres") else { return };
    let Some(program) = servers::tool("isolationtester") else { return };
    let client = engine.client().expect("a server has an address");
    let chosen = std::env::var("ISOLDE_TEST_SPEC").unwrap_or_default();
    let mut different = Vec::new();
    let mut compared = 0;
    for path in specs().iter().filter(|p| p.to_string_lossy().contains(&chosen)) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let mut theirs = String::new();
        let equal = (0..ATTEMPTS).any(|_| {
            engine.clear().unwrap();
            engine.control("grant usage on schema public to public").unwrap();
            theirs = isolation_output(&program, &client, &text, &name, STEP_LIMIT);
            let own = ours(engine.as_mut(), &name, &text);
            if theirs != own {
                eprintln!("=== {name}: isolationtester\n{theirs}\n=== {name}: isolde\n{own}");
            }
            theirs == own
        });
        compared += 1;
        if !equal {
            different.push(name.clone());
        }
        // The same through the program, for specs with special output.
        if ["values", "empty-setup"].contains(&name.as_str()) {
            let printed = stdout(&isolde(&["spec", program::text(path)]));
            assert_eq!(printed, theirs, "{name} as it is printed");
        }
    }
    assert!(compared > 0, "no spec was compared");
    assert!(different.is_empty(), "{} of {compared} differ: {different:?}", different.len());
}

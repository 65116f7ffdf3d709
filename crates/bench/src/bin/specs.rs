//! How many runs of isolation specs the reference model decides.
//!
//! Each spec in a directory (PostgreSQL's own are in `src/test/isolation/specs` of
//! its source) is run in its first permutations and explained. The benchmark prints
//! the labels, the reasons for which runs are undecided, most frequent first, and
//! every run that is labelled a bug.

use isolde_bench::explained::{Explainer, reason};
use isolde_interop::script::case_of_spec;
use isolde_interop::spec;
use isolde_model::{Case, Verdict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// With two permutations of each spec, the runs take some minutes.
const PERMUTATIONS: usize = 2;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next();
    let target = arguments.next().unwrap_or_else(|| "postgres".into());
    let permutations = arguments.next().map_or(Ok(PERMUTATIONS), |a| a.parse());
    let (Some(dir), Ok(permutations)) = (dir, permutations) else {
        println!("Usage: bench/specs DIR [TARGET [PERMUTATIONS]]");
        return;
    };
    let mut explainer = Explainer::new(&target);
    let (mut labels, mut reasons) = (BTreeMap::new(), BTreeMap::<String, Vec<String>>::new());
    let mut unconverted = 0;
    for path in spec_files(Path::new(&dir)) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for permutation in 1..=permutations {
            let run = format!("{name} {permutation}");
            let case = match case_of(&path, &name, permutation) {
                Ok(case) => case,
                Err(why) if why.contains("there is no permutation") => break,
                Err(why) => {
                    println!("{run}: not converted: {why}");
                    unconverted += 1;
                    continue;
                }
            };
            let Some(account) = explainer.explain(&case, &run) else { continue };
            *labels.entry(account.label.name()).or_insert(0) += 1;
            let why = account.why.replace('\n', " ");
            println!("{run}: {}: {why}", account.label.name());
            match account.label {
                Verdict::Undecided => reasons.entry(reason(&account)).or_default().push(run),
                Verdict::Bug => println!("BUG: {run}"),
                Verdict::Consistent | Verdict::Documented | Verdict::Locking => {}
            }
        }
    }
    let runs: usize = labels.values().sum();
    let undecided = labels.get(Verdict::Undecided.name()).copied().unwrap_or_default();
    println!("\n{runs} runs, {} decided, {undecided} undecided", runs - undecided);
    println!("{unconverted} permutations are no case");
    labels.iter().for_each(|(label, count)| println!("{count:6} {label}"));
    let mut reasons: Vec<(String, Vec<String>)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, runs)| std::cmp::Reverse(runs.len()));
    println!("\nundecided because");
    reasons.iter().for_each(|(why, runs)| {
        println!("{:6} {why} [{}]", runs.len(), runs.join(", "));
    });
}

fn spec_files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|f| f.path());
    let mut specs: Vec<PathBuf> =
        files.filter(|f| f.extension().is_some_and(|e| e == "spec")).collect();
    specs.sort();
    specs
}

fn case_of(path: &Path, name: &str, permutation: usize) -> Result<Case, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let spec = spec::parse(&text).map_err(|e| e.to_string())?;
    case_of_spec(&spec, name, Some(permutation)).map_err(|e| e.in_text(&text).to_string())
}

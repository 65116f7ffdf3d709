//! Unites the output folders of shards: the same hunt, other case numbers.

use crate::finding::Finding;
use crate::folder::Folder;
use crate::summary::{Identity, Progress, Summary};
use crate::tally::Tally;
use std::fs;
use std::path::Path;

/// What of two hunts differs first; none when they are parts of one.
pub fn first_difference(a: &Identity, b: &Identity) -> Option<String> {
    let pairs = [
        ("version", a.version == b.version),
        ("seed", a.seed == b.seed),
        ("target", a.target == b.target),
        ("server_version", a.server_version == b.server_version),
        ("levels", a.levels == b.levels),
        ("oracles", a.oracles == b.oracles),
        ("options", a.options == b.options),
        ("settings", a.settings == b.settings),
    ];
    pairs.iter().find(|(_, same)| !same).map(|(name, _)| (*name).to_string())
}

/// Writes the union of `parts` to `out`, which must not be one of them.
pub fn merge(parts: &[&Path], out: &Path) -> Result<Summary, String> {
    let folders: Vec<Folder> = parts.iter().map(|p| Folder::open(p)).collect();
    let summaries: Vec<Summary> =
        folders.iter().map(Folder::read_summary).collect::<Result<_, _>>()?;
    let (Some(first), Some(first_path)) = (summaries.first(), parts.first()) else {
        return Err("nothing to merge".into());
    };
    let mut shards = Vec::new();
    for (summary, path) in summaries.iter().zip(parts) {
        if let Some(what) = first_difference(&first.identity, &summary.identity) {
            return Err(format!(
                "{} and {} are not parts of one hunt: their {what} differs",
                first_path.display(),
                path.display()
            ));
        }
        for shard in &summary.shards {
            if shards.contains(shard) {
                return Err(format!("shard {shard} is in {} and in another", path.display()));
            }
            shards.push(*shard);
        }
    }
    shards.sort();
    if let Some(odd) = shards.iter().find(|s| s.of != shards[0].of) {
        return Err(format!("shards {} and {odd} cut the cases in different ways", shards[0]));
    }
    let here = |p: &Path| fs::canonicalize(p).ok();
    if parts.iter().any(|p| here(p).is_some() && here(p) == here(out)) {
        return Err(format!("{} is one of the parts; name another --out", out.display()));
    }
    unite(&folders, &summaries, shards, out)
}

fn unite(
    folders: &[Folder],
    summaries: &[Summary],
    shards: Vec<crate::summary::Shard>,
    out: &Path,
) -> Result<Summary, String> {
    let target = Folder::create(out).map_err(|e| e.to_string())?;
    let mut tally = Tally::default();
    let mut progress = Progress::default();
    let (mut findings, mut documented) = (Vec::new(), Vec::new());
    for (folder, summary) in folders.iter().zip(summaries) {
        tally.merge(&summary.tally());
        progress.merge(&summary.progress);
        let found = folder.read_findings()?;
        for finding in &found {
            let from = folder.path().join("findings").join(&finding.id);
            copy_folder(&from, &out.join("findings").join(&finding.id))?;
        }
        findings.extend(found);
        documented.extend(folder.read_documented()?);
    }
    let by_number = |f: &Finding| f.case_number;
    findings.sort_by_key(by_number);
    documented.sort_by_key(by_number);
    for finding in &findings {
        target.note_finding(finding).map_err(|e| e.to_string())?;
    }
    for finding in &documented {
        target.note_documented(finding).map_err(|e| e.to_string())?;
    }
    target.forget_current();
    // Shards run beside each other: the longest is what one waits for.
    let seconds = summaries.iter().map(|s| s.seconds).fold(0.0, f64::max);
    let identity = summaries[0].identity.clone();
    let summary = Summary::new(identity, shards, &tally, seconds, progress);
    target.write_summary(&summary).map_err(|e| e.to_string())?;
    Ok(summary)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(failed)?;
    }
    Ok(())
}

//! Merges the output folders of the shards of one hunt.

use super::files;
use super::finding_folder::is_folder_name;
use super::folder::Folder;
use super::summary::{Progress, Summary};
use super::tally::Tally;
use crate::error::{HuntError, at};
use crate::finding::Finding;
use crate::finding::KnownBug;
use crate::shard::Shard;
use std::fs;
use std::path::Path;

/// Merges `parts` into `out`, which must not be one of them.
pub fn merge(parts: &[&Path], out: &Path) -> Result<Summary, HuntError> {
    let folders: Vec<Folder> = parts.iter().map(|p| Folder::open(p)).collect();
    let summaries: Vec<Summary> =
        folders.iter().map(Folder::read_summary).collect::<Result<_, _>>()?;
    let (Some(first), Some(first_path)) = (summaries.first(), parts.first()) else {
        return Err(HuntError::NothingToMerge);
    };
    let mut shards: Vec<(Shard, &Path)> = Vec::new();
    for (summary, path) in summaries.iter().zip(parts) {
        if let Some(what) = first.identity.first_difference(&summary.identity) {
            let (a, b) = (first_path.into(), path.into());
            return Err(HuntError::NotOneHunt { a, b, what: Box::new(what) });
        }
        for shard in &summary.shards {
            if let Some((_, other)) = shards.iter().find(|(s, _)| s == shard) {
                let (a, b) = (other.into(), path.into());
                return Err(HuntError::ShardTwice { shard: *shard, a, b });
            }
            shards.push((*shard, path));
        }
    }
    let mut shards: Vec<Shard> = shards.into_iter().map(|(shard, _)| shard).collect();
    shards.sort();
    if let Some(odd) = shards.iter().find(|s| s.of != shards[0].of) {
        return Err(HuntError::ShardsUnlike(shards[0], *odd));
    }
    if let Some(part) = parts.iter().find(|p| overlap(p, out)) {
        return Err(HuntError::OutputIsPart { out: out.into(), part: part.into() });
    }
    Folder::check(out)?;
    write_merged(&folders, &summaries, shards, out)
}

/// Whether two folders are the same or one contains the other: a folder that is moved aside to make
/// room for the result must not contain a part.
pub fn overlap(part: &Path, out: &Path) -> bool {
    let here = |p: &Path| fs::canonicalize(p);
    match (here(part), here(out)) {
        (Ok(part), Ok(out)) => part.starts_with(&out) || out.starts_with(&part),
        _ => false,
    }
}

/// Writes the merged folder.
fn write_merged(
    folders: &[Folder],
    summaries: &[Summary],
    shards: Vec<Shard>,
    out: &Path,
) -> Result<Summary, HuntError> {
    let mut tally = Tally::default();
    let mut progress = Progress::default();
    // The counts of the finished blocks, in case the merged hunt is resumed.
    let mut done = Tally::default();
    let (mut findings, mut documented) = (Vec::new(), Vec::new());
    let mut copies = Vec::new();
    // All parts are read before the first file is written or replaced.
    for (folder, summary) in folders.iter().zip(summaries) {
        tally.merge(&summary.tally());
        progress.merge(&summary.progress);
        match &summary.progress.done {
            Some(counted) => done.merge(counted),
            None => done.merge(&summary.tally()),
        }
        let found = folder.read_findings()?;
        for finding in &found {
            // Parts come from other machines; an id must not lead elsewhere.
            if !is_folder_name(&finding.id) {
                let (folder, id) = (folder.path().into(), finding.id.clone());
                return Err(HuntError::NotAFinding { folder, id });
            }
            copies.push((folder.path().join("findings").join(&finding.id), finding.id.clone()));
        }
        findings.extend(found);
        documented.extend(folder.read_documented()?);
    }
    progress.done = (done != tally).then_some(done);
    let target = Folder::create(out)?;
    for (from, id) in &copies {
        // If a folder is lost, only its evidence is missing, which the report shows.
        if from.is_dir() {
            at(from, files::copy_all(from, &target.path().join("findings").join(id)))?;
        }
    }
    let by_number = |f: &Finding| f.case_number;
    findings.sort_by_key(by_number);
    documented.sort_by_key(by_number);
    for finding in &findings {
        target.note_finding(finding)?;
    }
    for finding in &documented {
        target.note_documented(finding)?;
    }
    let mut known: Vec<KnownBug> = Vec::new();
    for bug in folders.iter().flat_map(|folder| folder.read_known()) {
        if !known.contains(&bug) {
            known.push(bug);
        }
    }
    target.write_known(&known)?;
    target.forget_current();
    // Shards run at the same time, so the duration is that of the longest.
    let seconds = summaries.iter().map(|s| s.seconds).fold(0.0, f64::max);
    let identity = summaries[0].identity.clone();
    let summary = Summary::new(identity, shards, &tally, seconds, progress);
    target.write_summary(&summary)?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::finding_folder;
    use crate::samples::{made, summary};
    use isolde_model::Verdict;
    use std::path::PathBuf;

    /// The folder of a shard with one finding per number.
    fn part(dir: &Path, name: &str, seed: u64, shard: (u64, u64), numbers: &[u64]) -> PathBuf {
        let path = dir.join(name);
        let folder = Folder::create(&path).unwrap();
        for number in numbers {
            folder.write(&made(*number, "wait", Verdict::Bug, &format!("kind {number}"))).unwrap();
        }
        let shard = Shard { part: shard.0, of: shard.1 };
        let mut summary = summary(seed, shard, numbers.len() as u64);
        summary.signatures = numbers.iter().map(|n| format!("kind {n}")).collect();
        summary.progress.blocks = vec![(shard.part - 1, shard.part - 1)];
        folder.write_summary(&summary).unwrap();
        path
    }

    #[test]
    fn a_merged_hunt_has_every_finding_and_the_sums_of_the_counts() {
        let dir = tempfile::tempdir().unwrap();
        let a = part(dir.path(), "a", 7, (2, 3), &[30, 41]);
        let b = part(dir.path(), "b", 7, (1, 3), &[5]);
        let out = dir.path().join("out");
        let merged = merge(&[&a, &b], &out).unwrap();
        assert_eq!((merged.violations.bug, merged.violations.documented), (3, 2));
        assert_eq!((merged.cases, merged.distinct), (2 * 18_204, 3));
        assert_eq!(merged.progress.blocks, [(0, 1)]);
        assert!(
            (merged.valid_share - 0.9735).abs() < 0.001 && (merged.seconds - 61.3).abs() < 1e-9
        );
        let folder = Folder::open(&out);
        assert_eq!(folder.read_summary().unwrap(), merged);
        let numbers: Vec<u64> =
            folder.read_findings().unwrap().iter().map(|f| f.case_number).collect();
        assert_eq!(numbers, [5, 30, 41]);
        let copied = fs::read(out.join("findings/000041/concurrent.json")).unwrap();
        assert_eq!(copied, fs::read(a.join("findings/000041/concurrent.json")).unwrap());
        let shards = |folder: &Path| {
            let all = Folder::open(folder).read_summary().unwrap().shards;
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(shards(&out), ["1/3", "2/3"]);
        // A merged hunt is a part like any other: further shards may come later.
        let late = part(dir.path(), "late", 7, (3, 3), &[6]);
        let whole = dir.path().join("whole");
        assert_eq!(merge(&[&out, &late], &whole).unwrap().violations.bug, 4);
        assert_eq!(shards(&whole), ["1/3", "2/3", "3/3"]);
    }

    #[test]
    fn parts_of_other_hunts_and_overlapping_shards_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let a = part(dir.path(), "a", 7, (1, 2), &[]);
        let refused = |other: &Path| {
            let said = merge(&[&a, other], &out).unwrap_err().to_string();
            assert!(!out.exists(), "nothing is written");
            said
        };
        let other_seed = part(dir.path(), "seed", 8, (2, 2), &[]);
        assert!(refused(&other_seed).contains("their seed differs"));
        let again = part(dir.path(), "again", 7, (1, 2), &[]);
        let said = refused(&again);
        assert!(said.contains("shard 1/2 is in") && said.contains("/again"), "{said}");
        assert!(refused(&a).contains("shard 1/2"));
        let otherwise = part(dir.path(), "otherwise", 7, (3, 4), &[]);
        assert!(refused(&otherwise).contains("divide the cases in different ways"));
        let version = part(dir.path(), "version", 7, (2, 2), &[]);
        let mut summary = Folder::open(&version).read_summary().unwrap();
        summary.identity.server_version = "11.4.5".into();
        Folder::open(&version).write_summary(&summary).unwrap();
        assert!(refused(&version).contains("server_version differs"));
        assert!(refused(&dir.path().join("none")).contains("hunt.json"));
        assert!(merge(&[&a], &a).unwrap_err().to_string().contains("is the part"));
    }

    #[test]
    fn a_damaged_part_changes_nothing_and_a_lost_folder_loses_only_its_evidence() {
        let dir = tempfile::tempdir().unwrap();
        let a = part(dir.path(), "a", 7, (1, 2), &[1, 2]);
        let b = part(dir.path(), "b", 7, (2, 2), &[3]);
        let out = part(dir.path(), "out", 9, (1, 1), &[8]);
        fs::remove_dir_all(a.join("findings/000001")).unwrap();
        fs::write(b.join("findings.jsonl"), "{}\n{}\n").unwrap();
        assert!(merge(&[&a, &b], &out).unwrap_err().to_string().contains("findings.jsonl: line 1"));
        let mut evil = made(4, "wait", Verdict::Bug, "x").finding;
        evil.id = "../../evil".into();
        fs::write(b.join("findings.jsonl"), serde_json::to_string(&evil).unwrap() + "\n").unwrap();
        assert!(
            merge(&[&a, &b], &out).unwrap_err().to_string().contains("not the name of a finding")
        );
        assert!(out.join("findings/000008").is_dir(), "the older hunt is still there");
        fs::remove_file(b.join("findings.jsonl")).unwrap();
        merge(&[&a, &b], &out).unwrap();
        assert!(out.join("findings/000003").is_dir(), "rebuilt from its folder");
        assert!(!out.join("findings/000008").exists() && out.join("findings/000002").is_dir());
        assert!(dir.path().join("out.old/findings/000008").is_dir(), "moved aside, not deleted");
        let lost = finding_folder::read(&out, "000001").err().unwrap();
        assert_eq!(lost.to_string(), "the folder findings/000001 is missing");
        assert!(finding_folder::read(&out, "000003").is_ok());
    }
}

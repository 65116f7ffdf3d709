//! Suggestions after a hunt: continue it, replay a finding, or hunt elsewhere.
//! Only commands that work on this machine are suggested.

use super::request::HuntRequest;
use crate::commands::context::Context;
use crate::interrupt;
use crate::shell::{own_name, shell_word};
use isolde_engines::fetch::install;
use isolde_engines::target::Target;
use isolde_hunt::cause::Verdict;
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::Summary;
use std::path::Path;

/// A command and what it is for.
type Step = (String, String);

pub fn show(
    context: &Context<'_>,
    request: &HuntRequest,
    folder: &Folder,
    summary: &Summary,
    findings: &[Finding],
) {
    let isolde = own_name();
    let found = findings.iter().filter(|f| f.cause.label != Verdict::Documented);
    let first = found.min_by_key(|f| (f.cause.label, f.case_number));
    let steps = if interrupt::is_requested() {
        let command = resume(&isolde, &summary.identity.target, folder.path());
        vec![(command, "continue this hunt".into())]
    } else if let Some(finding) = first {
        let case = folder.path().join("findings").join(&finding.id).join("case.case");
        let command = format!("{isolde} replay {}", shell_word(&case.display().to_string()));
        vec![(command, "does it still happen?".into())]
    } else {
        other_hunts(context, request, &isolde)
    };
    context.console.comment("Next:");
    let width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, what) in steps {
        context.console.comment(&format!("  {command:width$}   {what}"));
    }
}

/// The command that continues a hunt. hunt.json has its options, except for
/// passwords.
fn resume(isolde: &str, target: &str, out: &Path) -> String {
    let mut words = vec![format!("{isolde} hunt")];
    if target.contains(":***@") {
        words.push(shell_word(target));
    }
    words.push("--resume".into());
    if out != Path::new("isolde.out") {
        words.push(format!("--out {}", shell_word(&out.display().to_string())));
    }
    words.join(" ")
}

fn without_password(word: &str) -> String {
    match Target::parse(word) {
        Ok(Target::Url(url)) if url.password.is_some() => url.to_string(),
        _ => word.into(),
    }
}

fn other_hunts(context: &Context<'_>, request: &HuntRequest, isolde: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    if request.fault.is_none() {
        let target = shell_word(&without_password(&request.target));
        let command = format!("{isolde} hunt {target} --fault row-skipped");
        steps.push((command, "plant a fault and see it detected".into()));
    }
    let cached = install::cached_installs(&context.options.cache);
    let machine = install::machine_installs();
    let turso = cached.iter().any(|i| i.engine == "turso");
    let hunt = format!("{isolde} hunt turso+mvcc");
    steps.push(match turso {
        true => (hunt, "a young engine, already in the cache".into()),
        false => {
            let command = format!("{isolde} fetch turso && {hunt}");
            (command, "a young engine, fetched first".into())
        }
    });
    let mut named: Vec<&str> = Vec::new();
    for found in machine.iter().chain(&cached) {
        if !named.contains(&found.engine.as_str()) && !request.target.starts_with(&found.engine) {
            named.push(&found.engine);
            if found.engine != "turso" {
                let command = format!("{isolde} hunt {} -j 2 --time 5m", found.engine);
                steps.push((command, format!("{} {}", found.engine, found.version)));
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resume_names_the_folder_and_a_target_with_a_password() {
        let command = |target: &str, out: &str| resume("isolde", target, Path::new(out));
        assert_eq!(command("sqlite", "isolde.out"), "isolde hunt --resume");
        assert_eq!(command("postgres@18", "a$b"), "isolde hunt --resume --out 'a$b'");
        let url = command("postgres://me:***@h/", "new");
        assert_eq!(url, "isolde hunt 'postgres://me:***@h/' --resume --out new");
    }
}

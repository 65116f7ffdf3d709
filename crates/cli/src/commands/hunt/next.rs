//! What to try after a hunt: go on with it, see whether a finding still
//! happens, or hunt elsewhere. Only what works on this machine is named.

use super::super::Context;
use crate::hunt_args::HuntArgs;
use isolde_engines::install;
use isolde_engines::target::Target;
use isolde_hunt::cause::Label;
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::Summary;

/// A command and what it is for.
type Step = (String, String);

pub fn show(
    context: &Context<'_>,
    args: &HuntArgs,
    folder: &Folder,
    summary: &Summary,
    findings: &[Finding],
) {
    let found = findings.iter().filter(|f| f.cause.label != Label::Documented);
    let first = found.min_by_key(|f| (f.cause.label, f.case_number));
    let steps = if crate::interrupt::asked() {
        let typed: Vec<String> = std::env::args().skip(1).collect();
        vec![(resume(&typed, summary.identity.seed), "go on with this hunt".into())]
    } else if let Some(finding) = first {
        let case = folder.path().join("findings").join(&finding.id).join("case.case");
        let command = format!("isolde replay {}", quoted(&case.display().to_string()));
        vec![(command, "does it still happen?".into())]
    } else {
        elsewhere(context, args)
    };
    context.console.say("try next:");
    let width = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
    for (command, what) in steps {
        context.console.say(&format!("  {command:width$}   {what}"));
    }
}

/// The command line again, without a password and with what a hunt chose by
/// itself.
fn resume(typed: &[String], seed: u64) -> String {
    let given = |option: &str| {
        typed.iter().any(|word| word == option || word.starts_with(&format!("{option}=")))
    };
    let mut words: Vec<String> = typed.iter().map(|word| quoted(&without_password(word))).collect();
    if !given("--seed") {
        words.push(format!("--seed {seed}"));
    }
    if !given("--resume") {
        words.push("--resume".into());
    }
    format!("isolde {}", words.join(" "))
}

fn without_password(word: &str) -> String {
    match Target::parse(word) {
        Ok(Target::Url(url)) if url.password.is_some() => url.to_string(),
        _ => word.into(),
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn elsewhere(context: &Context<'_>, args: &HuntArgs) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    if args.fault.is_none() {
        let target = quoted(&without_password(&args.target));
        let command = format!("isolde hunt {target} --fault row-skipped");
        steps.push((command, "plant a fault and see it caught".into()));
    }
    let cached = install::cached_installs(&context.options.cache);
    let machine = install::machine_installs();
    let turso = cached.iter().any(|i| i.engine == "turso");
    let (command, what) = if turso {
        ("isolde hunt turso+mvcc", "a young engine, in Isolde's cache")
    } else {
        ("isolde fetch turso && isolde hunt turso+mvcc", "a young engine that Isolde can fetch")
    };
    steps.push((command.into(), what.into()));
    let mut named: Vec<&str> = Vec::new();
    for found in machine.iter().chain(&cached) {
        if !named.contains(&found.engine.as_str()) && !args.target.starts_with(&found.engine) {
            named.push(&found.engine);
            if found.engine != "turso" {
                let command = format!("isolde hunt {} -j 2 --time 5m", found.engine);
                steps.push((command, format!("{} {}", found.engine, found.version)));
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resumed(typed: &str) -> String {
        let words: Vec<String> = typed.split(' ').map(str::to_string).collect();
        resume(&words, 7)
    }

    #[test]
    fn a_hunt_goes_on_with_the_words_it_was_started_with() {
        assert_eq!(
            resumed("hunt postgres -j 2 --time 10m"),
            "isolde hunt postgres -j 2 --time 10m --seed 7 --resume"
        );
        let whole = "hunt --seed=3 --cases 900 --resume --out new";
        assert_eq!(resumed(whole), format!("isolde {whole}"));
    }

    #[test]
    fn a_password_is_not_repeated_and_a_shell_gets_whole_words() {
        let said = resumed("hunt postgres://me:s3cret@h/ --seed 1 --out a$b");
        assert!(!said.contains("s3cret") && said.contains("--out 'a$b'"), "{said}");
    }
}

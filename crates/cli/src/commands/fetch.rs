//! `isolde fetch`: downloads servers into the cache with package managers.

use super::Outcome;
use super::context::Context;
use crate::args::fetch::FetchArgs;
use crate::exit_code::{ExitCode, Failure};
use isolde_engines::fetch;
use isolde_engines::target::{NamedEngine, Target};

pub fn run(context: &Context<'_>, args: &FetchArgs) -> Outcome {
    let wanted: Result<Vec<NamedEngine>, Failure> =
        args.engines.iter().map(|t| named(context, t)).collect();
    let mut worst = ExitCode::Success;
    let mut fetched = Vec::new();
    for name in wanted? {
        let version = name.version.as_deref();
        let mut progress = |line: &str| context.console.note(line);
        match fetch::fetch(&name.engine, version, &context.options.cache, &mut progress) {
            Ok(install) => {
                let line = format!(
                    "{} {} is ready: {} (from {})",
                    install.engine,
                    install.version,
                    install.server.display(),
                    install.source
                );
                if !context.json {
                    context.console.print(&line);
                }
                fetched.push(install);
            }
            Err(error) => {
                context.console.error(&format!("{name}: {error}"));
                worst = worst.worse(ExitCode::Unreachable);
            }
        }
    }
    if context.json {
        context.console.print(&serde_json::json!({ "fetched": fetched }).to_string());
    }
    Ok(worst)
}

fn named(context: &Context<'_>, text: &str) -> Result<NamedEngine, Failure> {
    match context.parse_target(text)? {
        Target::Named(named) => Ok(named),
        other => Err(Failure::new(
            ExitCode::Usage,
            format!("{other} cannot be fetched; name an engine and a version, such as postgres@18"),
        )),
    }
}

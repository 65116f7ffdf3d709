//! The arguments of `isolde list`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct ListArgs {
    /// Only cases whose id or title matches.
    #[arg(value_name = "REGEX")]
    pub regex: Option<String>,
    /// Print the table of bugs, versions and levels as Markdown.
    #[arg(long)]
    pub markdown: bool,
    /// Print the rules of the engines instead, as Markdown.
    #[arg(long, conflicts_with_all = ["regex", "markdown", "cases"])]
    pub rules: bool,
    /// Print the forms of SQL that hunts generate instead, with the engines that have each.
    #[arg(long, conflicts_with_all = ["regex", "markdown", "cases", "rules"])]
    pub forms: bool,
    /// Print what Isolde knows about an engine instead, as JSON: features, capabilities and
    /// concurrency models, in the form in which a driver describes its database.
    #[arg(long, value_name = "ENGINE@VERSION", conflicts_with_all = ["regex", "markdown", "cases", "rules"])]
    pub engine: Option<String>,
    /// Folder of the library [default: ./cases if it exists, else the built-in library]
    #[arg(long, value_name = "DIR")]
    pub cases: Option<PathBuf>,
}

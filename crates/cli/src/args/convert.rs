//! The arguments of `isolde convert`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args)]
pub struct ConvertArgs {
    /// The file to convert, - for stdin, or the folder of a finding.
    #[arg(value_name = "FILE|FOLDER")]
    pub file: PathBuf,
    /// The format to write.
    #[arg(long, value_name = "FORMAT")]
    pub to: OutputFormat,
    /// The format of the file [default: detected from its name and content]
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<InputFormat>,
    /// Which permutation of a spec to convert, counted from 1.
    #[arg(long, value_name = "N")]
    pub permutation: Option<usize>,
    /// A recorded run of the case, as written by `isolde replay --json`: its results, errors and
    /// lock waits are included in the output.
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Isolde's case format.
    Case,
    /// PostgreSQL isolation spec.
    Spec,
    /// mysqltest script.
    Mtr,
    /// Annotated SQL for the engine's own client.
    Sql,
    /// Output of isolationtester for the spec of a recorded run.
    SpecOut,
    /// Result file of the mysqltest script of a recorded run.
    MtrResult,
    /// Python program for SQLite, DuckDB or Turso, from a recorded run.
    Python,
    /// Bug report in Markdown, from a recorded run.
    Report,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// Isolde's case format.
    Case,
    /// PostgreSQL isolation spec.
    Spec,
    /// mysqltest script.
    Mtr,
    /// Lines such as `conn_0> SQL;`.
    Replbug,
}

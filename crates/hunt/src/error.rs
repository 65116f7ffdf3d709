//! The errors of a hunt. Callers decide by the variant; the text is for people.

use crate::layout::MARKER;
use crate::run::FailedRun;
use crate::shard::Shard;
use isolde_engines::engine::EngineError;
use isolde_engines::runner::RunError;
use isolde_model::history::DbError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a hunt, or a command on the output of one, cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum HuntError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine rejects the schema or the rows of this case.
    #[error("{error}\n  {sql}")]
    Fixture { sql: String, error: DbError },
    /// The server failed in a run that was meant to show something else.
    #[error("the server failed {}", .0.moment)]
    ServerFailure(Box<FailedRun>),

    /// A file of the output folder cannot be accessed.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("there is no hunt to resume in {}: it has no hunt.json", .0.display())]
    NoHunt(PathBuf),
    #[error("{} is a symbolic link; name the folder itself", .0.display())]
    OutputIsLink(PathBuf),
    #[error("{} is a file; the output of a hunt is a folder", .0.display())]
    OutputIsFile(PathBuf),
    #[error("{} is the root of the file system; name a folder in it", .0.display())]
    OutputIsRoot(PathBuf),
    #[error("{} is not a plain file", .0.display())]
    MarkerNotPlain(PathBuf),
    #[error(
        "{} is not empty, and has no file {} that marks it as the output of a hunt; name another \
         folder",
        .0.display(), MARKER
    )]
    NotEmpty(PathBuf),
    #[error(
        "{} is a symbolic link, which Isolde does not create; its target could be overwritten",
        .0.display()
    )]
    LinkInside(PathBuf),
    #[error(
        "another isolde{} is writing to {}; wait for it, or name another --out",
        process.as_ref().map_or(String::new(), |number| format!(" (process {number})")),
        path.display()
    )]
    Busy { path: PathBuf, process: Option<String> },
    #[error(
        "{} holds an earlier hunt that cannot be moved aside under this name; name another folder",
        .0.display()
    )]
    NoNameToMove(PathBuf),
    #[error("{}: all names that it could be moved to are in use", .0.display())]
    AllNamesTaken(PathBuf),
    #[error(
        "{} holds an earlier hunt that cannot be moved to {}: {error}; name another folder",
        from.display(), to.display()
    )]
    NotMoved { from: PathBuf, to: PathBuf, error: io::Error },
    #[error(
        "{} is the part {}, contains it, or is inside of it; name another --out",
        out.display(), part.display()
    )]
    OutputIsPart { out: PathBuf, part: PathBuf },

    /// A file that was to be read is missing, damaged, or not written by a hunt.
    #[error("{}: {why}", file.display())]
    Unusable { file: PathBuf, why: Damage },
    #[error("there is nothing to merge")]
    NothingToMerge,
    #[error("{} and {} are not parts of one hunt: their {what}", a.display(), b.display())]
    NotOneHunt { a: PathBuf, b: PathBuf, what: Box<IdentityDifference> },
    #[error(
        "{} holds another hunt: its {what}; omit the options that hunt.json has, or name another --out",
        path.display()
    )]
    AnotherHunt { path: PathBuf, what: Box<IdentityDifference> },
    #[error("shard {shard} is in {} and in {}", a.display(), b.display())]
    ShardTwice { shard: Shard, a: PathBuf, b: PathBuf },
    #[error("shards {0} and {1} divide the cases in different ways")]
    ShardsUnlike(Shard, Shard),
    #[error("{}: `{id}` is not the name of a finding", folder.display())]
    NotAFinding { folder: PathBuf, id: String },
    #[error("line {line}: `{text}` is not a signature; findings.jsonl has those of a hunt")]
    NotASignature { line: usize, text: String },
    #[error(
        "{}: neither the folder of a finding (it has no finding.json) nor the output of a hunt (no \
         hunt.json)", .0.display()
    )]
    NoFindings(PathBuf),
    /// The message of [`isolde_oracles::find`].
    #[error("{0}")]
    NoSuchOracle(String),

    #[error("`{0}` is not the name of a finding's folder")]
    NotAFolderName(String),
    #[error("the folder findings/{0} is missing")]
    FolderMissing(String),
    /// A file is missing in the folder of a finding.
    #[error("{0} is missing")]
    RunMissing(&'static str),
    #[error("{name}: {error}")]
    RunUnreadable { name: &'static str, error: io::Error },
    #[error("{name} is damaged: {why}")]
    RunDamaged { name: &'static str, why: Damage },
}

/// The reason that a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("its case cannot be read: {0}")]
    Case(String),
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error("the file does not exist")]
    Missing,
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    #[error("line {line}: {error}")]
    Line { line: usize, error: serde_json::Error },
    /// A damaged line whose finding has no folder either.
    #[error("line {line}: {error}, and findings/ has no folder for it")]
    LostLine { line: usize, error: serde_json::Error },
    #[error("{name}: {number} is more than any hunt counts")]
    TooLarge { name: String, number: serde_json::Number },
    #[error("shards: the list is empty")]
    NoShards,
    #[error("shards: {0} is not a shard")]
    NoSuchShard(Shard),
    #[error("{seconds} seconds and a valid share of {share} are impossible")]
    NoSuchShare { seconds: f64, share: f64 },
    #[error("progress: the ranges of blocks are not in order")]
    BlocksNotInOrder,
    #[error("event {event} refers to step {step} of {steps}")]
    NoSuchStep { event: usize, step: usize, steps: usize },
    #[error("event {event} ends transaction {transaction}, which does not exist")]
    NoSuchTransaction { event: usize, transaction: usize },
    #[error("transaction {0} begins at a step that does not exist")]
    BeginsNowhere(usize),
}

/// A setting in which two hunts differ.
#[derive(Debug, PartialEq, Eq)]
pub struct IdentityDifference {
    pub name: String,
    pub there: Option<String>,
    pub here: Option<String>,
}

impl fmt::Display for IdentityDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "not set".into());
        write!(f, "{} differs: {} there, {} here", self.name, value(&self.there), value(&self.here))
    }
}

impl From<EngineError> for HuntError {
    fn from(error: EngineError) -> HuntError {
        HuntError::Run(RunError::Engine(error))
    }
}

/// Adds the path to an error of the file system.
pub(crate) fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, HuntError> {
    result.map_err(|error| HuntError::Io { path: path.into(), error })
}

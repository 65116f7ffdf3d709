//! What can go wrong, in one list: whoever calls tells by the variant what to
//! do, and the text is for people.

use crate::executor::Broke;
use crate::summary::{MOST_SHARDS, Shard};
use isolde_core::history::DbError;
use isolde_engines::engine::EngineError;
use isolde_engines::runner::RunError;
use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum HuntError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine does not take the schema or the rows of this case.
    #[error("{error}\n  {sql}")]
    Fixture { sql: String, error: DbError },
    /// The engine broke in a run that was about something else.
    #[error("the engine broke {}", .0.moment)]
    Broke(Box<Broke>),

    /// A file of the output folder can be neither written nor looked at.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("there is no hunt in {}: there is no hunt.json to go on with", .0.display())]
    NoHunt(PathBuf),
    #[error("{} is a symbolic link; name the folder itself", .0.display())]
    OutputIsLink(PathBuf),
    #[error("{} is a file; the output of a hunt is a folder", .0.display())]
    OutputIsFile(PathBuf),
    #[error("{} is the root of all files; name a folder in it", .0.display())]
    OutputIsRoot(PathBuf),
    #[error("{} is no plain file", .0.display())]
    MarkerNotPlain(PathBuf),
    #[error(
        "{} is not empty, and no file {} in it says that it is the output of a hunt; name \
         another folder",
        .0.display(), crate::claim::MARKER
    )]
    NotEmpty(PathBuf),
    #[error(
        "{} is a symbolic link, and Isolde made none; what it points to could be overwritten",
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
        "{} holds an earlier hunt, and under this name it cannot be moved aside; name another \
         folder",
        .0.display()
    )]
    NoNameToMove(PathBuf),
    #[error("{}: all names to move it to are taken", .0.display())]
    AllNamesTaken(PathBuf),
    #[error(
        "{} holds an earlier hunt that cannot be moved to {}: {error}; name another folder",
        from.display(), to.display()
    )]
    NotMoved { from: PathBuf, to: PathBuf, error: io::Error },
    #[error(
        "{} is the part {}, or holds it, or is in it; name another --out",
        out.display(), part.display()
    )]
    OutputIsPart { out: PathBuf, part: PathBuf },

    /// A file that was to be read is missing, damaged, or no hunt's.
    #[error("{}: {why}", file.display())]
    Unusable { file: PathBuf, why: Damage },
    #[error("there is nothing to merge")]
    NothingToMerge,
    #[error("{} and {} are not parts of one hunt: their {what}", a.display(), b.display())]
    NotOneHunt { a: PathBuf, b: PathBuf, what: Box<Unlike> },
    #[error(
        "{} holds another hunt: its {what}; leave out what hunt.json knows, or name another --out",
        path.display()
    )]
    AnotherHunt { path: PathBuf, what: Box<Unlike> },
    #[error("shard {shard} is in {} and in {}", a.display(), b.display())]
    ShardTwice { shard: Shard, a: PathBuf, b: PathBuf },
    #[error("shards {0} and {1} cut the cases in different ways")]
    ShardsUnlike(Shard, Shard),
    #[error(
        "`{0}` is not a shard; write K/N with K from 1 to N, such as 1/4, and N at most {MOST_SHARDS}"
    )]
    NotAShard(String),
    #[error("{}: `{id}` is not the name of a finding", folder.display())]
    NotAFinding { folder: PathBuf, id: String },
    #[error("line {line}: `{text}` is no signature; those of a hunt are in findings.jsonl")]
    NotASignature { line: usize, text: String },
    #[error(
        "{}: neither the folder of a finding (there is no finding.json) nor the output of a hunt \
         (no hunt.json)", .0.display()
    )]
    NoFindings(PathBuf),
    /// In the words of [`isolde_core::oracle::find`].
    #[error("{0}")]
    NoSuchOracle(String),

    #[error("`{0}` is not the name of a finding's folder")]
    NotAFolderName(String),
    #[error("the folder findings/{0} is missing")]
    FolderMissing(String),
    /// A file in the folder of a finding, by its name.
    #[error("{0} is missing")]
    RunMissing(&'static str),
    #[error("{name}: {error}")]
    RunUnreadable { name: &'static str, error: io::Error },
    #[error("{name} is damaged: {why}")]
    RunDamaged { name: &'static str, why: Damage },
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("its case cannot be read: {0}")]
    Case(String),
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error("there is no such file")]
    Missing,
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
    #[error("line {line}: {error}")]
    Line { line: usize, error: serde_json::Error },
    /// The same of a line that nothing else stands in for.
    #[error("line {line}: {error}, and no folder in findings/ has it")]
    LostLine { line: usize, error: serde_json::Error },
    #[error("{name}: {number} is more than any hunt has counted")]
    TooLarge { name: String, number: serde_json::Number },
    #[error("shards: there is none")]
    NoShards,
    #[error("shards: there is no shard {0}")]
    NoSuchShard(Shard),
    #[error("{seconds} seconds, and a share of {share} that is valid?")]
    NoSuchShare { seconds: f64, share: f64 },
    #[error("progress: its ranges of blocks are not in order")]
    BlocksNotInOrder,
    #[error("event {event} is of step {step}, and there are {steps}")]
    NoSuchStep { event: usize, step: usize, steps: usize },
    #[error("event {event} ends transaction {transaction}, which is not there")]
    NoSuchTransaction { event: usize, transaction: usize },
    #[error("transaction {0} begins at a step that is not there")]
    BeginsNowhere(usize),
}

/// What tells two hunts apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Unlike {
    pub name: String,
    pub there: Option<String>,
    pub here: Option<String>,
}

impl fmt::Display for Unlike {
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

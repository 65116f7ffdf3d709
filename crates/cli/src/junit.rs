//! The file of `--junit`: created before the work, completed after it.

use crate::exit_code::Failure;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct JunitFile {
    path: PathBuf,
}

impl JunitFile {
    /// Writes a report that says the work has not finished; a build server reads
    /// it if the work never does. A file that cannot be written fails now, not
    /// after an hour.
    pub fn begin(path: &Path, work: &str) -> Result<JunitFile, Failure> {
        let file = JunitFile { path: path.into() };
        match fs::metadata(path) {
            // A pipe or a device gets the final report only; opening a pipe
            // would block until it has a reader.
            Ok(meta) if meta.file_type().is_fifo() => {}
            Ok(meta) if !meta.is_file() => {
                OpenOptions::new().write(true).open(path).map_err(|e| file.failed(&e))?;
            }
            _ => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_message("isolde has not finished: it was killed, or is still running");
                let mut suite = TestSuite::new(work);
                suite.add_test_case(TestCase::new(work, status));
                let mut report = Report::new("isolde");
                report.add_test_suite(suite);
                file.write(&report)?;
            }
        }
        Ok(file)
    }

    pub fn write(&self, report: &Report) -> Result<(), Failure> {
        let text = report.to_string().map_err(|e| self.failed(&io::Error::other(e)))?;
        fs::write(&self.path, text).map_err(|e| self.failed(&e))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::cannot_write(&self.path, error)
    }
}

/// The duration of a measured number of seconds.
pub fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

//! Files of the user: reading input, and replacing a file safely.

use crate::exit_code::{ExitCode, Failure};
use isolde_model::case;
use std::io::{Read, Result as IoResult, Write};
use std::path::Path;

/// Reads a text file; `-` is stdin.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    let failed = |e: &dyn std::fmt::Display| {
        Failure::new(ExitCode::BadInput, format!("cannot read {}: {e}", path.display()))
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| failed(&e))?;
    } else {
        bytes = std::fs::read(path).map_err(|e| failed(&e))?;
    }
    case::text_of(bytes)
        .map_err(|error| Failure::new(ExitCode::BadInput, format!("{}: {error}", path.display())))
}

/// Replaces a file atomically: it holds the old text or the new one, never a
/// part, even if the process is killed or the disk is full. A link stays a
/// link, now to the new text, and the mode stays the same. The temporary file
/// is in the same folder, since a rename does not work across file systems.
pub fn replace(file: &Path, text: &str) -> IoResult<()> {
    let real = match file.canonicalize() {
        Ok(real) => real,
        Err(_) => file.to_path_buf(),
    };
    let old = std::fs::metadata(&real).ok();
    if let Some(old) = &old
        && (is_hard_linked(old) || !old.is_file())
    {
        // Written in place, so that other hard links and the reader of a pipe
        // get the new text, too.
        return std::fs::write(&real, text);
    }
    let folder = real.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut made = tempfile::Builder::new().prefix(".isolde-").tempfile_in(folder)?;
    made.write_all(text.as_bytes())?;
    if let Some(old) = old {
        made.as_file().set_permissions(old.permissions())?;
    }
    made.persist(&real)?;
    Ok(())
}

fn is_hard_linked(file: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.nlink() > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn replace_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.case");
        fs::write(&file, "old").unwrap();
        replace(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(&folder.path().join("none/a.case"), "x").is_err());
    }

    #[test]
    fn replace_keeps_links_and_modes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "old").unwrap();
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", at("link")).unwrap();
        replace(&at("link"), "new").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "new");
        assert_eq!(fs::metadata(at("real")).unwrap().mode() & 0o777, 0o640);
        fs::hard_link(at("real"), at("twin")).unwrap();
        replace(&at("real"), "newer").unwrap();
        assert_eq!(fs::read_to_string(at("twin")).unwrap(), "newer");
    }
}

//! Files of the user's that are rewritten.

use std::io::{Result, Write};
use std::path::Path;

/// A file is the old one or the new one, never half of it, even if the process
/// is killed or the disk is full. A link stays a link, to a new text, and the
/// mode stays what it was. The temporary file is beside the real one, since a
/// rename across file systems is none.
pub fn write(file: &Path, text: &str) -> Result<()> {
    let real = match file.canonicalize() {
        Ok(real) => real,
        Err(_) => file.to_path_buf(),
    };
    let old = std::fs::metadata(&real).ok();
    if let Some(old) = &old
        && (is_hard_linked(old) || !old.is_file())
    {
        // Whoever shares the file, or reads the pipe, gets the new text, too.
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
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.case");
        fs::write(&file, "old").unwrap();
        write(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("none/a.case"), "x").is_err());
    }

    #[test]
    fn links_and_modes_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "old").unwrap();
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", at("link")).unwrap();
        write(&at("link"), "new").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "new");
        assert_eq!(fs::metadata(at("real")).unwrap().mode() & 0o777, 0o640);
        fs::hard_link(at("real"), at("twin")).unwrap();
        write(&at("real"), "newer").unwrap();
        assert_eq!(fs::read_to_string(at("twin")).unwrap(), "newer");
    }
}

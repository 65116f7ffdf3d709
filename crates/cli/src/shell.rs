//! Commands that the output suggests: they must work when they are copied into
//! the shell that this program was started from.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "isolde";

/// The name of this program, quoted for a shell: `isolde` if PATH leads to it,
/// else the path it was started by.
pub fn own_name() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let this = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    shell_word(&name(&path, &called, &this, &here).display().to_string())
}

fn name(path: &OsStr, called: &Path, this: &Path, here: &Path) -> PathBuf {
    let is_this = |file: &Path| match (file.canonicalize(), this.canonicalize()) {
        (Ok(file), Ok(this)) => file == this,
        _ => false,
    };
    let by_path = |name: &Path| {
        let found = std::env::split_paths(path).map(|dir| dir.join(name)).find(|f| can_run(f));
        found.is_some_and(|file| is_this(&file))
    };
    if by_path(Path::new(NAME)) {
        return NAME.into();
    }
    // A shell searches PATH only for names without a folder.
    let alone = called.components().count() == 1 && !called.is_absolute();
    if alone && by_path(called) {
        return called.into();
    }
    let file = if alone || !is_this(called) { this } else { called };
    match file.strip_prefix(here) {
        Ok(short) if short.components().count() == 1 => Path::new(".").join(short),
        Ok(short) => short.into(),
        Err(_) => file.into(),
    }
}

fn can_run(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Quotes a word for a shell where that is needed.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=@,+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(dir: &Path, name: &str) -> PathBuf {
        let file = dir.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[test]
    fn own_name_is_one_that_the_shell_resolves_to_this_program() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().canonicalize().unwrap();
        let this = program(&here, "target/release/isolde");
        let other = program(&here, "other/isolde");
        let bin = here.join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(&this, bin.join("isolde")).unwrap();
        let nowhere = here.join("nowhere");
        let named = |path: &[&Path], called: &Path, here: &Path| {
            let path = std::env::join_paths(path).unwrap();
            name(&path, called, &this, here).display().to_string()
        };
        assert_eq!(named(&[&nowhere, &bin], &this, &here), "isolde");
        assert_eq!(named(&[&nowhere], &this, &here), "target/release/isolde");
        let others = other.parent().unwrap();
        assert_eq!(named(&[others, &bin], &this, &here), "target/release/isolde", "found first");
        let full = this.display().to_string();
        assert_eq!(named(&[], &this, &bin), full, "from elsewhere");
        assert_eq!(named(&[], &this, this.parent().unwrap()), "./isolde");
        let odd = bin.join("hunter");
        std::os::unix::fs::symlink(&this, &odd).unwrap();
        assert_eq!(named(&[others, &bin], Path::new("hunter"), &here), "hunter");
        assert_eq!(
            named(&[others], Path::new("isolde"), &bin),
            full,
            "the name belongs to another program"
        );
    }

    #[test]
    fn shell_word_quotes_special_characters() {
        assert_eq!(shell_word("sqlite+wal"), "sqlite+wal");
        assert_eq!(shell_word("driver:it's"), r"'driver:it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn own_name_ignores_files_that_are_not_executable() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().canonicalize().unwrap();
        let this = program(&here, "bin/isolde");
        let notes = here.join("notes");
        fs::create_dir(&notes).unwrap();
        fs::write(notes.join("isolde"), "about her").unwrap();
        let path = std::env::join_paths([&notes, this.parent().unwrap()]).unwrap();
        assert_eq!(name(&path, &this, &this, &here), Path::new("isolde"));
    }
}

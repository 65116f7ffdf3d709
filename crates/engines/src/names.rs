//! How names are quoted.

/// Plain names stay readable; others are quoted with the engine's mark.
pub fn quote_if_needed(name: &str, mark: char) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.into()
    } else {
        format!("{mark}{}{mark}", name.replace(mark, &format!("{mark}{mark}")))
    }
}

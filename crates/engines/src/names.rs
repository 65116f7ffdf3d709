//! Quoting of identifiers.

/// Quotes a name with the engine's quotation mark unless it is a plain one.
pub fn quote_if_needed(name: &str, mark: char) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.into()
    } else {
        format!("{mark}{}{mark}", name.replace(mark, &format!("{mark}{mark}")))
    }
}

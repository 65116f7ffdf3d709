//! The words of mysqltest's language.

/// Commands that change nothing about the schedule.
pub const IGNORED: [&str; 14] = [
    "disable_warnings",
    "enable_warnings",
    "disable_query_log",
    "enable_query_log",
    "disable_result_log",
    "enable_result_log",
    "disable_connect_log",
    "enable_connect_log",
    "sleep",
    "real_sleep",
    "sorted_result",
    "vertical_results",
    "horizontal_results",
    "replace_column",
];
/// Commands that a case has no words for.
pub const REFUSED: [&str; 16] = [
    "eval",
    "let",
    "if",
    "while",
    "inc",
    "dec",
    "exec",
    "perl",
    "delimiter",
    "query",
    "send_eval",
    "change_user",
    "shutdown_server",
    "reset_connection",
    "kill",
    "execw",
];

pub fn first_word(text: &str) -> String {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    text[..end].to_ascii_lowercase()
}

/// Includes that check for an engine, or wait.
pub fn is_harmless_include(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("have_")
        || name.starts_with("not_")
        || [
            "wait_condition.inc",
            "count_sessions.inc",
            "wait_until_count_sessions.inc",
            "wait_until_disconnected.inc",
            "default_charset.inc",
            "no_valgrind_without_big.inc",
            "maybe_versioning.inc",
        ]
        .contains(&name)
}

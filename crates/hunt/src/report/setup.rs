//! The tables at the start, beside the timeline: nobody follows a run without
//! knowing what it began with.

use super::html::code;
use isolde_core::History;
use isolde_core::case;

const MOST: usize = 40;

/// The setup of a case and what was drawn of its run, side by side where the
/// screen is wide enough.
pub fn beside(case: &str, history: &History, drawn: &str) -> String {
    let Ok(case) = case::parse(case) else { return drawn.into() };
    let statements = case.setup_for(&history.on.engine, &history.on.version);
    if statements.is_empty() {
        return drawn.into();
    }
    let line = |sql: &str| format!("<li>{}</li>", code(&format!("{sql};")));
    let mut lines: String = statements.iter().take(MOST).map(|s| line(&s.sql)).collect();
    if statements.len() > MOST {
        lines.push_str("<li class=note>and more: the case file below has all</li>");
    }
    format!(
        "<div class=scene><div class=setup><p class=word>The tables at the start</p>\
         <ul>{lines}</ul></div><div>{drawn}</div></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::fixture;

    #[test]
    fn the_setup_of_the_engine_stands_beside_its_run() {
        let text = "case: x\n\nsetup:\n  create table t (a int);\n\nsetup mariadb:\n  \
                    create table m (a int);\n  insert into m values (1);\n\ns1> begin;\n";
        let history = fixture("wait");
        assert_eq!(history.on.engine, "mariadb");
        let page = beside(text, &history, "DRAWN");
        assert!(
            page.contains(
                "<code>create table m (a int);</code></li><li><code>insert into m values (1);"
            ),
            "{page}"
        );
        assert!(page.contains("DRAWN") && !page.contains("create table t"), "{page}");
        assert_eq!(beside("case: x\n\ns1> begin;\n", &history, "DRAWN"), "DRAWN");
        assert_eq!(beside("nonsense", &history, "DRAWN"), "DRAWN");
    }
}

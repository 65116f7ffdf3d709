//! The tables at the start, beside the timeline: nobody follows a run without
//! knowing what it began with.

use super::html::code;
use isolde_core::History;
use isolde_core::case;
use maud::{Markup, html};

const MOST: usize = 40;

/// The setup of a case and what was drawn of its run, side by side where the
/// screen is wide enough.
pub fn beside(case: &str, history: &History, drawn: &Markup) -> Markup {
    let Ok(case) = case::parse(case) else { return drawn.clone() };
    let statements = case.setup_for(&history.on.engine, &history.on.version);
    if statements.is_empty() {
        return drawn.clone();
    }
    html! {
        div.scene {
            div.setup {
                p.word { "The tables at the start" }
                ul {
                    @for statement in statements.iter().take(MOST) {
                        li { (code(&format!("{};", statement.sql))) }
                    }
                    @if statements.len() > MOST {
                        li.note { "and more: the case file below has all" }
                    }
                }
            }
            div { (drawn) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_hunt::samples::recorded;

    #[test]
    fn the_setup_of_the_engine_stands_beside_its_run() {
        let text = "case: x\n\nsetup:\n  create table t (a int);\n\nsetup mariadb:\n  \
                    create table m (a int);\n  insert into m values (1);\n\ns1> begin;\n";
        let history = recorded("wait");
        assert_eq!(history.on.engine, "mariadb");
        let beside = |case: &str| super::beside(case, &history, &html! { "DRAWN" }).into_string();
        let page = beside(text);
        assert!(
            page.contains(
                "<code>create table m (a int);</code></li><li><code>insert into m values (1);"
            ),
            "{page}"
        );
        assert!(page.contains("DRAWN") && !page.contains("create table t"), "{page}");
        assert_eq!(beside("case: x\n\ns1> begin;\n"), "DRAWN");
        assert_eq!(beside("nonsense"), "DRAWN");
    }
}

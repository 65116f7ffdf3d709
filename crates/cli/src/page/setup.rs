//! The initial tables, next to the timeline: a run cannot be followed without
//! knowing what it started from.

use super::html::code;
use isolde_model::History;
use isolde_model::case;
use maud::{Markup, html};

const MOST: usize = 40;

/// The setup of a case and its timeline, side by side on wide screens.
pub fn with_setup(case: &str, history: &History, timeline: &Markup) -> Markup {
    let Ok(case) = case::parse(case) else { return timeline.clone() };
    let statements = case.setup_for(&history.on.engine, &history.on.version);
    if statements.is_empty() {
        return timeline.clone();
    }
    html! {
        div.scene {
            div.setup {
                p.word { "Initial tables" }
                ul {
                    @for statement in statements.iter().take(MOST) {
                        li { (code(&format!("{};", statement.sql))) }
                    }
                    @if statements.len() > MOST {
                        li.note { "and more; see the case file below" }
                    }
                }
            }
            div { (timeline) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_testing::samples::recorded;

    #[test]
    fn with_setup_shows_the_setup_of_the_engine() {
        let text = "case: x\n\nsetup:\n  create table t (a int);\n\nsetup mariadb:\n  \
                    create table m (a int);\n  insert into m values (1);\n\ns1> begin;\n";
        let history = recorded("wait");
        assert_eq!(history.on.engine, "mariadb");
        let shown = |case: &str| with_setup(case, &history, &html! { "DRAWN" }).into_string();
        let page = shown(text);
        assert!(
            page.contains(
                "<code>create table m (a int);</code></li><li><code>insert into m values (1);"
            ),
            "{page}"
        );
        assert!(page.contains("DRAWN") && !page.contains("create table t"), "{page}");
        assert_eq!(shown("case: x\n\ns1> begin;\n"), "DRAWN");
        assert_eq!(shown("nonsense"), "DRAWN");
    }
}

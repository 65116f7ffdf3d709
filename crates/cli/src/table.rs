//! Text tables: columns as wide as their cells, and cells that wrap.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Paints the text of a cell, given its row and column.
pub type Paint<'a> = &'a dyn Fn(usize, usize, &str) -> String;

/// Lays rows out in columns. No column is wider than `widest`; longer cells
/// wrap at blanks.
pub fn layout(rows: &[Vec<String>], widest: usize, paint: Paint<'_>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let needed = |column: usize| {
        let cells = rows.iter().filter_map(|r| r.get(column));
        cells.flat_map(|cell| wrap(cell, widest)).map(|line| width(&line)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(needed).collect();
    let mut out = String::new();
    for (r, row) in rows.iter().enumerate() {
        let cells: Vec<Vec<String>> = row.iter().map(|cell| wrap(cell, widest)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for part in 0..height {
            let mut line = String::new();
            for (c, cell) in cells.iter().enumerate() {
                let text = cell.get(part).map_or("", String::as_str);
                let padding = " ".repeat(widths[c] - width(text));
                let last = c + 1 == cells.len();
                line.push_str(&paint(r, c, text));
                if !last {
                    line.push_str(&padding);
                    line.push_str("  ");
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

/// Lays rows out with the widest cells that fit into `total` columns.
pub fn layout_within(rows: &[Vec<String>], total: Option<usize>, paint: Paint<'_>) -> String {
    let plain = |_: usize, _: usize, text: &str| text.to_string();
    let fits = |widest: usize| {
        let text = layout(rows, widest, &plain);
        total.is_none_or(|total| text.lines().all(|l| width(l) <= total))
    };
    let widest = [48, 40, 34, 28, 24, 20, 17].into_iter().find(|w| fits(*w)).unwrap_or(14);
    layout(rows, widest, paint)
}

/// The number of terminal columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The beginning of a text that fits into the given number of columns.
pub fn cut(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > columns
    });
    end.map_or(text, |(at, _)| &text[..at])
}

fn wrap(text: &str, widest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for source in text.lines() {
        let mut line = String::new();
        for word in source.split_inclusive(' ') {
            let fits = width(&line) + width(word.trim_end()) <= widest;
            if !fits && !line.is_empty() {
                lines.push(line.trim_end().to_string());
                // Continued lines are indented, so that a cell reads as one.
                line = "  ".into();
            }
            line.push_str(word);
        }
        lines.push(line.trim_end().to_string());
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_within_wraps_cells_to_fit_the_screen() {
        let rows = [vec!["waits for s1, then error 40001".to_string(); 3]];
        let plain = |_: usize, _: usize, t: &str| t.to_string();
        assert_eq!(layout_within(&rows, None, &plain).lines().count(), 1);
        let narrow = layout_within(&rows, Some(70), &plain);
        assert!(narrow.lines().all(|l| l.chars().count() <= 70), "{narrow}");
    }

    #[test]
    fn width_counts_two_columns_for_wide_characters_and_none_for_marks() {
        let rows = [vec!["日本".to_string(), "x".into()], vec!["e\u{301}abc".into(), "y".into()]];
        assert_eq!(layout(&rows, 20, &|_, _, t| t.to_string()), "日本  x\ne\u{301}abc  y\n");
        assert_eq!((cut("日本", 3), cut("日本", 4), cut("abc", 5)), ("日", "日本", "abc"));
    }

    #[test]
    fn layout_aligns_columns_and_wraps_cells_at_blanks() {
        let rows = [
            vec!["a".to_string(), "one two three".to_string(), "x".to_string()],
            vec!["bbb".to_string(), "short".to_string(), "y".to_string()],
        ];
        let text = layout(&rows, 8, &|_, _, t| t.to_string());
        assert_eq!(text, "a    one two  x\n       three\nbbb  short    y\n");
    }
}

//! Markdown pages as lines and fenced code blocks.

use std::ops::Range;
use std::path::{Path, PathBuf};

pub struct Page {
    pub path: PathBuf,
    pub lines: Vec<String>,
    pub blocks: Vec<Block>,
}

/// A fenced code block.
pub struct Block {
    /// The words after the opening fence.
    pub info: Vec<String>,
    /// The lines between the fences, by index into [`Page::lines`].
    pub content: Range<usize>,
}

impl Page {
    pub fn read(path: &Path) -> Page {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let blocks = fenced_blocks(&lines);
        Page { path: path.to_owned(), lines, blocks }
    }

    /// The path below the root of the repository.
    pub fn name(&self) -> String {
        let root = crate::root();
        self.path.strip_prefix(&root).unwrap_or(&self.path).display().to_string()
    }

    /// `docs/check.md:12`, counted from 1 as editors do.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{}", self.name(), line + 1)
    }

    pub fn content(&self, block: &Block) -> &[String] {
        &self.lines[block.content.clone()]
    }

    /// Whether a line is inside of a fenced block, or is a fence.
    pub fn is_code(&self, line: usize) -> bool {
        self.blocks.iter().any(|b| (b.content.start - 1..=b.content.end).contains(&line))
    }
}

impl Block {
    pub fn language(&self) -> &str {
        self.info.first().map_or("", String::as_str)
    }

    /// The value of a word `NAME=VALUE` after the fence.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.info.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn has(&self, word: &str) -> bool {
        self.info.iter().skip(1).any(|one| one == word)
    }
}

fn fenced_blocks(lines: &[String]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(Vec<String>, usize)> = None;
    for (index, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim_start().strip_prefix("```") else { continue };
        match open.take() {
            None => {
                let info = rest.split_whitespace().map(str::to_owned).collect();
                open = Some((info, index + 1));
            }
            Some((info, start)) => blocks.push(Block { info, content: start..index }),
        }
    }
    assert!(open.is_none(), "a fence is not closed: {:?}", open.map(|(info, _)| info));
    blocks
}

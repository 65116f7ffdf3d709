//! The modules of a crate and what each refers to.

use crate::lexer::{Token, end_of_group, tokens};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names from the root of the crate to a module; empty for the root.
pub type ModulePath = Vec<String>;

/// One `use`, or one path inside the code.
#[derive(Clone, Debug)]
struct Reference {
    segments: Vec<String>,
    line: usize,
}

#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    children: BTreeSet<String>,
    /// Names that a `use` brings into the module.
    bindings: BTreeMap<String, Vec<String>>,
    /// The modules of `use …::*`.
    globs: Vec<Vec<String>>,
    /// What the module itself defines.
    items: BTreeSet<String>,
    references: Vec<Reference>,
    /// Names that may come from a glob.
    loose_names: Vec<Reference>,
}

/// A reference from one module to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: ModulePath,
    pub to: ModulePath,
    pub file: PathBuf,
    pub line: usize,
    /// The path as it is written.
    pub path: String,
}

#[derive(Debug, Default)]
pub struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

/// How many re-exports are followed for one name.
const DEPTH: usize = 16;

impl Crate {
    /// Reads the modules of a crate from its root file. `read` gives the text
    /// of a file, if there is one.
    pub fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Crate {
        let mut all = Crate::default();
        let folder = root.parent().unwrap().to_path_buf();
        let source = read(root).unwrap_or_else(|| panic!("no {}", root.display()));
        all.add(Vec::new(), root, &folder, &source, tokens(&source), read);
        all
    }

    /// Adds a module and its child modules. `folder` is where files of its
    /// children are.
    fn add(
        &mut self,
        path: ModulePath,
        file: &Path,
        folder: &Path,
        source: &str,
        all: Vec<Token>,
        read: &dyn Fn(&Path) -> Option<String>,
    ) {
        let mut module = Module { file: file.into(), ..Module::default() };
        let mut own = Vec::new();
        let mut at = 0;
        while at < all.len() {
            let name = all.get(at + 1).filter(|t| t.is_word()).map(|t| t.text.clone());
            let after = all.get(at + 2).map(|t| t.text.as_str());
            let (Some(name), "mod", Some(";" | "{")) = (name, all[at].text.as_str(), after) else {
                own.push(all[at].clone());
                at += 1;
                continue;
            };
            let child = [path.clone(), vec![name.clone()]].concat();
            if after == Some("{") {
                let end = end_of_group(&all, at + 2);
                let inside = all[at + 3..end - 1].to_vec();
                self.add(child, file, &folder.join(&name), source, inside, read);
                at = end;
            } else {
                let (file, folder) = file_of(&name, file, folder, &source[..all[at].at], read);
                let text = read(&file).unwrap_or_else(|| panic!("no {}", file.display()));
                self.add(child, &file, &folder, &text, tokens(&text), read);
                at += 3;
            }
            module.children.insert(name);
        }
        module.read_words(&own);
        self.modules.insert(path, module);
    }

    /// All references that leave a module for one that neither contains it nor
    /// is contained in it.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, module) in &self.modules {
            let resolved = module
                .references
                .iter()
                .filter_map(|r| Some((r, self.resolve(from, &r.segments, DEPTH)?)));
            let loose = module
                .loose_names
                .iter()
                .filter_map(|r| Some((r, self.in_globs(from, &r.segments[0], DEPTH)?)));
            for (reference, to) in resolved.chain(loose) {
                if !to.starts_with(from) && !from.starts_with(&to) {
                    edges.push(Edge {
                        from: from.clone(),
                        to,
                        file: module.file.clone(),
                        line: reference.line,
                        path: reference.segments.join("::"),
                    });
                }
            }
        }
        edges
    }

    /// The module that a path leads to, or that defines the item it leads to.
    /// `None` for other crates and for local names.
    fn resolve(&self, from: &[String], segments: &[String], depth: usize) -> Option<ModulePath> {
        let (first, mut rest) = segments.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                let (at, is_module) = self.visible(from, name, depth)?;
                if !is_module {
                    return Some(at);
                }
                at
            }
        };
        while let Some((name, more)) = rest.split_first() {
            if name == "super" {
                at.pop()?;
            } else if name != "self" && name != "*" {
                match self.visible(&at, name, depth) {
                    Some((next, true)) => at = next,
                    Some((next, false)) => return Some(next),
                    None => return Some(at),
                }
            }
            rest = more;
        }
        Some(at)
    }

    /// Where a name in a module leads, other than to an item of that module:
    /// a module, and whether the name is that module or an item in it.
    fn visible(&self, at: &[String], name: &str, depth: usize) -> Option<(ModulePath, bool)> {
        let module = self.modules.get(at)?;
        if module.children.contains(name) {
            return Some(([at, &[name.to_string()]].concat(), true));
        }
        if depth == 0 || module.items.contains(name) {
            return None;
        }
        let to = match module.bindings.get(name) {
            Some(segments) => self.resolve(at, segments, depth - 1)?,
            None => {
                return self.in_globs(at, name, depth).map(|to| (to.clone(), self.is(&to, name)));
            }
        };
        let last = &module.bindings[name][module.bindings[name].len() - 1];
        let is_module = self.is(&to, last) || matches!(last.as_str(), "self" | "super" | "crate");
        Some((to, is_module))
    }

    /// Whether a path leads to a module of this name.
    fn is(&self, path: &[String], name: &str) -> bool {
        path.last().is_some_and(|last| last == name)
    }

    /// The module that a name comes from by a `use …::*`.
    fn in_globs(&self, at: &[String], name: &str, depth: usize) -> Option<ModulePath> {
        let depth = depth.checked_sub(1)?;
        let module = self.modules.get(at)?;
        module.globs.iter().find_map(|glob| {
            let from = self.resolve(at, glob, depth)?;
            let source = self.modules.get(&from).filter(|_| from != at)?;
            if source.items.contains(name) {
                return Some(from);
            }
            self.visible(&from, name, depth).map(|(to, _)| to)
        })
    }
}

impl Module {
    fn read_words(&mut self, all: &[Token]) {
        let text = |at: usize| all.get(at).map_or("", |t| t.text.as_str());
        let (mut at, mut depth) = (0, 0_i32);
        let mut loose = Vec::new();
        while at < all.len() {
            let token = &all[at];
            let before = if at == 0 { "" } else { text(at - 1) };
            match token.text.as_str() {
                "use" if text(at + 1) != "<" => {
                    at = self.read_use(all, at + 1);
                    continue;
                }
                "{" => depth += 1,
                "}" => depth -= 1,
                "fn" | "struct" | "enum" | "trait" | "type" | "static" | "union" | "const"
                    if depth == 0 && all.get(at + 1).is_some_and(Token::is_word) =>
                {
                    self.items.insert(text(at + 1).into());
                }
                "macro_rules" => {
                    self.items.insert(text(at + 2).into());
                }
                _ if token.is_word() && before != "::" && before != "." => {
                    let mut segments = vec![token.text.clone()];
                    while text(at + 1) == "::" && all.get(at + 2).is_some_and(Token::is_word) {
                        segments.push(text(at + 2).into());
                        at += 2;
                    }
                    let is_type = segments[0].starts_with(|c: char| c.is_ascii_uppercase());
                    let reference = Reference { segments, line: token.line };
                    if reference.segments.len() > 1 {
                        self.references.push(reference);
                    } else if (is_type || matches!(text(at + 1), "(" | "!" | "{")) && before != "fn"
                    {
                        loose.push(reference);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        let own = |name: &String| {
            self.items.contains(name)
                || self.bindings.contains_key(name)
                || self.children.contains(name)
        };
        loose.retain(|r| !own(&r.segments[0]));
        self.loose_names = loose;
    }

    /// Reads a `use` from behind its keyword. Returns where it ends.
    fn read_use(&mut self, all: &[Token], start: usize) -> usize {
        let end = all[start..].iter().position(|t| t.text == ";").map_or(all.len(), |n| start + n);
        self.read_use_tree(&all[start..end], &[]);
        end + 1
    }

    fn read_use_tree(&mut self, tree: &[Token], prefix: &[String]) {
        let mut segments = prefix.to_vec();
        let mut at = 0;
        while at < tree.len() {
            match tree[at].text.as_str() {
                "::" => {}
                "{" => {
                    let inside = &tree[at + 1..end_of_group(tree, at) - 1];
                    for part in split_at_commas(inside) {
                        self.read_use_tree(part, &segments);
                    }
                    return;
                }
                "*" => {
                    self.references
                        .push(Reference { segments: segments.clone(), line: tree[at].line });
                    self.globs.push(segments);
                    return;
                }
                "as" => break,
                word => segments.push(word.into()),
            }
            at += 1;
        }
        let Some(first) = tree.first() else { return };
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let name = match tree.get(at + 1) {
            Some(alias) if at < tree.len() => alias.text.clone(),
            _ => segments.last().cloned().unwrap_or_default(),
        };
        self.references.push(Reference { segments: segments.clone(), line: first.line });
        self.bindings.insert(name, segments);
    }
}

fn split_at_commas(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "," => {
                parts.push(&tokens[start..at]);
                (start, at) = (at + 1, at + 1);
            }
            "{" => at = end_of_group(tokens, at),
            _ => at += 1,
        }
    }
    parts.push(&tokens[start..]);
    parts
}

/// The file of `mod NAME;`, and the folder of the files of its own children.
/// `before` is the source up to the declaration, for its `#[path = "…"]`.
fn file_of(
    name: &str,
    parent: &Path,
    folder: &Path,
    before: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> (PathBuf, PathBuf) {
    let attributes = &before[before.rfind([';', '}']).map_or(0, |n| n + 1)..];
    if let Some((_, path)) = attributes.split_once("#[path = \"") {
        let file = parent.parent().unwrap().join(path.split('"').next().unwrap_or_default());
        let folder = file.parent().unwrap().to_path_buf();
        return (file, folder);
    }
    let inside = folder.join(name);
    let plain = folder.join(format!("{name}.rs"));
    match read(&plain) {
        Some(_) => (plain, inside),
        None => (inside.join("mod.rs"), inside),
    }
}

//! Citations: the page of a manual that documents a rule, and what it says.
//!
//! A link proves nothing by itself: pages are moved and rewritten, and a page on
//! the subject need not say what the rule says. Therefore a citation also has the
//! sentence of the page that supports the rule, word for word. Where the manual is
//! only read and may not be copied, it names the section that says so.
//! `tests/data/manual-quotations.txt` records in which copy of the manual each was
//! found, and a test fails for a citation that is not recorded there.

/// A page of a manual, and what it says on the subject of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    pub page: &'static str,
    pub evidence: Evidence,
}

/// How a page supports a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A sentence of the page or a part of one, word for word.
    Quotation(&'static str),
    /// The heading of the section that says it in other words.
    Section(&'static str),
    /// The page is on the subject and does not say it: the rule needs a library
    /// case that shows it (`Rule::undocumented`).
    None,
}

impl Citation {
    /// The citation of a rule that belongs to no engine.
    pub const NONE: Citation = Citation { page: "", evidence: Evidence::None };

    pub fn quotation(&self) -> Option<&'static str> {
        match self.evidence {
            Evidence::Quotation(text) => Some(text),
            Evidence::Section(_) | Evidence::None => None,
        }
    }
}

/// Cites a page with its own words.
pub const fn quoted(page: &'static str, text: &'static str) -> Citation {
    Citation { page, evidence: Evidence::Quotation(text) }
}

/// Cites a section of a page by its heading.
pub const fn section(page: &'static str, heading: &'static str) -> Citation {
    Citation { page, evidence: Evidence::Section(heading) }
}

/// Names the page on a subject, which does not say what the rule says.
pub const fn silent(page: &'static str) -> Citation {
    Citation { page, evidence: Evidence::None }
}

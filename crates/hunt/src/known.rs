//! Known bugs of the library that a finding may be an instance of. A first,
//! plain comparison of shapes; ranking comes with triage.

use crate::finding::shape;
use isolde_core::Case;
use isolde_core::case::{CaseKind, Selector};

pub struct Known {
    pub id: String,
    engines: Vec<Selector>,
    shape: String,
}

impl Known {
    /// None for cases that are no reports of bugs.
    pub fn of(case: &Case) -> Option<Known> {
        let reported = matches!(
            case.kind,
            Some(CaseKind::Bug | CaseKind::Fixed | CaseKind::Disputed | CaseKind::Documented)
        );
        let shape = shape(case);
        (reported && !shape.is_empty()).then(|| Known {
            id: case.id.clone(),
            engines: case.engines.clone(),
            shape,
        })
    }

    /// The same statements by session, on an engine where the bug is known.
    pub fn fits(&self, engine: &str, version: &str, shape: &str) -> bool {
        self.shape == shape
            && (self.engines.is_empty() || self.engines.iter().any(|s| s.matches(engine, version)))
    }
}

//! Whether a trace can be what happened: what contradicts itself is refused, with the
//! operation where it shows.

use super::{Access, Operation, OperationResult, Trace};

/// Why a trace cannot be what happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}: {why}")]
pub struct Wrong {
    /// By its place in the trace.
    pub operation: usize,
    pub why: String,
}

impl Trace {
    /// Checks that a trace is well-formed: the operations of a session do not overlap, each
    /// belongs to a transaction of its session and ends after it starts, and every version
    /// that is read was written by an operation that may have come before. It does not look
    /// for errors of the database.
    pub fn check(&self) -> Result<(), Wrong> {
        for (operation, of) in self.operations.iter().enumerate() {
            self.check_operation(of).map_err(|why| Wrong { operation, why })?;
        }
        self.check_sessions()?;
        self.check_versions()
    }

    fn check_operation(&self, operation: &Operation) -> Result<(), String> {
        let Operation { session, transaction, statement, start, end, .. } = operation;
        if end < start {
            return Err("it ends before it starts".into());
        }
        let Some(of) = self.transactions.get(*transaction as usize) else {
            return Err(format!("there is no transaction {transaction}"));
        };
        if of.session != *session {
            let why = format!("transaction {transaction} is of session {}", of.session);
            return Err(format!("{why}, and this is session {session}"));
        }
        if *session as usize >= self.sessions.len() {
            return Err(format!("there is no session {session}"));
        }
        if *statement as usize >= self.statements.len() {
            return Err(format!("there is no statement {statement}"));
        }
        let Some(accesses) = &operation.accesses else { return Ok(()) };
        let done =
            !matches!(operation.result, OperationResult::Error(_) | OperationResult::Unanswered);
        if !done && !accesses.writes.is_empty() {
            return Err("it failed, and has written all the same".into());
        }
        let items = self.items.len();
        let mut all = accesses.reads.iter().chain(&accesses.writes);
        if let Some(access) = all.find(|a| a.item as usize >= items) {
            return Err(format!("there is no item {}", access.item));
        }
        match accesses.writes.iter().find(|access| access.version == 0) {
            Some(access) => {
                let item = &self.items[access.item as usize];
                Err(format!("it writes version 0 of {item}, which is the setup's"))
            }
            None => Ok(()),
        }
    }

    fn check_sessions(&self) -> Result<(), Wrong> {
        let mut by_start: Vec<usize> = (0..self.operations.len()).collect();
        by_start.sort_by_key(|at| (self.operations[*at].start, self.operations[*at].end));
        let mut last_of: Vec<Option<usize>> = vec![None; self.sessions.len()];
        let mut over = vec![false; self.transactions.len()];
        for operation in by_start {
            let now = &self.operations[operation];
            let session = &self.sessions[now.session as usize];
            let wrong = |why: String| Err(Wrong { operation, why });
            if let Some(last) = last_of[now.session as usize] {
                let last = &self.operations[last];
                if now.start < last.end {
                    return wrong(format!(
                        "{session} sends it at {} ns, and what it sent before ends at {} ns",
                        now.start, last.end
                    ));
                }
                if last.transaction != now.transaction {
                    over[last.transaction as usize] = true;
                }
            }
            if over[now.transaction as usize] {
                return wrong(format!(
                    "transaction {} goes on after {session} has begun another",
                    now.transaction
                ));
            }
            last_of[now.session as usize] = Some(operation);
        }
        Ok(())
    }

    fn check_versions(&self) -> Result<(), Wrong> {
        // The versions of each item, one item after the other, so that only those of one are
        // sorted and searched.
        let mut starts = vec![0usize; self.items.len() + 1];
        fn written(operation: &Operation) -> &[Access] {
            operation.accesses.as_ref().map_or(&[], |accesses| &accesses.writes)
        }
        for access in self.operations.iter().flat_map(written) {
            starts[access.item as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut versions = vec![(0u64, 0usize); starts[self.items.len()]];
        let mut next = starts.clone();
        for (at, operation) in self.operations.iter().enumerate() {
            for access in written(operation) {
                let next = &mut next[access.item as usize];
                versions[*next] = (access.version, at);
                *next += 1;
            }
        }
        let name = |item: usize| &self.items[item];
        for item in 0..self.items.len() {
            let of = &mut versions[starts[item]..starts[item + 1]];
            of.sort_unstable();
            if let Some(pair) = of.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                let (version, operation) = pair[1];
                let why = format!("version {version} of {} is written twice", name(item));
                return Err(Wrong { operation, why });
            }
        }
        for (operation, reading) in self.operations.iter().enumerate() {
            let reads = reading.accesses.iter().flat_map(|a| &a.reads);
            for access in reads.filter(|access| access.version != 0) {
                let (item, version) = (access.item as usize, access.version);
                let of = &versions[starts[item]..starts[item + 1]];
                let found = of.binary_search_by_key(&version, |(version, _)| *version);
                let why = match found.map(|at| &self.operations[of[at].1]) {
                    Ok(by) if by.start <= reading.end => continue,
                    Ok(_) => "which was only sent to be written when it had ended",
                    Err(_) => "which no operation wrote",
                };
                let why = format!("it reads version {version} of {}, {why}", name(item));
                return Err(Wrong { operation, why });
            }
        }
        Ok(())
    }
}

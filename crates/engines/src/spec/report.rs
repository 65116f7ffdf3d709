//! Prints waits, results, notices and notifications in isolationtester's words.

use super::RejectedStatement;
use super::schedule::Run;
use crate::engine::{SpecAnswer, SpecFailure};
use isolde_interop::spec::PermutationStep;
use isolde_interop::spec::print_table;

impl Run<'_> {
    pub(super) fn report_waiting(&mut self, step: &PermutationStep) {
        let script = self.spec.step(step.id);
        let text = format!("step {}: {} <waiting ...>\n", script.name, script.sql);
        self.print(&text);
    }

    /// Prints a session's notices; those of the control connection are dropped.
    pub(super) fn show_notices(&mut self, index: usize) {
        for notice in self.links.take_notices(index) {
            if let Some(session) = index.checked_sub(1) {
                self.notices[session] += 1;
                self.new_notice = true;
                let text = format!("{}: {notice}", self.spec.sessions[session].name);
                self.print(&text);
            }
        }
    }

    pub(super) fn show_answer(&mut self, answer: &SpecAnswer, step: &PermutationStep) {
        match answer {
            SpecAnswer::Table { columns, rows } => self.print(&print_table(columns, rows)),
            SpecAnswer::Done | SpecAnswer::Empty => {}
            SpecAnswer::Failed(failed) => {
                self.print(&format!("{}\n", failed.line));
                let script = self.spec.step(step.id);
                let place = format!("step {}", script.name);
                self.record_rejection(failed, &place, script.line.0, &script.sql);
            }
            SpecAnswer::Unexpected(kind) => {
                self.print(&format!("unexpected result status: {kind}\n"))
            }
        }
    }

    pub(super) fn show_notifications(&mut self, session: usize) {
        for notification in self.links.take_notifications(session + 1) {
            let sessions = &self.spec.sessions;
            let sender = (0..sessions.len())
                .find(|i| self.links.id(i + 1) == notification.sender)
                .map_or_else(
                    || format!("PID {}", notification.sender),
                    |i| sessions[i].name.clone(),
                );
            let text = format!(
                "{}: NOTIFY \"{}\" with payload \"{}\" from {sender}\n",
                sessions[session].name, notification.channel, notification.payload
            );
            self.print(&text);
        }
        self.show_notices(session + 1);
    }

    pub(super) fn record_rejection(
        &mut self,
        failed: &SpecFailure,
        place: &str,
        line: usize,
        sql: &str,
    ) {
        if failed.rejected && self.outcome.rejected.iter().all(|r| r.place != place) {
            self.outcome.rejected.push(RejectedStatement {
                place: place.into(),
                line,
                sql: failed.statement.as_deref().unwrap_or(sql).trim().into(),
                message: failed.line.clone(),
            });
        }
    }
}

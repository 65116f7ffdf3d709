//! What a run prints: waits, results, notices, notifications, in
//! isolationtester's words.

use super::Rejected;
use super::link::{Answer, Failed};
use super::schedule::Run;
use isolde_core::spec::PermutationStep;
use isolde_core::spec::print_table;

impl Run<'_> {
    pub(super) fn say_waiting(&mut self, step: &PermutationStep) {
        let script = self.spec.step(step.id);
        let text = format!("step {}: {} <waiting ...>\n", script.name, script.sql);
        self.print(&text);
    }

    /// The control connection's notices are nobody's business.
    pub(super) fn show_notices(&mut self, who: usize) {
        for notice in self.links.take_notices(who) {
            if let Some(session) = who.checked_sub(1) {
                self.notices[session] += 1;
                self.new_notice = true;
                let text = format!("{}: {notice}", self.spec.sessions[session].name);
                self.print(&text);
            }
        }
    }

    pub(super) fn show_answer(&mut self, answer: &Answer, step: &PermutationStep) {
        match answer {
            Answer::Table { columns, rows } => self.print(&print_table(columns, rows)),
            Answer::Done | Answer::Empty => {}
            Answer::Failed(failed) => {
                self.print(&format!("{}\n", failed.line));
                let script = self.spec.step(step.id);
                let place = format!("step {}", script.name);
                self.note_rejection(failed, &place, script.line.0, &script.sql);
            }
            Answer::Unexpected(kind) => self.print(&format!("unexpected result status: {kind}\n")),
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

    pub(super) fn note_rejection(&mut self, failed: &Failed, place: &str, line: usize, sql: &str) {
        if failed.rejected && self.played.rejected.iter().all(|r| r.place != place) {
            self.played.rejected.push(Rejected {
                place: place.into(),
                line,
                sql: failed.statement.as_deref().unwrap_or(sql).trim().into(),
                message: failed.line.clone(),
            });
        }
    }
}

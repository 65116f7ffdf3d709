//! An inquiry: a question after the other, each asked of whoever can run
//! things, until there is an answer.
//!
//! Oracles, the search for a cause and reductions need runs of cases and
//! statements on rows of their choice, and what they ask next depends on what
//! came back. They are written as plain `async` functions over a [`Desk`]; the
//! compiler turns them into state machines that do no I/O and start nothing:
//! [`Inquiry::resume`] takes them to their next [`Question`]. Whoever drives
//! one answers with an engine, or in a test with whatever the test says.
//!
//! ```text
//!   Inquiry ──resume──► Ask(question) ──► engine ──► resume(answer) ──► … ──► Done(result)
//! ```

use crate::history::DbError;
use crate::value::Row;
use crate::{Case, History};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// A run of this case, from the rows that the inquiry is about.
    Run(Box<Case>),
    /// A run of this case on tables of its own.
    RunOn(Box<Laid>, Box<Case>),
    /// Statements in the version tables, of which the last one's rows are
    /// wanted. Versions that they make are filed under a number that whoever
    /// answers puts in
    /// ([`crate::semantics::version_tables::MADE_MARK`]); asked twice, they
    /// make two.
    Evaluate(Vec<String>),
}

/// What a run starts from: what makes the tables, and what brings their rows back. Without
/// the latter they are made anew for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Laid {
    pub create: Vec<String>,
    pub reset: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Ran(Box<History>),
    Evaluated(Result<Vec<Row>, DbError>),
}

/// Where questions are put and answers are found. A search that needs nothing
/// but a yes or no has questions and answers of its own.
pub struct Desk<Q = Question, A = Answer>(Rc<RefCell<Papers<Q, A>>>);

struct Papers<Q, A> {
    question: Option<Q>,
    answer: Option<A>,
}

impl<Q, A> Clone for Desk<Q, A> {
    fn clone(&self) -> Desk<Q, A> {
        Desk(Rc::clone(&self.0))
    }
}

impl<Q, A> Default for Desk<Q, A> {
    fn default() -> Desk<Q, A> {
        Desk(Rc::new(RefCell::new(Papers { question: None, answer: None })))
    }
}

impl<Q, A> Desk<Q, A> {
    pub async fn ask(&self, question: Q) -> A {
        self.0.borrow_mut().question = Some(question);
        std::future::poll_fn(|_| match self.0.borrow_mut().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }
}

impl Desk {
    pub async fn run(&self, case: Case) -> History {
        match self.ask(Question::Run(Box::new(case))).await {
            Answer::Ran(history) => *history,
            Answer::Evaluated(_) => unreachable!("a run was asked for"),
        }
    }

    /// A run on tables of its own.
    pub async fn run_on(&self, laid: Laid, case: Case) -> History {
        match self.ask(Question::RunOn(Box::new(laid), Box::new(case))).await {
            Answer::Ran(history) => *history,
            Answer::Evaluated(_) => unreachable!("a run was asked for"),
        }
    }

    pub async fn evaluate(&self, statements: Vec<String>) -> Result<Vec<Row>, DbError> {
        match self.ask(Question::Evaluate(statements)).await {
            Answer::Evaluated(rows) => rows,
            Answer::Ran(_) => unreachable!("a statement was asked for"),
        }
    }
}

pub struct Inquiry<'a, T, Q = Question, A = Answer> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    desk: Desk<Q, A>,
}

/// How far an inquiry has come.
#[derive(Debug, PartialEq)]
pub enum Progress<T, Q = Question> {
    Asks(Q),
    Done(T),
}

impl<'a, T, Q, A> Inquiry<'a, T, Q, A> {
    pub fn new<F: Future<Output = T> + 'a>(
        begin: impl FnOnce(Desk<Q, A>) -> F,
    ) -> Inquiry<'a, T, Q, A> {
        let desk = Desk::default();
        Inquiry { future: Box::pin(begin(desk.clone())), desk }
    }

    /// On to the next question; the answer is that to the last one.
    pub fn resume(&mut self, answer: Option<A>) -> Progress<T, Q> {
        self.desk.0.borrow_mut().answer = answer;
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Progress::Done(result),
            Poll::Pending => {
                let question = self.desk.0.borrow_mut().question.take();
                Progress::Asks(question.expect("an inquiry waits for nothing but its desk"))
            }
        }
    }

    /// To the end, with somebody who answers or gives up.
    pub fn answered_by<E>(mut self, mut answer: impl FnMut(Q) -> Result<A, E>) -> Result<T, E> {
        let mut last = None;
        loop {
            match self.resume(last.take()) {
                Progress::Done(result) => return Ok(result),
                Progress::Asks(question) => last = Some(answer(question)?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    async fn sum_until_zero(desk: Desk) -> i64 {
        let mut sum = 0;
        loop {
            match desk.evaluate(vec![format!("after {sum}")]).await.as_deref() {
                Ok([row]) if row != &[Value::Int(0)] => {
                    let Value::Int(n) = row[0] else { return -1 };
                    sum += n;
                }
                _ => return sum,
            }
        }
    }

    #[test]
    fn what_is_asked_next_depends_on_what_came_back() {
        let mut asked = Vec::new();
        let mut answers = [3, 4, 0].into_iter();
        let sum = Inquiry::new(sum_until_zero).answered_by(|question| {
            asked.push(question);
            let n = answers.next().ok_or("no more answers")?;
            Ok::<_, &str>(Answer::Evaluated(Ok(vec![vec![Value::Int(n)]])))
        });
        assert_eq!(sum, Ok(7));
        let after = |n| Question::Evaluate(vec![format!("after {n}")]);
        assert_eq!(asked, [after(0), after(3), after(7)]);
    }

    #[test]
    fn who_cannot_answer_ends_an_inquiry() {
        let gave_up = Inquiry::new(sum_until_zero).answered_by(|_| Err("the server died"));
        assert_eq!(gave_up, Err("the server died"));
    }
}

//! An inquiry: a computation without I/O that requests runs and gets responses.
//!
//! Oracles, the search for a cause and reductions need runs of cases and
//! statements on rows of their choice, and the next request depends on the last
//! response. They are plain `async` functions over a [`Channel`]; the compiler
//! turns them into state machines that do no I/O and start nothing:
//! [`Inquiry::resume`] takes them to their next [`Request`]. A driver answers
//! with an engine; a test answers by hand.
//!
//! ```text
//!   Inquiry ──resume──► Asks(request) ──► engine ──► resume(response) ──► … ──► Done(result)
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
pub enum Request {
    /// A run of this case, from the rows that the inquiry is about.
    Run(Box<Case>),
    /// A run of this case on tables of its own.
    RunOnFixture(Box<TableSetup>, Box<Case>),
    /// Statements in the version tables, of which the last one's rows are
    /// wanted. Versions that they make are stored under a number that the driver
    /// inserts (`MADE_MARK` of the version tables); asked twice, they make two.
    Evaluate(Vec<String>),
}

/// What a run starts from: what makes the tables, and what brings their rows back. Without
/// the latter they are made anew for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSetup {
    pub create: Vec<String>,
    pub reset: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    Ran(Box<History>),
    Evaluated(Result<Vec<Row>, DbError>),
}

/// Where requests are put and responses are found. A search that needs nothing
/// but a yes or no has requests and responses of its own.
pub struct Channel<Q = Request, A = Response>(Rc<RefCell<Slot<Q, A>>>);

struct Slot<Q, A> {
    question: Option<Q>,
    answer: Option<A>,
}

impl<Q, A> Clone for Channel<Q, A> {
    fn clone(&self) -> Channel<Q, A> {
        Channel(Rc::clone(&self.0))
    }
}

impl<Q, A> Default for Channel<Q, A> {
    fn default() -> Channel<Q, A> {
        Channel(Rc::new(RefCell::new(Slot { question: None, answer: None })))
    }
}

impl<Q, A> Channel<Q, A> {
    pub async fn ask(&self, question: Q) -> A {
        self.0.borrow_mut().question = Some(question);
        std::future::poll_fn(|_| match self.0.borrow_mut().answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }
}

impl Channel {
    pub async fn run(&self, case: Case) -> History {
        match self.ask(Request::Run(Box::new(case))).await {
            Response::Ran(history) => *history,
            Response::Evaluated(_) => unreachable!("a run was asked for"),
        }
    }

    /// A run on tables of its own.
    pub async fn run_on(&self, setup: TableSetup, case: Case) -> History {
        match self.ask(Request::RunOnFixture(Box::new(setup), Box::new(case))).await {
            Response::Ran(history) => *history,
            Response::Evaluated(_) => unreachable!("a run was asked for"),
        }
    }

    pub async fn evaluate(&self, statements: Vec<String>) -> Result<Vec<Row>, DbError> {
        match self.ask(Request::Evaluate(statements)).await {
            Response::Evaluated(rows) => rows,
            Response::Ran(_) => unreachable!("a statement was asked for"),
        }
    }
}

pub struct Inquiry<'a, T, Q = Request, A = Response> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    channel: Channel<Q, A>,
}

/// How far an inquiry has come.
#[derive(Debug, PartialEq)]
pub enum Progress<T, Q = Request> {
    Asks(Q),
    Done(T),
}

impl<'a, T, Q, A> Inquiry<'a, T, Q, A> {
    pub fn new<F: Future<Output = T> + 'a>(
        begin: impl FnOnce(Channel<Q, A>) -> F,
    ) -> Inquiry<'a, T, Q, A> {
        let channel = Channel::default();
        Inquiry { future: Box::pin(begin(channel.clone())), channel }
    }

    /// Runs on to the next request; the argument is the response to the last one.
    pub fn resume(&mut self, answer: Option<A>) -> Progress<T, Q> {
        self.channel.0.borrow_mut().answer = answer;
        match self.future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Progress::Done(result),
            Poll::Pending => {
                let question = self.channel.0.borrow_mut().question.take();
                Progress::Asks(question.expect("an inquiry waits for nothing but its channel"))
            }
        }
    }

    /// Runs it to the end with a driver that answers or gives up.
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

    async fn sum_until_zero(channel: Channel) -> i64 {
        let mut sum = 0;
        loop {
            match channel.evaluate(vec![format!("after {sum}")]).await.as_deref() {
                Ok([row]) if row != &[Value::Int(0)] => {
                    let Value::Int(n) = row[0] else { return -1 };
                    sum += n;
                }
                _ => return sum,
            }
        }
    }

    #[test]
    fn next_question_depends_on_the_last_answer() {
        let mut asked = Vec::new();
        let mut answers = [3, 4, 0].into_iter();
        let sum = Inquiry::new(sum_until_zero).answered_by(|question| {
            asked.push(question);
            let n = answers.next().ok_or("no more answers")?;
            Ok::<_, &str>(Response::Evaluated(Ok(vec![vec![Value::Int(n)]])))
        });
        assert_eq!(sum, Ok(7));
        let after = |n| Request::Evaluate(vec![format!("after {n}")]);
        assert_eq!(asked, [after(0), after(3), after(7)]);
    }

    #[test]
    fn driver_error_ends_an_inquiry() {
        let gave_up = Inquiry::new(sum_until_zero).answered_by(|_| Err("the server died"));
        assert_eq!(gave_up, Err("the server died"));
    }
}

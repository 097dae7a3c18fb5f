//! A connection that is made for one errand: questions whose answers may be long.
//!
//! The locks have a connection of their own for all of this process. What is long there holds up renewals, and what is longer
//! than any answer about a lock breaks it. So whoever wants to look at a whole server goes on a way of its own.

use super::answer::refused;
use super::connect::greet;
use super::courier::Connection;
use super::endpoint::Endpoint;
use super::prepare::ask;
use super::progress::Progress;
use super::reach::cut;
use crate::error::NodeError;
use redis::{Pipeline, Value};
use std::sync::Arc;

/// The longest answer in bytes: a list of some twenty thousand clients. Smaller, the processes behind the locks of a busy
/// server cannot be told; larger, one look costs more memory, and the server more time.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

pub(super) struct Errand(Connection);

impl Errand {
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub(super) async fn begin(endpoint: &Endpoint) -> Result<Self, NodeError> {
        let (connection, _) = greet(endpoint, None, &Progress::default()).await?;
        connection.control.received.allow(LONGEST_ANSWER);
        Ok(Self(connection))
    }

    /// What is read from now on does not look used, where the server knows that: others decide by it what to evict.
    ///
    /// # Errors
    /// When the connection breaks.
    pub(super) async fn leaves_no_trace(&mut self) -> Result<(), NodeError> {
        let mut question = redis::pipe();
        question.cmd("CLIENT").arg("NO-TOUCH").arg("ON");
        // Servers before 7.2 do not know it, and a user may not be allowed to.
        self.ask(&question).await.map(drop)
    }

    /// The answers, one for each question.
    ///
    /// # Errors
    /// When the connection breaks, or an answer is too long. What the server refuses is among the answers.
    pub(super) async fn ask(&mut self, questions: &Pipeline) -> Result<Vec<Result<Value, NodeError>>, NodeError> {
        let control = Arc::clone(&self.0.control);
        let answers = ask(&mut self.0, questions).await.map_err(|error| cut(&control).unwrap_or(error))?;
        Ok(answers.into_iter().map(|answer| answer.extract_error().map_err(|error| refused(&error))).collect())
    }
}

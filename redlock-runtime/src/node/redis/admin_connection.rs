//! A short-lived connection for administrative queries with long replies.
//!
//! The locks of this process share one connection. A long reply delays renewals there, and a reply longer than any reply about a lock
//! breaks it. Queries about a whole server therefore use a separate connection.

use super::answer::refused;
use super::connect::greet;
use super::endpoint::Endpoint;
use super::io_task::Connection;
use super::prepare::ask;
use super::progress::Progress;
use super::reach::cut;
use crate::error::NodeError;
use redis::{Pipeline, Value};
use std::sync::Arc;

/// Maximum length of a reply in bytes: a list of some twenty thousand clients. Too small: the processes behind the locks of a busy server
/// cannot be named. Too large: one query costs more memory, and more time of the server.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

pub(super) struct AdminConnection(Connection);

impl AdminConnection {
    /// Opens the connection.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses.
    pub(super) async fn begin(endpoint: &Endpoint) -> Result<Self, NodeError> {
        let (connection, _) = greet(endpoint, None, &Progress::default()).await?;
        connection.control.received.allow(LONGEST_ANSWER);
        Ok(Self(connection))
    }

    /// Makes the server not count later reads as uses of a key, if it supports this: the server decides by the uses which keys to evict.
    ///
    /// # Errors
    /// If the connection breaks.
    pub(super) async fn enable_no_touch(&mut self) -> Result<(), NodeError> {
        let mut question = redis::pipe();
        question.cmd("CLIENT").arg("NO-TOUCH").arg("ON");
        // Servers before 7.2 do not know the command, and some users may not run it.
        self.ask(&question).await.map(drop)
    }

    /// Returns the replies, one for each query.
    ///
    /// # Errors
    /// If the connection breaks, or a reply is too long. Refusals of the server are among the replies.
    pub(super) async fn ask(&mut self, questions: &Pipeline) -> Result<Vec<Result<Value, NodeError>>, NodeError> {
        let control = Arc::clone(&self.0.control);
        let answers = ask(&mut self.0, questions).await.map_err(|error| cut(&control).unwrap_or(error))?;
        Ok(answers.into_iter().map(|answer| answer.extract_error().map_err(|error| refused(&error))).collect())
    }
}

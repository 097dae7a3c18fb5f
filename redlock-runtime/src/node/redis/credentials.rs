//! Credentials that can change while the program runs.

use crate::error::NodeError;
use crate::node::BoxFuture;
use redis::RedisConnectionInfo;
use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::Poll;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// User and password for one connection. `Debug` shows neither of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// Creates credentials with a user and a password.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// Creates credentials with a password for the user in the URL, or for the default user.
    #[must_use]
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// Returns `login` with these credentials.
    fn fill_in(self, login: RedisConnectionInfo) -> RedisConnectionInfo {
        let login = self.user.into_iter().fold(login, RedisConnectionInfo::set_username);
        login.set_password(self.password)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// Login at Sentinels.
#[derive(Clone, Default)]
pub(super) struct SentinelLogin {
    pub(super) user: Option<String>,
    password: Option<String>,
    pub(super) password_file: Option<PathBuf>,
}

impl SentinelLogin {
    pub(super) fn of(Credentials { user, password }: Credentials) -> Self {
        Self { user, password: Some(password), password_file: None }
    }

    pub(super) const fn lacks_password(&self) -> bool {
        self.user.is_some() && self.password.is_none() && self.password_file.is_none()
    }

    /// Returns the known part of the login, and the source of the rest.
    pub(super) fn parts(self) -> (RedisConnectionInfo, Option<CredentialsSource>) {
        let login = self.user.into_iter().fold(RedisConnectionInfo::default(), RedisConnectionInfo::set_username);
        let login = self.password.into_iter().fold(login, RedisConnectionInfo::set_password);
        (login, self.password_file.map(CredentialsSource::PasswordFile))
    }
}

type Asked = Result<Credentials, Box<dyn std::error::Error + Send + Sync>>;
type Ask = Box<dyn Fn() -> BoxFuture<'static, Asked> + Send + Sync>;
/// Result of a call, after it has returned.
type Said = Option<Result<Credentials, NodeError>>;

/// Call-back of the program. One call runs at a time, and all connections that wait during the call share its result.
pub(super) struct Program {
    ask: Ask,
    /// Running call, if any.
    question: Mutex<Weak<watch::Sender<Said>>>,
}

/// Source of the credentials of each new connection.
#[derive(Clone)]
pub(super) enum CredentialsSource {
    /// Calls the program.
    Asked(Arc<Program>),
    /// Reads the password from a file.
    PasswordFile(PathBuf),
}

impl CredentialsSource {
    pub(super) fn asking<R>(ask: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Asked> + Send + 'static,
    {
        Self::Asked(Arc::new(Program { ask: Box::new(move || Box::pin(ask())), question: Mutex::default() }))
    }

    /// Returns `login` with the current credentials. The call-back runs on the runtime of the program, `host`, while that runtime lives.
    pub(super) async fn fill_in(
        &self,
        login: RedisConnectionInfo,
        host: Option<&Handle>,
    ) -> Result<RedisConnectionInfo, NodeError> {
        let credentials = match self {
            Self::Asked(program) => answer(program.ask(host)?).await?,
            Self::PasswordFile(path) => password_in(path).await?,
        };
        Ok(credentials.fill_in(login))
    }
}

impl Program {
    /// Calls the call-back, or waits for the result of the running call.
    ///
    /// The call-back can block, panic or depend on the runtime of the program. It therefore runs on that runtime, in a separate task. The
    /// task ends when no connection waits for it any more. A blocked task does not end then, and no second task is started.
    ///
    /// # Errors
    /// If all connections that waited for the result are gone, and the task is still running.
    fn ask(self: &Arc<Self>, host: Option<&Handle>) -> Result<watch::Receiver<Said>, NodeError> {
        // The code of the program never runs under this mutex.
        let mut question = self.question.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = question.upgrade().filter(|asked| asked.borrow().is_none()) {
            let is_waited_for = asked.receiver_count() > 0;
            return is_waited_for.then(|| asked.subscribe()).ok_or_else(|| NodeError::Unreachable(UNANSWERED.into()));
        }
        let (said, answer) = watch::channel(None);
        let asked = Asking(Arc::new(said));
        *question = Arc::downgrade(&asked.0);
        drop(question);
        let asking = asked.ask(Arc::clone(self));
        match host {
            Some(host) => host.spawn(asking),
            None => tokio::spawn(asking),
        };
        Ok(answer)
    }
}

/// Notifies the waiting connections if the task ends without a result.
struct Asking(Arc<watch::Sender<Said>>);

impl Asking {
    async fn ask(self, program: Arc<Program>) {
        let (mut asked, mut unwanted) = (pin!(async { (program.ask)().await }), pin!(self.0.closed()));
        let said = poll_fn(|cx| match asked.as_mut().poll(cx) {
            Poll::Ready(said) => Poll::Ready(Some(said)),
            Poll::Pending => unwanted.as_mut().poll(cx).map(|()| None),
        });
        if let Some(said) = said.await {
            self.0.send_replace(Some(said.map_err(|error| NodeError::Unreachable(no_credentials(&*error)))));
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send_replace(Some(Err(NodeError::Unsupported(PANICKED.into()))));
        }
    }
}

/// Waits for the result of a call.
async fn answer(mut said: watch::Receiver<Said>) -> Result<Credentials, NodeError> {
    let ended = || NodeError::Unreachable(ENDED.into());
    let said = said.wait_for(Option::is_some).await.map_err(|_| ended())?;
    said.clone().unwrap_or_else(|| Err(ended()))
}

const UNANSWERED: &str = "the call-back for the credentials has not returned since the last attempt: it must not block";
const PANICKED: &str = "the call-back for the credentials panicked";
const ENDED: &str = "the runtime that the manager was built on has ended, so the call-back for the credentials cannot \
                     run";

/// Formats the error of the call-back with its causes.
fn no_credentials(error: &dyn std::error::Error) -> Box<str> {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let causes = causes.fold(String::new(), |causes, cause| format!("{causes}: {cause}"));
    format!("the call-back for the credentials failed: {error}{causes}").into()
}

/// Reads the password from a file, without a line break at the end.
async fn password_in(path: &Path) -> Result<Credentials, NodeError> {
    let file = path.to_owned();
    let text = tokio::task::spawn_blocking(|| std::fs::read_to_string(file)).await;
    let text = text.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let unreadable =
        |error| NodeError::Unsupported(format!("the password file {} cannot be read: {error}", path.display()).into());
    Ok(Credentials::password(text.map_err(unreadable)?.trim_end_matches(['\r', '\n'])))
}

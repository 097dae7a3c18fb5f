//! The login at a server, where it is not the same for ever.

use crate::error::NodeError;
use crate::node::BoxFuture;
use redis::RedisConnectionInfo;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// User and password for one connection. `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// The login of a named user.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// A password for the user in the URL, or else for the default one.
    #[must_use]
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// `login` with these in place of its own.
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

type Asked = Result<Credentials, Box<dyn std::error::Error + Send + Sync>>;
type Ask = Arc<dyn Fn() -> BoxFuture<'static, Asked> + Send + Sync>;

/// Where credentials come from, each time that a connection is made.
#[derive(Clone)]
pub(super) enum CredentialsSource {
    /// What the program says.
    Asked(Ask, Arc<Semaphore>),
    /// The password is the text of a file.
    PasswordFile(PathBuf),
}

impl CredentialsSource {
    pub(super) fn asking<R>(ask: impl Fn() -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Asked> + Send + 'static,
    {
        Self::Asked(Arc::new(move || Box::pin(ask())), Arc::new(Semaphore::new(1)))
    }

    /// `login` with the credentials that are right now. The program is asked on its own runtime, the `host`, while that lives.
    pub(super) async fn fill_in(
        &self,
        login: RedisConnectionInfo,
        host: Option<&Handle>,
    ) -> Result<RedisConnectionInfo, NodeError> {
        let credentials = match self {
            Self::Asked(ask, one) => asked(ask, one, host).await?,
            Self::PasswordFile(path) => password_in(path).await?,
        };
        Ok(credentials.fill_in(login))
    }
}

/// What the program says. Its code may block, panic or rely on the runtime that it began on: so it runs there, in a task of its
/// own, which ends when nobody waits for it any more. A task that blocks does not end by that, and is not given company.
async fn asked(ask: &Ask, one: &Arc<Semaphore>, host: Option<&Handle>) -> Result<Credentials, NodeError> {
    let permit = Arc::clone(one).try_acquire_owned().map_err(|_| NodeError::Unreachable(UNANSWERED.into()))?;
    let (mut task, ask) = (JoinSet::new(), Arc::clone(ask));
    let asking = async move {
        let _permit = permit;
        ask().await
    };
    match host {
        Some(host) => task.spawn_on(asking, host),
        None => task.spawn(asking),
    };
    match task.join_next().await {
        Some(Ok(Ok(credentials))) => Ok(credentials),
        Some(Ok(Err(error))) => Err(NodeError::Unreachable(no_credentials(&*error))),
        Some(Err(error)) if error.is_panic() => Err(NodeError::Unfit(PANICKED.into())),
        _ => Err(NodeError::Unreachable(ENDED.into())),
    }
}

const UNANSWERED: &str = "the call-back for the credentials has not answered since the last try: it must not block";
const PANICKED: &str = "the call-back for the credentials panicked";
const ENDED: &str = "the runtime that the manager was built on has ended, and can give no credentials";

/// The error of the program, and what caused it.
fn no_credentials(error: &dyn std::error::Error) -> Box<str> {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let causes = causes.fold(String::new(), |causes, cause| format!("{causes}: {cause}"));
    format!("the program gave no credentials: {error}{causes}").into()
}

/// The password in a file, without the line break that editors leave at its end.
async fn password_in(path: &Path) -> Result<Credentials, NodeError> {
    let file = path.to_owned();
    let text = tokio::task::spawn_blocking(|| std::fs::read_to_string(file)).await;
    let text = text.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    let unreadable =
        |error| NodeError::Unfit(format!("the password file {} cannot be read: {error}", path.display()).into());
    Ok(Credentials::password(text.map_err(unreadable)?.trim_end_matches(['\r', '\n'])))
}

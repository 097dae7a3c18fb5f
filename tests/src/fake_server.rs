//! A server with scripted answers: a lying Sentinel, a cluster node that names members that do not exist, hostile errors, or a
//! server of another protocol.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Entry of a new connection among the received commands.
const CONNECTED: &str = "(connected)";

/// Command of a client of a [`FakeServer`].
#[derive(Clone, Debug)]
pub struct ReceivedCommand {
    /// Number of the connection, counted from 0.
    pub client: usize,
    /// The command as one text, such as `CLUSTER SLOTS`.
    pub command: String,
    /// Numbers of the connections that were open when the command arrived.
    pub open: Vec<usize>,
}

/// Speaks RESP on loopback until it is dropped, and records the commands of clients.
#[derive(Debug)]
pub struct FakeServer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
    commands: Arc<Mutex<Vec<ReceivedCommand>>>,
    clients: Arc<Mutex<JoinSet<()>>>,
    accepting: JoinHandle<()>,
}

impl FakeServer {
    /// Answers each command with the bytes that `answer` returns. A command is passed as one text, such as `CLUSTER SLOTS`.
    pub async fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let (received, answer) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(answer));
        let commands = Arc::clone(&received);
        Self::start_with(received, move |client| serve(client, Arc::clone(&commands), Arc::clone(&answer))).await
    }

    /// Like [`start`](Self::start), with the number of the client, counted from 0, as the first argument of `answer`. Records which
    /// connections are open at each command.
    pub async fn start_numbered(answer: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> Self {
        let (commands, sockets) = (Arc::<Mutex<Vec<ReceivedCommand>>>::default(), Arc::<Mutex<Sockets>>::default());
        let (answer, recorded) = (Arc::new(answer), Arc::clone(&commands));
        let mut server = Self::start_raw(move |client| {
            let (answer, commands, sockets) = (Arc::clone(&answer), Arc::clone(&recorded), Arc::clone(&sockets));
            let socket = client.into_std().expect("a socket");
            let number = {
                let mut sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
                sockets.push(socket.try_clone().expect("a second handle"));
                sockets.len() - 1
            };
            async move {
                let mut client = BufReader::new(TcpStream::from_std(socket).expect("a socket"));
                while let Some(command) = command(&mut client).await {
                    let open = open(&sockets, number).await;
                    let reply = answer(number, &command);
                    let command = ReceivedCommand { client: number, command, open };
                    commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
                    if client.write_all(reply.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        })
        .await;
        server.commands = commands;
        server
    }

    /// Does not speak RESP: answers the first bytes of each client with `answer` and closes the connection.
    pub async fn start_non_redis(answer: &'static str) -> Self {
        Self::start_raw(move |mut client: TcpStream| async move {
            let mut asked = vec![0; 1 << 16];
            if client.read(&mut asked).await.is_ok_and(|bytes| bytes > 0) {
                let _ = client.write_all(answer.as_bytes()).await;
                // Unread bytes of the client would reset the connection, and the answer would be lost.
                let _ = client.shutdown().await;
                while client.read(&mut asked).await.is_ok_and(|bytes| bytes > 0) {}
            }
        })
        .await
    }

    /// Closes each connection at once, as a load balancer without a server behind it does.
    pub async fn start_closing() -> Self {
        Self::start_raw(|_| async {}).await
    }

    /// Accepts connections and sends nothing.
    pub async fn start_silent() -> Self {
        Self::start_raw(|mut client: TcpStream| async move {
            let mut asked = vec![0; 1 << 16];
            while client.read(&mut asked).await.is_ok_and(|bytes| bytes > 0) {}
        })
        .await
    }

    async fn start_raw<S>(serve: impl Fn(TcpStream) -> S + Send + Sync + 'static) -> Self
    where
        S: Future<Output = ()> + Send + 'static,
    {
        Self::start_with(Arc::default(), serve).await
    }

    async fn start_with<S>(
        received: Arc<Mutex<Vec<String>>>,
        serve: impl Fn(TcpStream) -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let clients = Arc::<Mutex<JoinSet<()>>>::default();
        let accepting = tokio::spawn({
            let (received, clients) = (Arc::clone(&received), Arc::clone(&clients));
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    record(&received, CONNECTED);
                    clients.lock().unwrap_or_else(PoisonError::into_inner).spawn(serve(client));
                }
            }
        });
        Self { address, received, commands: Arc::default(), clients, accepting }
    }

    /// Returns the port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Closes the connections of all clients. New ones are accepted.
    pub fn disconnect(&self) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }

    /// Returns the number of connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.received().iter().filter(|line| *line == CONNECTED).count()
    }

    /// Returns all commands so far, if the server was started with [`start_numbered`](Self::start_numbered).
    #[must_use]
    pub fn commands(&self) -> Vec<ReceivedCommand> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns all commands so far, with a line `(connected)` for each connection.
    #[must_use]
    pub fn received(&self) -> Vec<String> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Second handles of the sockets of all clients. A closed socket stays open on this side.
type Sockets = Vec<std::net::TcpStream>;

/// Number of turns that the other tasks of a [`FakeServer`] get to read what has arrived. Unread bytes hide the end of a connection.
const TURNS: usize = 100;

/// Returns the numbers of the clients that have not closed their connections, except for `this` one.
async fn open(sockets: &Mutex<Sockets>, this: usize) -> Vec<usize> {
    let peek = |client: usize| {
        let sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.get(client).map(|socket| socket.peek(&mut [0]))
    };
    let mut open = Vec::new();
    let clients = sockets.lock().unwrap_or_else(PoisonError::into_inner).len();
    for client in (0..clients).filter(|client| *client != this) {
        let mut turns = 0;
        while turns < TURNS && matches!(peek(client), Some(Ok(1..))) {
            turns += 1;
            tokio::task::yield_now().await;
        }
        let is_open = match peek(client) {
            Some(Ok(unread)) => unread > 0,
            Some(Err(error)) => error.kind() == ErrorKind::WouldBlock,
            None => false,
        };
        if is_open {
            open.push(client);
        }
    }
    open
}

fn record(received: &Mutex<Vec<String>>, what: &str) {
    received.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
}

async fn serve(
    client: TcpStream,
    received: Arc<Mutex<Vec<String>>>,
    answer: Arc<impl Fn(&str) -> String + Send + Sync>,
) {
    let mut client = BufReader::new(client);
    while let Some(command) = command(&mut client).await {
        record(&received, &command);
        if client.write_all(answer(&command).as_bytes()).await.is_err() {
            break;
        }
    }
}

/// Reads one command, which is an array of bulk strings.
async fn command(client: &mut BufReader<TcpStream>) -> Option<String> {
    let words = number(client, '*').await?;
    let mut command = Vec::new();
    for _ in 0..words {
        let mut word = vec![0; number(client, '$').await? + 2];
        client.read_exact(&mut word).await.ok()?;
        word.truncate(word.len() - 2);
        command.push(String::from_utf8_lossy(&word).into_owned());
    }
    Some(command.join(" "))
}

async fn number(client: &mut BufReader<TcpStream>, kind: char) -> Option<usize> {
    let mut line = String::new();
    client.read_line(&mut line).await.ok()?;
    line.trim_end().strip_prefix(kind)?.parse().ok()
}

//! Counts the commands that clients send to the nodes. Each of them is a round trip.
//!
//! The count comes from `MONITOR`, because the counters of `INFO` include the commands inside scripts. `MONITOR` slows
//! a server down a little, so commands are counted in separate turns that are not timed.

use crate::plan::LIMIT;
use redlock_tests::{Nodes, RedisServer};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use tokio::task::{JoinHandle, spawn_blocking};

/// Last command in the output of `MONITOR`. It is not counted.
const END: [&str; 2] = ["ECHO", "end of the count"];
const FROM_SCRIPT: &str = " lua] ";

/// Running count. [`Count::end`] ends it.
pub(crate) struct Count<'a> {
    nodes: &'a Nodes,
    counting: Vec<JoinHandle<u64>>,
}

impl<'a> Count<'a> {
    pub(crate) async fn begin(nodes: &'a Nodes) -> Self {
        let mut counting = Vec::new();
        for node in nodes.iter() {
            // Connect before `MONITOR` starts, so that connecting is not counted.
            node.inspect().wait_until_reachable().await;
            let monitor = monitor(node);
            counting.push(spawn_blocking(move || count(monitor)));
        }
        Self { nodes, counting }
    }

    /// Returns the number of commands on all nodes since the beginning.
    pub(crate) async fn end(self) -> u64 {
        let mut sum = 0;
        for node in self.nodes.iter() {
            node.inspect().command::<String>(&END).await;
        }
        for counting in self.counting {
            sum += counting.await.expect("the monitor is read to its end");
        }
        sum
    }
}

fn monitor(node: &RedisServer) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", node.port())).expect("connects");
    stream.set_read_timeout(Some(LIMIT * 2)).expect("a time above zero");
    stream.write_all(b"MONITOR\r\n").expect("the server listens");
    let (mut stream, mut answer) = (BufReader::new(stream), String::new());
    stream.read_line(&mut answer).expect("the server answers");
    assert_eq!(answer.trim_end(), "+OK");
    stream
}

fn count(monitor: BufReader<TcpStream>) -> u64 {
    // A filter on the line is safe: the keys are plain text, and `MONITOR` escapes everything else.
    let lines = monitor.lines().map(|line| line.expect("the server reports until the end"));
    let sent = lines.take_while(|line| !line.contains(END[1])).filter(|line| !line.contains(FROM_SCRIPT));
    sent.count().try_into().expect("a number of commands")
}

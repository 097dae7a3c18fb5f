//! Blocking socket to a server: a client without any overhead.

use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) struct Wire {
    pub(crate) socket: TcpStream,
    /// Number of reply lines that were not read yet.
    owed: usize,
}

impl Wire {
    pub(crate) fn connect(url: &str) -> Self {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let socket = TcpStream::connect(address).expect("the node is up");
        socket.set_nodelay(true).expect("a socket");
        Self { socket, owed: 0 }
    }

    /// Loads a script on the server and returns its digest.
    pub(crate) fn load(&mut self, script: &str) -> String {
        self.socket.write_all(&command(&["SCRIPT", "LOAD", script])).expect("it is up");
        let (mut reply, mut read) = (Vec::new(), [0; 256]);
        while lines(&reply) < 2 {
            let length = self.socket.read(&mut read).expect("it answers");
            reply.extend_from_slice(&read[..length]);
        }
        let reply = String::from_utf8(reply).expect("a digest");
        reply.lines().nth(1).expect("after its length").to_owned()
    }

    pub(crate) fn send(&mut self, command: &[u8]) {
        self.socket.write_all(command).expect("it is up");
        self.owed += 1;
    }

    /// Reads all outstanding replies.
    pub(crate) fn settle(&mut self) {
        let mut read = [0; 256];
        while self.owed > 0 {
            let length = self.socket.read(&mut read).expect("it answers");
            self.owed -= lines(&read[..length]);
        }
    }
}

pub(crate) fn command(parts: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
    }
    bytes
}

/// Counts the line ends in `bytes`.
pub(crate) fn lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

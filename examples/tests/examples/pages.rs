//! Runs the programs in README.md and the guide. `tests/tests/pages/front.rs` compares their sources with the pages.

use crate::http;
use crate::program::{alone, command};
use redlock_tests::{Nodes, PATIENCE, RedisServer, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

const FIRST_PROGRAM: &str = env!("CARGO_BIN_EXE_first_program");
const FIRST_SERVICE: &str = env!("CARGO_BIN_EXE_first_service");
const START_AND_STOP: &str = env!("CARGO_BIN_EXE_start_and_stop");

fn send_signal(process: &Child, signal: Signal) {
    let id = process.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    kill_process(id.expect("it is running"), signal).unwrap();
}

async fn assert_exits_successfully(mut process: Child) {
    let status = timeout(PATIENCE, process.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
}

async fn assert_no_key_is_left(server: &RedisServer) {
    let keys = server.inspect().keys().await;
    assert!(keys.is_empty(), "{keys:?}");
}

#[tokio::test]
async fn quick_start_processes_take_turns_and_stop_on_signals() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    // Both processes append to one file, which keeps their lines in the order of printing.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("quick-start-{}.log", std::process::id()));
    let file = File::options().create(true).append(true).open(&path).unwrap();
    let start = || {
        let mut command = command(FIRST_PROGRAM, Some(&server.url()));
        command.stdout(file.try_clone().unwrap()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    let processes = [start(), start()];
    let ids = processes.each_ref().map(|process| process.id().unwrap().to_string());
    let has_paid = |text: &str, id: &String| text.contains(&format!("process {id}: order 7 is paid\n"));
    eventually(PATIENCE, "both have had the lock", async || {
        let text = fs::read_to_string(&path).unwrap();
        if ids.iter().all(|id| has_paid(&text, id)) { Ok(()) } else { Err(text) }
    })
    .await;
    for (process, signal) in processes.iter().zip([Signal::TERM, Signal::INT]) {
        send_signal(process, signal);
    }
    for process in processes {
        assert_exits_successfully(process).await;
    }
    assert_no_key_is_left(&server).await;

    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    for calls in lines.chunks(2) {
        let [begins, paid] = calls else { panic!("a call was not finished:\n{text}") };
        let process = begins.strip_suffix(" begins").unwrap_or_else(|| panic!("two calls at once:\n{text}"));
        assert_eq!(paid.strip_suffix(" is paid"), Some(process), "two calls at once:\n{text}");
    }
}

/// Starts a service on a free port, and returns it with its address.
async fn start_service(program: &str, nodes: &str) -> (Child, SocketAddr) {
    let mut command = command(program, Some(nodes));
    let mut process = command.env("LISTEN", "127.0.0.1:0").stderr(Stdio::inherit()).spawn().unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, stdout.next_line()).await.expect("it starts").unwrap().expect("it prints its address");
    (process, line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).parse().unwrap())
}

#[tokio::test]
async fn guide_services_finish_running_calls_on_a_signal() {
    let _alone = alone().await;
    let services = [
        (FIRST_SERVICE, "/orders/7/capture", "order:7", "order 7 is paid\n"),
        (START_AND_STOP, "/report", "report", "the report is written\n"),
    ];
    for (program, path, key, answer) in services {
        for signal in [Signal::TERM, Signal::INT] {
            let nodes = Nodes::start(1).await;
            let (process, address) = start_service(program, &nodes[0].url()).await;
            let call = http::send(address, "POST", path, "").await;
            eventually(PATIENCE, "the call holds its lock", async || nodes[0].inspect().get(key).await.ok_or(())).await;
            send_signal(&process, signal);
            let reply = http::receive(call).await;
            assert_eq!((reply.status, reply.body.as_str()), (200, Some(answer)), "{program} {signal:?}");
            assert_exits_successfully(process).await;
            assert_no_key_is_left(&nodes[0]).await;
        }
    }
}

#[tokio::test]
async fn contended_call_of_the_first_service_returns_conflict() {
    let _alone = alone().await;
    let server = RedisServer::start().await;
    let services =
        [start_service(FIRST_SERVICE, &server.url()).await, start_service(FIRST_SERVICE, &server.url()).await];
    let capture =
        async |(_, address): &(Child, SocketAddr)| http::send(*address, "POST", "/orders/7/capture", "").await;
    let first = capture(&services[0]).await;
    eventually(PATIENCE, "the call holds its lock", async || server.inspect().get("order:7").await.ok_or(())).await;
    let second = http::receive(capture(&services[1]).await).await;
    assert_eq!((second.status, second.retry_after), (409, Some(5)), "{second:?}");
    let page = include_str!("../../../redlock-runtime/docs/guide/start/quick_start.md");
    assert!(page.contains(second.body.as_str().unwrap()), "{second:?}");
    assert_eq!(http::receive(first).await.status, 200);
}

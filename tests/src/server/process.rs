//! One operating system process that runs `redis-server`: its log, its signals, its end.

use std::io::{self, BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::sync::watch;

use super::fake_clock::FakeClock;
use super::spawner;
use crate::PATIENCE;
use crate::external::REDIS_SERVER;

/// Error: another process listens on the port. Contains the log.
#[derive(Debug)]
pub(super) struct PortTaken(pub(super) String);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Starting,
    Ready,
    Ended,
}

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
    phase: watch::Receiver<Phase>,
}

impl Process {
    /// Starts the server and returns after it has logged that it is ready.
    ///
    /// The log is better evidence than an answer to PING, which could come from another process on the same port.
    pub(super) async fn start(config: &Path, mode: &[&str], clock: Option<&FakeClock>) -> Result<Self, PortTaken> {
        let mut process = Self::spawn(config, mode, clock).unwrap_or_else(|error| REDIS_SERVER.cannot_run(&error));
        let started = process.phase.wait_for(|phase| *phase != Phase::Starting);
        let started = tokio::time::timeout(PATIENCE, started).await;
        let phase = started.ok().and_then(Result::ok).map(|phase| *phase);
        match (phase, process.log()) {
            (Some(Phase::Ready), _) => Ok(process),
            (Some(Phase::Ended), log) if log.contains("already in use") => Err(PortTaken(log)),
            (Some(_), log) => {
                process.explain_missing_binary(&log);
                panic!("redis-server ended before it was ready:\n{log}")
            }
            (None, log) => panic!("redis-server is not ready after {PATIENCE:?}:\n{log}"),
        }
    }

    fn spawn(config: &Path, mode: &[&str], clock: Option<&FakeClock>) -> io::Result<Self> {
        let (output, input) = io::pipe()?;
        let mut command = spawner::command(&REDIS_SERVER.path());
        command.arg(config).args(mode).stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        if let Some(clock) = clock {
            clock.install(&mut command);
        }
        let child = spawner::spawn(command)?;
        let log = Arc::default();
        let (phase_sender, phase) = watch::channel(Phase::Starting);
        let (copy, reader) = (Arc::clone(&log), BufReader::new(output));
        thread::Builder::new().name("redis log".to_owned()).spawn(move || follow(reader, &copy, &phase_sender))?;
        Ok(Self { child, log, phase })
    }

    /// Explains a missing binary by its exit code. `setpriv` starts even if the server does not.
    fn explain_missing_binary(&mut self, log: &str) {
        let code = self.child.wait().ok().and_then(|status| status.code());
        if code == Some(127) {
            REDIS_SERVER.cannot_run(&io::Error::other(log.trim().to_owned()));
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_running(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // A reaped child is an error here: it does not run either.
        matches!(waitid(WaitId::Pid(self.pid()), options), Ok(None))
    }

    /// Stops the process. Returns when the kernel has really stopped it, because the signal alone is only a request.
    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
        // EXITED so that a server dying just now cannot keep us waiting; NOWAIT leaves the status for `Child`.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(self.pid()), options)).expect("the frozen server is our child");
    }

    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends SIGTERM, and SIGCONT: in a stopped process, the first signal would stay pending for ever.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Resolves when the process has closed its log, or after [`PATIENCE`].
    pub(super) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut phase = self.phase.clone();
        async move {
            let _ = tokio::time::timeout(PATIENCE, phase.wait_for(|phase| *phase == Phase::Ended)).await;
        }
    }

    /// Sends SIGKILL and reaps the process. Does nothing to a process that has ended.
    pub(super) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        assert!(self.is_running(), "redis-server {} has ended:\n{}", self.id(), self.log());
        // Not yet reaped, so the id cannot belong to another process.
        kill_process(self.pid(), signal).expect("a signal to our own child");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Keeps the pipe empty, whatever the server writes, until it ends.
fn follow(output: BufReader<PipeReader>, log: &Mutex<String>, phase: &watch::Sender<Phase>) {
    for line in output.lines().map_while(Result::ok) {
        // The second text is that of a Sentinel.
        let is_ready = line.contains("Ready to accept connections") || line.contains("Sentinel ID is");
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(&line);
        log.push('\n');
        drop(log);
        if is_ready {
            phase.send_replace(Phase::Ready);
        }
    }
    phase.send_replace(Phase::Ended);
}

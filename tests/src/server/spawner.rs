//! Child processes that do not outlive the tests.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::thread;

type Job = (Command, mpsc::Sender<io::Result<Child>>);

/// Thread that starts all children, and never ends. The kernel sends the parent-death signal when the *thread* that
/// forked ends. libtest runs every test in a separate thread, so a shared server would die with its first test.
static SPAWNER: LazyLock<Mutex<mpsc::Sender<Job>>> = LazyLock::new(|| {
    let (jobs, queue) = mpsc::channel::<Job>();
    let work = move || {
        for (mut command, answer) in queue {
            let _ = answer.send(command.spawn());
        }
    };
    thread::Builder::new().name("spawner".to_owned()).spawn(work).expect("the spawner thread starts");
    Mutex::new(jobs)
});

/// `true` if this machine has `setpriv` of util-linux. The version of busybox lacks the option.
static HAS_SETPRIV: LazyLock<bool> = LazyLock::new(|| {
    let mut probe = Command::new("setpriv");
    probe.args(["--pdeathsig", "KILL", "true"]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
});

/// Returns the command for `program`. The kernel kills it when the test process dies, if the kernel supports that.
///
/// `setpriv` replaces itself by the program, so the child's process id is the program's. Setting the signal ourselves
/// between fork and exec would need `unsafe`.
pub(super) fn command(program: &std::ffi::OsStr) -> Command {
    if !*HAS_SETPRIV {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

pub(super) fn spawn(command: Command) -> io::Result<Child> {
    let (answer, child) = mpsc::channel();
    SPAWNER.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).expect("the spawner runs");
    child.recv().expect("the spawner answers")
}

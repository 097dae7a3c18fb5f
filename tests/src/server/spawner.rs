//! Starting child processes that do not outlive the tests.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::thread;

type Job = (Command, mpsc::Sender<io::Result<Child>>);

/// One thread that never ends starts all children. The kernel sends the parent-death signal when the *thread* that
/// forked ends, and libtest runs every test in a thread of its own: a server shared by tests would die with the first.
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

/// Whether this machine has `setpriv` of util-linux; that of busybox lacks the option.
static HAS_SETPRIV: LazyLock<bool> = LazyLock::new(|| {
    let mut probe = Command::new("setpriv");
    probe.args(["--pdeathsig", "KILL", "true"]);
    probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
});

/// The command for `program`, killed by the kernel when the test process dies, where the kernel can do that.
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

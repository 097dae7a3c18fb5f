//! A timer that continues while the machine is suspended, if the system has one. It stands still while a hypervisor pauses the machine.

use crate::time::clock::{Clock, Instant};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Tokio's timers stand still while the machine is suspended, and leases do not: after the resume, bodies would continue until their
/// timers had caught up.
#[derive(Debug)]
pub(super) struct Timer {
    clock: Clock,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    boot: Option<boot::BootTimer>,
}

impl Timer {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            boot: matches!(clock, Clock::Boot).then(boot::BootTimer::new).and_then(Result::ok),
        }
    }

    /// Sleeps until `at`, or until `wake` is notified.
    pub(super) async fn sleep_until(&mut self, at: Instant, wake: &Notify) {
        let pause = at.since(self.clock.now());
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(boot) = &self.boot {
            return boot.sleep(pause, wake).await;
        }
        // Whichever comes first.
        let _ = timeout(pause, wake.notified()).await;
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod boot {
    use rustix::io::{Errno, read};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use std::future::{Future, poll_fn};
    use std::io;
    use std::os::fd::OwnedFd;
    use std::pin::pin;
    use std::task::{Context, Poll, ready};
    use std::time::Duration;
    use tokio::io::unix::AsyncFd;
    use tokio::sync::Notify;

    #[derive(Debug)]
    pub(super) struct BootTimer(AsyncFd<OwnedFd>);

    impl BootTimer {
        // The replacement is unsafe, because descriptors may change while it uses them; an owned descriptor does not.
        #[allow(deprecated, reason = "sound for an owned descriptor")]
        pub(super) fn new() -> io::Result<Self> {
            let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            Ok(Self(AsyncFd::new(timer)?))
        }

        pub(super) async fn sleep(&self, pause: Duration, wake: &Notify) {
            // Zero would disarm it.
            if self.arm(pause.max(Duration::from_nanos(1))).is_err() {
                return super::timeout(pause, wake.notified()).await.unwrap_or_default();
            }
            let mut woken = pin!(wake.notified());
            poll_fn(|cx| match woken.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => self.poll_fired(cx),
            })
            .await;
        }

        fn arm(&self, pause: Duration) -> Result<(), Errno> {
            let none = Timespec { tv_sec: 0, tv_nsec: 0 };
            let it_value = Timespec::try_from(pause).map_err(|_| Errno::INVAL)?;
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &Itimerspec { it_interval: none, it_value })?;
            Ok(())
        }

        fn poll_fired(&self, cx: &mut Context<'_>) -> Poll<()> {
            loop {
                let Ok(mut ready) = ready!(self.0.poll_read_ready(cx)) else { return Poll::Ready(()) };
                // The number of expirations, which must be read before the next one is noticed.
                match ready.try_io(|timer| read(timer.get_ref(), &mut [0; 8]).map_err(io::Error::from)) {
                    Ok(_) => return Poll::Ready(()),
                    Err(_would_block) => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn timer_fires_and_can_be_woken() {
        for clock in [Clock::Boot, Clock::tokio()] {
            let (mut timer, wake) = (Timer::new(clock), Notify::new());
            for pause in [Duration::from_millis(20), Duration::ZERO, Duration::from_millis(5)] {
                let at = clock.now().after(pause);
                timer.sleep_until(at, &wake).await;
                assert!(clock.now() >= at, "{clock:?}");
            }
            wake.notify_one();
            let far = clock.now().after(Duration::from_secs(3600));
            timer.sleep_until(far, &wake).await;
            assert!(clock.now() < far, "{clock:?}");
        }
    }
}

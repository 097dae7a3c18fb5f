//! Name lookups in child processes are slow and fail on demand.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::process::Command;
use std::time::Duration;

use redlock_tests::NameService;

/// Returns `true` if a child process finds an address of `localhost`.
fn finds(names: &NameService) -> bool {
    Command::new("getent").args(["ahosts", "localhost"]).envs(names.variables()).output().unwrap().status.success()
}

#[test]
fn lookups_are_delayed_and_fail_until_the_service_recovers() {
    let names = NameService::start();
    assert!(finds(&names));
    assert_eq!(names.disturbed(), 0);
    names.delay(Duration::from_millis(10));
    assert!(finds(&names));
    assert_eq!(names.disturbed(), 1);
    names.fail(Duration::ZERO);
    assert!(!finds(&names));
    let disturbed = names.disturbed();
    assert!(disturbed > 1);
    names.recover();
    assert!(finds(&names));
    assert_eq!(names.disturbed(), disturbed);
}

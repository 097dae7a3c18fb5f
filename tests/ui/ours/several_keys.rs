use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(key = [])]
pub async fn empty() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15", "k16"])]
pub async fn too_many() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", "account:{a}"])]
pub async fn twice(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", shared("account:{a}")])]
pub async fn twice_in_two_modes(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", 7])]
pub async fn number(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", ["limits"]])]
pub async fn list_in_a_list(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", format!("account:{b}")])]
pub async fn formatted(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = [read("limits"), "account:{a}"])]
pub async fn in_other_words(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = [shared, "account:{a}"])]
pub async fn without_text(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = [shared("limits", "rates"), "account:{a}"])]
pub async fn two_texts(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ("account:{a}", "account:{b}"))]
pub async fn tuple(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{from}", "account:{two}"])]
pub async fn unknown_name(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{from}:{to}", "account:{from}{to}"])]
pub async fn not_separated(from: u64, to: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key(["account:{a}", "account:{b}"], a = from, c = to))]
pub async fn unused_part(from: u64, to: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", "account:{b}"], once_per = 1h)]
pub async fn in_a_window(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", "account:{b}"], linger = 2s)]
pub async fn lingering(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", "account:{b}"], permits = 4)]
pub async fn permits(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = [shared("limits"), shared("rates")], fencing, guard = lock)]
pub async fn numbered() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["limits", "rates"], mode = shared, fencing, guard = lock)]
pub async fn numbered_by_mode() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["account:{a}", "account:{b}"])]
pub async fn in_the_plural(a: u64, b: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["accounts", "limits"])]
pub async fn the_same_for_all(account_id: u64) -> Result<(), LockError> {
    let _ = account_id;
    Ok(())
}

#[distributed_lock(key = ["account:{a}", "limits"])]
#[distributed_lock(key = ["limits", "account:{a}"])]
pub async fn two_attributes(a: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = ["account:{a}", "account:{b}"])]
pub async fn again(a: u64, b: u64) -> Result<(), LockError> {
    Box::pin(again(a, b)).await
}

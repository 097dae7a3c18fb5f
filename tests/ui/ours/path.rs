use redlock_runtime::{LockError, distributed_lock};

#[distributed_lock(path = "{tenant}/reports")]
pub async fn no_slash_in_front(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}/")]
pub async fn slash_at_the_end(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}//{folder}")]
pub async fn empty_segment(tenant: u64, folder: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}/./{folder}")]
pub async fn dot(tenant: u64, folder: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}/{folder}/..")]
pub async fn dots(tenant: u64, folder: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/")]
pub async fn root() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "")]
pub async fn nothing() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q")]
pub async fn too_deep() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}/files-{dir:/}")]
pub async fn part_of_a_segment(tenant: u64, dir: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}{folder}")]
pub async fn not_separated(tenant: u64, folder: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}{{x}}")]
pub async fn brace_behind_a_value(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = 7)]
pub async fn number() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path)]
pub async fn no_value() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path("/a", "/b"))]
pub async fn second_path() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = ["/{tenant}/{from}", "/{tenant}/{from}"])]
pub async fn twice(tenant: u64, from: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = [])]
pub async fn empty() -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}/{dri}")]
pub async fn unknown_name(tenant: u64, dir: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "{dir:/}")]
pub async fn subpath_in_a_key(dir: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}", key = "tenant:{tenant}")]
pub async fn path_and_key(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}", once_per = 1h)]
pub async fn in_a_window(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}", linger = 2s)]
pub async fn lingering(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}", permits = 4)]
pub async fn permits(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/{tenant}", mode = shared, fencing, guard = lock)]
pub async fn numbered(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(folder = "/{tenant}")]
pub async fn in_other_words(tenant: u64) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(path = "/reports")]
pub async fn the_same_for_all(tenant_id: u64) -> Result<(), LockError> {
    let _ = tenant_id;
    Ok(())
}

#[distributed_lock(path = "/{tenant}/{share}")]
pub async fn float(tenant: u64, share: f64) -> Result<(), LockError> {
    Ok(())
}

pub struct Tree;

#[redlock_runtime::distributed_lock_defaults(path = "/{tenant}", linger = 2s)]
impl Tree {
    #[distributed_lock(path = "/{tenant}")]
    pub async fn in_a_block_that_lingers(&self, tenant: u64) -> Result<(), LockError> {
        Ok(())
    }

    #[distributed_lock(path = "/{tenant}", linger = 0)]
    pub async fn with_its_own(&self, tenant: u64) -> Result<(), LockError> {
        Ok(())
    }
}

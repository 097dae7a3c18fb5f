impl Shop {
    #[distributed_lock(key = "order:{id}", __defaults(manager = self.locks, ttl = 10))]
    async fn capture(&self, id: u64) -> Result<(), Error> {
        Ok(())
    }
    #[cfg_attr(
        feature = "locks",
        locks::distributed_lock(
            key = "report",
            ttl = 60,
            __defaults(manager = self.locks, ttl = 10)
        )
    )]
    async fn report(&self) -> Result<(), Error> {
        Ok(())
    }
    fn plain(&self) {}
}

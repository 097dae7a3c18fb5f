//! Methods of services in the style of tonic, and what they delegate to.

impl Shop for ShopService {
    #[distributed_lock(key = "orders")]
    async fn place_order(&self, request: Request<PlaceOrder>) -> Result<Response<Placed>, Status> {}

    #[distributed_lock(key = "orders")]
    async fn watch(&self, request: tonic::Request<WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {}

    #[distributed_lock(key = "orders")]
    async fn upload(&self, request: Request<Streaming<Chunk>>) -> Result<Response<Summary>, Status> {}

    #[distributed_lock(key = "health")]
    async fn check(&self, _request: Request<()>) -> Result<Response<Health>, Status> {}
}

impl ShopService {
    #[distributed_lock(key = "orders")]
    #[missing(order_id)]
    async fn place(&self, order_id: &str, items: Vec<Item>, metadata: &MetadataMap) -> Result<Placed, Status> {}

    #[distributed_lock(key = "orders")]
    #[missing(tenant_id)]
    async fn place_for(&self, tenant_id: TenantId, message: PlaceOrder) -> Result<Placed, Status> {}

    #[distributed_lock(key = "orders")]
    async fn forward(&self, sender: mpsc::Sender<Result<Event, Status>>, stream: Streaming<Event>) -> Result<(), Status> {}

    #[distributed_lock(key = "orders")]
    async fn drain(&self, receiver: UnboundedReceiver<Event>, deadline: Duration) -> Result<(), Status> {}

    #[distributed_lock(key = "orders")]
    async fn reply(&self, reply: oneshot::Sender<Placed>, placed: Placed) -> Result<(), Status> {}

    #[distributed_lock(key = "stock")]
    #[missing(warehouse_id, sku)]
    async fn reserve(&self, warehouse_id: i64, sku: String, quantity: u32) -> Result<(), Status> {}

    #[distributed_lock(key = "stock")]
    async fn rebalance(&mut self, batch_size: usize, dry_run: bool) -> Result<u64, Status> {}

    #[distributed_lock(key = "stock")]
    async fn import(&self, lines: &[Line], options: ImportOptions) -> Result<usize, Status> {}

    #[distributed_lock(key = "stock")]
    #[missing(tenant)]
    async fn recount(&self, tenant: &str, threshold: f64) -> Result<u64, Status> {}

    #[distributed_lock(key = "auth")]
    async fn authorize(&self, token: &str, scopes: &[&str]) -> Result<Claims, Status> {}

    #[distributed_lock(key = "auth")]
    async fn rotate(&self, signing_key: SigningKey, not_after: SystemTime) -> Result<(), Status> {}

    #[distributed_lock(key = "auth")]
    async fn verify(&self, api_key: &str, public_key: &VerifyingKey) -> Result<(), Status> {}

    #[distributed_lock(key = "accounts")]
    #[missing(from_account, to_account)]
    async fn transfer(&self, from_account: AccountId, to_account: AccountId, amount: Money) -> Result<(), Status> {}

    #[distributed_lock(key = "accounts")]
    #[missing(iban)]
    async fn freeze(&self, iban: &Iban, reason: String) -> Result<(), Status> {}

    #[distributed_lock(key = "accounts")]
    async fn close_all(&self, ids: Vec<AccountId>, force: bool) -> Result<usize, Status> {}

    #[distributed_lock(key = "calls")]
    async fn traced(&self, trace_id: TraceId, span_id: u64, context: Context) -> Result<(), Status> {}

    #[distributed_lock(key = "calls")]
    async fn retried(&self, channel: Channel, attempt: u32, max_attempts: u32, backoff: Duration) -> Result<(), Status> {}

    #[distributed_lock(key = "leases")]
    #[missing(lease_id)]
    async fn renew(&self, lease_id: Ulid, extensions: &Extensions) -> Result<(), Status> {}
}

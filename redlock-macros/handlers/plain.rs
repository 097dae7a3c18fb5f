//! Services without a framework: repositories, domain services and their callers.

impl Orders {
    #[distributed_lock(key = "order")]
    #[missing(order)]
    async fn capture(&self, order: u64, amount: Money) -> Result<Receipt, Error> {}

    #[distributed_lock(key = "order")]
    #[missing(id)]
    async fn cancel(&mut self, id: OrderId, reason: Option<String>) -> Result<(), Error> {}

    #[distributed_lock(key = "order")]
    #[missing(id)]
    async fn refund(self: Arc<Self>, id: &OrderId, lines: Vec<LineId>) -> Result<(), Error> {}

    #[distributed_lock(key = "order")]
    async fn save(&self, order: &Order) -> Result<(), Error> {}

    #[distributed_lock(key = "order")]
    async fn save_all(&self, orders: impl IntoIterator<Item = Order>) -> Result<(), Error> {}

    #[distributed_lock(key = "order")]
    #[missing(number)]
    async fn by_number(&self, number: OrderNumber, include_lines: bool) -> Result<Order, Error> {}

    #[distributed_lock(key = "order")]
    #[missing(order_no)]
    async fn by_no(&self, order_no: &str, locale: &str) -> Result<Order, Error> {}

    #[distributed_lock(key = "order:{self.region}")]
    async fn in_region(&self, id: OrderId) -> Result<Order, Error> {}

    #[distributed_lock(key = "order", manager = locks)]
    async fn with_locks(&self, locks: &LockManager, limit: usize) -> Result<(), Error> {}

    #[distributed_lock(key("order", constant))]
    async fn meant(&self, id: OrderId) -> Result<(), Error> {}
}

#[distributed_lock(key = "tenant")]
#[missing(tenant)]
async fn onboard(tenant: &TenantSlug, plan: Plan) -> Result<(), Error> {}

#[distributed_lock(key = "tenant")]
#[missing(tenant, user)]
async fn invite(tenant: TenantId, user: UserId, role: Role) -> Result<(), Error> {}

#[distributed_lock(key = "tenant")]
async fn settings(tenant: Tenant, settings: Settings) -> Result<(), Error> {}

#[distributed_lock(key = "device")]
#[missing(device_uuid)]
async fn pair(device_uuid: Uuid, secret: [u8; 32]) -> Result<(), Error> {}

#[distributed_lock(key = "device")]
#[missing(serial_number)]
async fn register(serial_number: String, firmware: Version) -> Result<(), Error> {}

#[distributed_lock(key = "account")]
#[missing(account_id)]
async fn deposit(account_id: NonZeroU64, amount: Decimal, currency: Currency) -> Result<(), Error> {}

#[distributed_lock(key = "account")]
#[missing(username)]
async fn sign_up(username: &str, password: &SecretString) -> Result<(), Error> {}

#[distributed_lock(key = "coupon")]
#[missing(coupon_code)]
async fn redeem(coupon_code: Arc<str>, cart: &Cart) -> Result<(), Error> {}

#[distributed_lock(key = "count")]
async fn count(n: u64, min: u64, max: u64, step: usize) -> Result<u64, Error> {}

#[distributed_lock(key = "render")]
async fn render(width: u32, height: u32, quality: u8, format: &str) -> Result<Vec<u8>, Error> {}

#[distributed_lock(key = "translate")]
async fn translate(text: &str, from: &str, to: &str) -> Result<String, Error> {}

#[distributed_lock(key = "fetch")]
async fn fetch(client: &Client, url: Url, timeout: Duration, headers: HeaderMap) -> Result<Vec<u8>, Error> {}

#[distributed_lock(key = "fetch")]
async fn fetch_text(host: &str, port: u16, path: &str, status_code: u16) -> Result<String, Error> {}

#[distributed_lock(key = "with")]
async fn with<F, T>(pool: &Pool<Manager>, work: F) -> Result<T, Error> where F: FnOnce(&mut Connection) -> T {}

#[distributed_lock(key = "callback")]
async fn callback(on_done: impl Fn(u64) + Send, on_error: Box<dyn Fn(Error) + Send>) -> Result<(), Error> {}

#[distributed_lock(key = "tree")]
#[missing(parent_id)]
async fn children(parent_id: Id<Node>, depth: usize, visited: &mut HashSet<NodeId>) -> Result<(), Error> {}

#[distributed_lock(key = "points")]
async fn points((x, y): (f64, f64), flags: u32, mask: u64) -> Result<(), Error> {}

#[distributed_lock(key = "seats")]
#[missing(flight_id, seat_id)]
async fn book((flight_id, seat_id): (u64, u32), passengers: u8) -> Result<(), Error> {}

#[distributed_lock(key = "page")]
async fn pages(page_number: u32, per_page: u32, offset: u64, cursor: Cursor) -> Result<(), Error> {}

#[distributed_lock(key = "names")]
async fn greet(first_name: &str, last_name: &str, display_name: Option<&str>) -> Result<(), Error> {}

#[distributed_lock(key = "encrypt")]
async fn encrypt(key: &EncodingKey, nonce: u64, data: &[u8]) -> Result<Vec<u8>, Error> {}

#[distributed_lock(key = "approve")]
async fn log_request(request_id: Uuid, started: Instant, level: Level) -> Result<(), Error> {}

#[distributed_lock(key = "request")]
#[missing(request_id)]
async fn approve(request_id: u64, approver: &Employee) -> Result<(), Error> {}

#[distributed_lock(key = "unused")]
async fn unused(_id: u64, _order_id: OrderId) -> Result<(), Error> {}

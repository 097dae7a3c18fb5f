//! Jobs of schedulers and consumers of queues.

#[distributed_lock(key = "nightly")]
async fn nightly(ctx: JobContext) -> Result<(), JobError> {}

#[distributed_lock(key = "nightly")]
async fn nightly_report(pool: PgPool, mailer: Arc<dyn Mailer>) -> Result<(), JobError> {}

#[distributed_lock(key = "cleanup")]
async fn cleanup(db: &DatabaseConnection, older_than: Duration, limit: i64) -> Result<u64, JobError> {}

#[distributed_lock(key = "cleanup")]
async fn cleanup_in(mut tx: Transaction<'_, Postgres>, before: DateTime<Utc>) -> Result<u64, JobError> {}

#[distributed_lock(key = "export")]
#[missing(customer_id)]
async fn export(customer_id: u64, pool: &PgPool, progress: watch::Sender<u8>) -> Result<(), JobError> {}

#[distributed_lock(key = "export")]
async fn export_all(concurrency: usize, verbose: bool, out: &mut impl AsyncWrite) -> Result<(), JobError> {}

#[distributed_lock(key = "consume")]
async fn consume(delivery: Delivery, channel: &Channel) -> Result<(), JobError> {}

#[distributed_lock(key = "consume")]
async fn consume_messages(consumer: &StreamConsumer, shutdown: CancellationToken) -> Result<(), JobError> {}

#[distributed_lock(key = "consume")]
#[missing(message_id)]
async fn handle_message(message_id: MessageId, payload: Vec<u8>, attributes: HashMap<String, String>) -> Result<(), JobError> {}

#[distributed_lock(key = "run")]
#[missing(job_id)]
async fn run_job(job_id: JobId, storage: Data<Storage>, attempt: Attempt) -> Result<(), JobError> {}

#[distributed_lock(key = "run")]
#[missing(task_id)]
async fn run_task(task_id: i32, worker: &WorkerContext) -> Result<(), JobError> {}

#[distributed_lock(key = "worker")]
async fn worker_loop(worker_id: usize, queue: Arc<Queue>, stop: oneshot::Receiver<()>) -> Result<(), JobError> {}

#[distributed_lock(key = "sync")]
#[missing(shard)]
async fn sync_shard(shard: u16, client: reqwest::Client) -> Result<(), JobError> {}

#[distributed_lock(key = "sync")]
#[missing(repo)]
async fn sync_repo(repo: &str, token: SecretString, depth: u32) -> Result<(), JobError> {}

#[distributed_lock(key = "sync")]
async fn sync_since(cursor: Option<String>, since: i64, page_size: u32) -> Result<(), JobError> {}

#[distributed_lock(key = "mail")]
#[missing(email)]
async fn send_mail(email: String, subject: String, body: String, smtp: &SmtpTransport) -> Result<(), JobError> {}

#[distributed_lock(key = "mail")]
async fn send_batch(mails: Vec<Mail>, rate: f32, retries: u8) -> Result<usize, JobError> {}

#[distributed_lock(key = "bill")]
#[missing(subscription_id)]
async fn bill(subscription_id: Uuid, clock: &dyn Clock, amount_cents: i64) -> Result<(), JobError> {}

#[distributed_lock(key = "bill")]
#[missing(tenant)]
async fn bill_tenant(tenant: String, month: u8, year: i32) -> Result<(), JobError> {}

#[distributed_lock(key = "migrate")]
async fn migrate(config: Config, version: u32, url: &str) -> Result<(), JobError> {}

#[distributed_lock(key = "index")]
#[missing(document_id)]
async fn index_document(document_id: ObjectId, collection: Collection<Document>, refresh: bool) -> Result<(), JobError> {}

#[distributed_lock(key = "index")]
async fn reindex(from: usize, to: usize, batch: usize, semaphore: Arc<Semaphore>) -> Result<(), JobError> {}

#[distributed_lock(key = "purge")]
#[missing(cache_key)]
async fn purge(cache_key: String, redis: ConnectionManager, ttl_secs: u64) -> Result<(), JobError> {}

#[distributed_lock(key = "tick")]
async fn tick(now: Instant, interval: &mut Interval, counter: &AtomicU64) -> Result<(), JobError> {}

#[distributed_lock(key = "lines")]
async fn read_lines(reader: BufReader<File>, line_number: usize, path: &Path) -> Result<(), JobError> {}

#[distributed_lock(key = "notify")]
async fn notify(tx: &UnboundedSender<Event>, event: Event, priority: u8) -> Result<(), JobError> {}

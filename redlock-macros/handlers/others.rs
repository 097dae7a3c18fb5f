//! Resolvers, functions of a cloud, actors and tools: what the other files have none of.

#[distributed_lock(key = "resolve")]
#[missing(id)]
async fn node(&self, ctx: &Context<'_>, id: ID) -> async_graphql::Result<Node> {}

#[distributed_lock(key = "resolve")]
async fn nodes(&self, ctx: &Context<'_>, first: Option<i32>, after: Option<String>) -> async_graphql::Result<Connection> {}

#[distributed_lock(key = "resolve")]
async fn add_node(&self, ctx: &Context<'_>, input: NodeInput) -> async_graphql::Result<Node> {}

#[distributed_lock(key = "lambda")]
async fn on_event(event: LambdaEvent<SqsEvent>) -> Result<(), Error> {}

#[distributed_lock(key = "lambda")]
async fn on_record(record: &SqsMessage, client: &aws_sdk_s3::Client) -> Result<(), Error> {}

#[distributed_lock(key = "lambda")]
#[missing(bucket, object_key)]
async fn on_object(bucket: &str, object_key: &str, size: i64) -> Result<(), Error> {}

#[distributed_lock(key = "actor")]
async fn handle(&mut self, msg: Deposit, ctx: &mut ActorContext<Self>) -> Result<(), Error> {}

#[distributed_lock(key = "actor")]
#[missing(wallet)]
async fn credit(&mut self, wallet: WalletId, cents: u64, memo: String) -> Result<(), Error> {}

#[distributed_lock(key = "deploy")]
#[missing(project, environment_id)]
async fn deploy(project: &str, environment_id: i64, args: &DeployArgs) -> Result<(), Error> {}

#[distributed_lock(key = "deploy")]
async fn deploy_all(args: Cli, stdout: &mut Stdout, term_width: u16) -> Result<(), Error> {}

#[distributed_lock(key = "rollback")]
#[missing(cluster)]
async fn rollback(cluster: ClusterName, revision: u32, wait: bool) -> Result<(), Error> {}

#[distributed_lock(key = "saga")]
#[missing(saga_id)]
async fn step(saga_id: SagaId, step: usize, bus: &EventBus) -> Result<(), Error> {}

#[distributed_lock(key = "game")]
#[missing(player_id, match_id)]
async fn join(player_id: PlayerId, match_id: MatchId, team: Team) -> Result<(), Error> {}

#[distributed_lock(key = "game")]
async fn broadcast(players: &[PlayerId], frame: Frame, seed: u64) -> Result<(), Error> {}

#[distributed_lock(key = "library")]
#[missing(isbn)]
async fn lend(isbn: &Isbn, reader: &Reader, days: u8) -> Result<(), Error> {}

#[distributed_lock(key = "clinic")]
#[missing(patient)]
async fn admit(patient: u64, ward: Ward, notes: String) -> Result<(), Error> {}

#[distributed_lock(key = "chat")]
#[missing(chat_id)]
async fn on_update(bot: Bot, chat_id: ChatId, text: String) -> Result<(), Error> {}

#[distributed_lock(key = "chat")]
async fn on_message(bot: Bot, msg: Message, dialogue: Dialogue<State, Storage>) -> Result<(), Error> {}

#[distributed_lock(key = "crawl")]
async fn crawl(url: String, depth: u8, visited: Arc<Mutex<HashSet<Url>>>) -> Result<(), Error> {}

#[distributed_lock(key = "crawl")]
#[missing(domain)]
async fn crawl_domain(domain: String, robots: Robots, max_pages: usize) -> Result<(), Error> {}

#[distributed_lock(key = "ledger")]
#[missing(account_number)]
async fn post(account_number: &str, entry: Entry, dry_run: bool) -> Result<(), Error> {}

#[distributed_lock(key = "ledger")]
async fn close(period: Period, rounding: Rounding, tx: &mut PgConnection) -> Result<(), Error> {}

#[distributed_lock(key = "cache")]
#[missing(key)]
async fn refresh(key: &str, loader: impl AsyncFn() -> Vec<u8>, ttl: Duration) -> Result<(), Error> {}

#[distributed_lock(key = "cache")]
async fn evict(capacity: usize, policy: Policy, stats: &Stats) -> Result<(), Error> {}

#[distributed_lock(key = "vehicle")]
#[missing(vin)]
async fn recall(vin: Vin, campaign: &Campaign, severity: u8) -> Result<(), Error> {}

#[distributed_lock(key = "sensor")]
#[missing(device)]
async fn reading(device: DeviceId, value: f64, at: OffsetDateTime, sequence_number: u64) -> Result<(), Error> {}

#[distributed_lock(key = "print")]
async fn print(copies: u32, duplex: bool, document: Vec<u8>) -> Result<(), Error> {}

#[distributed_lock(key = "vote")]
#[missing(poll_id, voter_id)]
async fn vote(poll_id: Uuid, voter_id: Uuid, choice: u8) -> Result<(), Error> {}

#[distributed_lock(key = "feature")]
async fn set_flag(name_of_flag: bool, percentage: u8, reason: Option<&str>) -> Result<(), Error> {}

#[distributed_lock(key = "webhook")]
async fn webhook(signature: HeaderValue, timestamp: i64, raw: Bytes, secret: &WebhookSecret) -> Result<(), Error> {}

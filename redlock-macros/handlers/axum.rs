//! Handlers of a shop, as services on axum have them.

#[distributed_lock(key = "orders")]
async fn list_orders(State(pool): State<PgPool>, Query(page): Query<Pagination>) -> Result<Json<Vec<Order>>, ApiError> {}

#[distributed_lock(key = "orders")]
#[missing(id)]
async fn show_order(State(pool): State<PgPool>, Path(id): Path<u64>) -> Result<Json<Order>, ApiError> {}

#[distributed_lock(key = "orders")]
#[missing(tenant, id)]
async fn tenant_order(State(app): State<Arc<App>>, Path((tenant, id)): Path<(String, Uuid)>) -> Result<Json<Order>, ApiError> {}

#[distributed_lock(key = "orders")]
async fn create_order(State(app): State<AppState>, Extension(user): Extension<CurrentUser>, Json(body): Json<CreateOrder>) -> Result<(StatusCode, Json<Order>), ApiError> {}

#[distributed_lock(key = "orders")]
#[missing(order_id)]
async fn capture(Path(order_id): Path<OrderId>, State(app): State<AppState>, Json(capture): Json<Capture>) -> Result<Json<Receipt>, ApiError> {}

#[distributed_lock(key = "orders")]
#[missing(user_id)]
async fn orders_of_user(Extension(user_id): Extension<UserId>, Query(params): Query<HashMap<String, String>>) -> Result<Json<Vec<Order>>, ApiError> {}

#[distributed_lock(key = "uploads")]
async fn upload(State(store): State<Store>, mut multipart: Multipart) -> Result<StatusCode, ApiError> {}

#[distributed_lock(key = "uploads")]
#[missing(slug)]
async fn upload_to(Path(slug): Path<String>, State(store): State<Store>, body: Bytes) -> Result<StatusCode, ApiError> {}

#[distributed_lock(key = "echo")]
async fn echo(body: String) -> Result<String, ApiError> {}

#[distributed_lock(key = "raw")]
async fn raw(request: Request) -> Result<Response, ApiError> {}

#[distributed_lock(key = "raw")]
async fn raw_body(request: Request<Body>) -> Result<Response<Body>, ApiError> {}

#[distributed_lock(key = "through")]
async fn middleware(State(limits): State<Limits>, request: Request, next: Next) -> Result<Response, ApiError> {}

#[distributed_lock(key = "headers")]
async fn headers(headers: HeaderMap, method: Method, uri: Uri) -> Result<String, ApiError> {}

#[distributed_lock(key = "agent")]
async fn user_agent(TypedHeader(agent): TypedHeader<UserAgent>) -> Result<String, ApiError> {}

#[distributed_lock(key = "payments")]
#[missing(key)]
async fn pay(TypedHeader(key): TypedHeader<IdempotencyKey>, State(app): State<AppState>, Json(payment): Json<Payment>) -> Result<Json<Receipt>, ApiError> {}

#[distributed_lock(key = "sockets")]
async fn websocket(upgrade: WebSocketUpgrade, State(hub): State<Hub>) -> Result<Response, ApiError> {}

#[distributed_lock(key = "sockets")]
async fn handle_socket(mut socket: WebSocket, who: SocketAddr, hub: Hub) -> Result<(), ApiError> {}

#[distributed_lock(key = "rooms")]
#[missing(room_id)]
async fn join_room(mut socket: WebSocket, room_id: RoomId, sender: broadcast::Sender<Message>) -> Result<(), ApiError> {}

#[distributed_lock(key = "connect")]
async fn connected(ConnectInfo(peer): ConnectInfo<SocketAddr>, State(app): State<AppState>) -> Result<String, ApiError> {}

#[distributed_lock(key = "search")]
async fn search(Query(SearchQuery { text, page, limit }): Query<SearchQuery>, State(index): State<Index>) -> Result<Json<Hits>, ApiError> {}

#[distributed_lock(key = "products")]
#[missing(sku)]
async fn product(Path(ProductPath { sku }): Path<ProductPath>, State(pool): State<PgPool>) -> Result<Json<Product>, ApiError> {}

#[distributed_lock(key = "files")]
async fn file(Path(path): Path<String>) -> Result<Response, ApiError> {}

#[distributed_lock(key = "versions")]
async fn version(Path(version): Path<Version>) -> Result<String, ApiError> {}

#[distributed_lock(key = "users")]
async fn create_user(DatabaseConnection(mut conn): DatabaseConnection, Json(new_user): Json<NewUser>) -> Result<Json<User>, ApiError> {}

#[distributed_lock(key = "login")]
async fn login(mut auth: AuthSession, Form(credentials): Form<Credentials>) -> Result<Redirect, ApiError> {}

#[distributed_lock(key = "login")]
async fn oauth(Query(query): Query<AuthRequest>, State(store): State<MemoryStore>, State(client): State<BasicClient>, jar: CookieJar) -> Result<Redirect, ApiError> {}

#[distributed_lock(key = "todos")]
#[missing(id)]
async fn update_todo(Path(id): Path<Uuid>, State(db): State<Db>, Json(input): Json<UpdateTodo>) -> Result<Json<Todo>, ApiError> {}

#[distributed_lock(key = "todos")]
async fn todos(pagination: Option<Query<Pagination>>, State(db): State<Db>) -> Result<Json<Vec<Todo>>, ApiError> {}

#[distributed_lock(key = "kv")]
#[missing(key)]
async fn kv_set(Path(key): Path<String>, State(state): State<SharedState>, bytes: Bytes) -> Result<(), ApiError> {}

#[distributed_lock(key = "admin")]
async fn toggle(Path(enabled): Path<bool>, State(flags): State<Flags>) -> Result<(), ApiError> {}

#[distributed_lock(key = "pages")]
async fn nth_page(Path(page): Path<u32>, State(pool): State<PgPool>) -> Result<Html<String>, ApiError> {}

#[distributed_lock(key = "trace")]
async fn traced(Extension(request_id): Extension<RequestId>, State(app): State<AppState>) -> Result<(), ApiError> {}

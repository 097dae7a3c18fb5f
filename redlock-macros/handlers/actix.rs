//! Handlers in the style of actix, whose extractors are not taken apart in the signature.

#[distributed_lock(key = "invoices")]
async fn index(req: HttpRequest) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "invoices")]
#[missing(id)]
async fn invoice(path: web::Path<u64>, pool: web::Data<DbPool>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "invoices")]
#[missing(first, second)]
async fn customer_invoice(path: web::Path<(String, u64)>, db: web::Data<Database>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "invoices")]
#[missing(id)]
async fn delete_invoice(invoice_id: web::Path<Uuid>, pool: web::Data<PgPool>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "invoices")]
async fn create_invoice(body: web::Json<NewInvoice>, pool: web::Data<PgPool>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "invoices")]
async fn find_invoices(query: web::Query<Filter>, pool: web::Data<PgPool>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "forms")]
async fn form(form: web::Form<Contact>, mailer: web::Data<Mailer>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "forms")]
async fn payload(mut payload: web::Payload, limits: web::Data<PayloadConfig>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "forms")]
async fn bytes(body: web::Bytes, header: web::Header<ContentType>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "sessions")]
async fn session(session: Session, req: HttpRequest) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "sessions")]
async fn identity(user: Option<Identity>, session: Session) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "sockets")]
async fn echo_ws(req: HttpRequest, stream: web::Payload, server: web::Data<Addr<ChatServer>>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "files")]
async fn save_files(mut payload: Multipart, config: web::Data<Config>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "pages")]
async fn paged(page: web::Path<u32>, tmpl: web::Data<Tera>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "users")]
#[missing(id)]
async fn user(user: web::Path<UserId>, repo: web::Data<dyn UserRepository>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "users")]
async fn user_by_struct(info: web::Path<UserInfo>, repo: web::Data<Repo>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "users")]
#[missing(first, second)]
async fn friend(info: web::Path<(UserId, UserId)>, repo: web::Data<Repo>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "users")]
async fn rename(me: AuthenticatedUser, body: web::Json<Rename>, repo: web::Data<Repo>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "metrics")]
async fn metrics(registry: web::Data<Registry>, accept: web::Header<Accept>) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "events")]
async fn events(broadcaster: web::Data<Broadcaster>, last_event_id: Option<web::Header<LastEventId>>) -> Result<Sse, Error> {}

#[distributed_lock(key = "reports")]
#[missing(id)]
async fn report(path: Path<ReportId>, data: Data<AppState>, req: HttpRequest) -> Result<HttpResponse, Error> {}

#[distributed_lock(key = "reports")]
async fn reports(data: Data<AppState>, limit: Query<Limit>) -> Result<HttpResponse, Error> {}

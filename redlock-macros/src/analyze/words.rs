//! What the words of a name say of what it stands for: an identity, a thing that has one, or neither.
//!
//! The lists hold what stands in the signatures of services. A word that is missing costs a warning that is not given,
//! or, among those that rule something out, one that is given where nothing is wrong.

/// Words that name an identity wherever they end a name.
const IDENTITIES: &[&str] = &["id", "uuid", "guid", "ulid", "slug", "sku", "isbn", "iban", "ean", "vin"];

/// Words after which a name is an identity if a thing stands before them: `coupon_code`, `order_no`.
const OF_A_THING: &[&str] = &["code", "ref", "reference", "no", "nr", "num", "handle"];

/// What a service has many of and tells apart. A text or an integer that is called so is its identity.
const THINGS: &[&str] = &[
    "account",
    "asset",
    "basket",
    "booking",
    "bucket",
    "campaign",
    "card",
    "cart",
    "cluster",
    "company",
    "contract",
    "coupon",
    "course",
    "customer",
    "device",
    "domain",
    "driver",
    "email",
    "employee",
    "invoice",
    "merchant",
    "order",
    "org",
    "organisation",
    "organization",
    "parcel",
    "partition",
    "patient",
    "payment",
    "product",
    "project",
    "promo",
    "refund",
    "repo",
    "repository",
    "reservation",
    "seller",
    "shard",
    "shipment",
    "shop",
    "store",
    "subscription",
    "symbol",
    "tenant",
    "ticket",
    "user",
    "username",
    "vehicle",
    "vendor",
    "voucher",
    "wallet",
    "warehouse",
    "workspace",
];

/// Words with which a name tells calls, processes or places in a list apart, and not what is locked.
const TECHNICAL: &[&str] = &[
    "after",
    "attempt",
    "before",
    "conn",
    "connection",
    "correlation",
    "cursor",
    "invocation",
    "last",
    "max",
    "min",
    "next",
    "prev",
    "previous",
    "process",
    "req",
    "request",
    "retry",
    "since",
    "socket",
    "span",
    "thread",
    "trace",
    "worker",
];

/// The one of them that services have as things, too: there is a request to approve where the key speaks of requests.
const AMBIGUOUS: &str = "request";

/// Words before `key` that make it a secret, or a word of a query.
const KEYS_TO_SECRETS: &[&str] = &[
    "access",
    "aes",
    "api",
    "auth",
    "cookie",
    "data",
    "decoding",
    "decryption",
    "encoding",
    "encryption",
    "hmac",
    "host",
    "jwt",
    "master",
    "private",
    "public",
    "root",
    "secret",
    "session",
    "shared",
    "signing",
    "sort",
    "ssh",
    "tls",
    "verifying",
];

/// Words before `number` that make it a place in a row.
const PLACES: &[&str] = &[
    "block", "build", "chunk", "column", "day", "epoch", "line", "magic", "page", "part", "port", "random", "revision",
    "round", "row", "seq", "sequence", "step", "total", "version", "week",
];

/// Words before `name` that make it a description.
const DESCRIPTIONS: &[&str] = &[
    "app",
    "application",
    "class",
    "column",
    "display",
    "env",
    "event",
    "family",
    "field",
    "file",
    "first",
    "full",
    "function",
    "given",
    "header",
    "host",
    "metric",
    "middle",
    "nick",
    "program",
    "server",
    "short",
    "template",
    "type",
];

/// What may stand in the path of a URL and names nothing that exists.
const NO_NAMES: &[&str] = &[
    "action",
    "count",
    "date",
    "day",
    "depth",
    "enabled",
    "ext",
    "extension",
    "flag",
    "format",
    "height",
    "index",
    "kind",
    "lang",
    "language",
    "level",
    "limit",
    "locale",
    "mode",
    "month",
    "offset",
    "page",
    "path",
    "per",
    "quality",
    "rest",
    "size",
    "state",
    "status",
    "tail",
    "type",
    "verbose",
    "version",
    "width",
    "year",
];

/// The words of a name, in small letters: of `order_id`, `OrderID` and `order:{id}s` alike.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn of(name: &str) -> Self {
        let mut words = vec![String::new()];
        let chars: Vec<char> = name.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            let is_upper = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_uppercase());
            let is_lower = |at: usize| chars.get(at).is_some_and(|c| c.is_lowercase());
            let begins = c.is_uppercase() && (!is_upper(at.checked_sub(1)) || is_lower(at + 1));
            if begins || !c.is_alphabetic() {
                words.push(String::new());
            }
            if let (true, Some(word)) = (c.is_alphabetic(), words.last_mut()) {
                word.extend(c.to_lowercase());
            }
        }
        words.retain(|word| !word.is_empty());
        Self(words)
    }

    /// Whether an argument of this name is an identity, unless its type contradicts.
    pub(crate) fn name_an_identity(&self, key: &Self) -> bool {
        let Some((last, before)) = self.0.split_last() else { return false };
        let has = |words: &[&str]| before.iter().any(|word| words.contains(&word.as_str()));
        if self.are_technical(key) {
            return false;
        }
        match last.as_str() {
            "key" => !has(KEYS_TO_SECRETS),
            "number" => !has(PLACES),
            "name" => !has(DESCRIPTIONS) || before.last().is_some_and(|word| key.contain(word)),
            last if OF_A_THING.contains(&last) => before.last().is_some_and(|word| THINGS.contains(&word.as_str())),
            last if IDENTITIES.contains(&last) => true,
            last => last.strip_suffix("id").is_some_and(|thing| THINGS.contains(&thing)),
        }
    }

    /// Whether a type of this name is that of an identity. What is only called `Key`, `Name` or `Number` may be
    /// anything.
    pub(crate) fn name_a_type_of_identities(&self, key: &Self) -> bool {
        let is_short = matches!(self.0.as_slice(), [word] if matches!(word.as_str(), "key" | "name" | "number"));
        let is_address = matches!(self.0.as_slice(), [.., first, last] if first == "email" && last == "address");
        is_address || (!is_short && self.name_an_identity(key))
    }

    /// Whether the last word is one of an identity, whatever the others make of it: a `SigningKey` sounds like one.
    pub(crate) fn sound_like_an_identity(&self) -> bool {
        self.0.len() > 1 && self.0.last().is_some_and(|last| ["id", "key", "name", "number"].contains(&last.as_str()))
    }

    /// Whether it is `number` and no more, which for an integer says nothing.
    pub(crate) fn are_only_a_number(&self) -> bool {
        matches!(self.0.as_slice(), [word] if word == "number")
    }

    /// Whether a text or an integer of this name stands for a thing.
    pub(crate) fn name_a_thing(&self, key: &Self) -> bool {
        self.0.last().is_some_and(|last| THINGS.contains(&last.as_str())) && !self.are_technical(key)
    }

    /// Whether they tell calls or processes apart, and not what is locked.
    pub(crate) fn are_technical(&self, key: &Self) -> bool {
        let is_thing = |word: &str| word == AMBIGUOUS && key.contain(word);
        self.0.iter().any(|word| TECHNICAL.contains(&word.as_str()) && !is_thing(word))
    }

    /// Whether what is called so may name something that exists.
    pub(crate) fn may_name_something(&self) -> bool {
        !self.0.iter().any(|word| NO_NAMES.contains(&word.as_str()) || TECHNICAL.contains(&word.as_str()))
    }

    /// Whether `key` speaks of what the last word says, in the singular or the plural.
    pub(crate) fn end_as_in(&self, key: &Self) -> bool {
        self.0.last().is_some_and(|last| key.contain(last))
    }

    fn contain(&self, word: &str) -> bool {
        self.0.iter().any(|other| other == word || other.strip_suffix('s') == Some(word))
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn names_fall_into_words() {
        let table = [
            ("order_id", "order id"),
            ("OrderID", "order id"),
            ("HTTPServer2Id", "http server id"),
            ("order:{REGION}s", "order region s"),
            ("", ""),
        ];
        for (name, expected) in table {
            assert_eq!(Words::of(name).0.join(" "), expected, "{name}");
        }
    }

    #[test]
    fn what_names_an_identity() {
        let no_key = Words::of("");
        for name in ["id", "order_id", "userid", "sku", "key", "idempotency_key", "name", "tenant_name", "coupon_code"]
        {
            assert!(Words::of(name).name_an_identity(&no_key), "{name}");
        }
        for name in ["ids", "paid", "grid", "api_key", "page_number", "first_name", "status_code", "request_id", "code"]
        {
            assert!(!Words::of(name).name_an_identity(&no_key), "{name}");
        }
        let key = Words::of("requests:file:page:worker");
        for (name, expected) in
            [("request_id", true), ("file_name", true), ("page_number", false), ("worker_id", false)]
        {
            assert_eq!(Words::of(name).name_an_identity(&key), expected, "{name}");
        }
    }

    #[test]
    fn what_names_a_type_of_identities() {
        for (name, expected) in [("OrderId", true), ("Uuid", true), ("EmailAddress", true), ("InvoiceNumber", true)] {
            assert_eq!(Words::of(name).name_a_type_of_identities(&Words::of("")), expected, "{name}");
        }
        for name in ["Key", "SigningKey", "Name", "RequestId", "Order", "Email", "Grid"] {
            assert!(!Words::of(name).name_a_type_of_identities(&Words::of("")), "{name}");
        }
    }
}

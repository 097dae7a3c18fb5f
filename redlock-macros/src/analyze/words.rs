//! Classifies names by their words: an id, a thing that has an id, or neither.
//!
//! The lists contain words from the signatures of services. A missing word costs a missing warning. A missing word in a
//! list that excludes names costs a false warning.

/// Words that mean an id at the end of any name.
const IDENTITIES: &[&str] = &["id", "uuid", "guid", "ulid", "slug", "sku", "isbn", "iban", "ean", "vin"];

/// Words that mean an id after a thing, as in `coupon_code` and `order_no`.
const OF_A_THING: &[&str] = &["code", "ref", "reference", "no", "nr", "num", "handle"];

/// Things that a service has many of. A text or an integer of this name is the id of the thing.
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

/// Words for calls, processes or positions in a list, which do not identify the locked resource.
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

/// A technical word that is also a thing in some services: a key may be about requests to approve.
const AMBIGUOUS: &str = "request";

/// Words before `key` that mean a secret, or a term of a query.
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

/// Words before `number` that mean a position.
const PLACES: &[&str] = &[
    "block", "build", "chunk", "column", "day", "epoch", "line", "magic", "page", "part", "port", "random", "revision",
    "round", "row", "seq", "sequence", "step", "total", "version", "week",
];

/// Words before `name` that mean a description.
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

/// Words for parts of a URL path that do not name a thing.
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

/// Words of a name in lower case. `order_id`, `OrderID` and `order:{id}s` are split alike.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn new(name: &str) -> Self {
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

    /// Returns `true` if an argument of this name is an id, unless its type contradicts.
    pub(crate) fn is_id(&self, key: &Self) -> bool {
        let Some((last, before)) = self.0.split_last() else { return false };
        let has = |words: &[&str]| before.iter().any(|word| words.contains(&word.as_str()));
        if self.is_technical(key) {
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

    /// Returns `true` if a type of this name is the type of an id. The names `Key`, `Name` and `Number` alone may mean
    /// anything.
    pub(crate) fn is_type_of_id(&self, key: &Self) -> bool {
        let is_short = matches!(self.0.as_slice(), [word] if matches!(word.as_str(), "key" | "name" | "number"));
        let is_address = matches!(self.0.as_slice(), [.., first, last] if first == "email" && last == "address");
        is_address || (!is_short && self.is_id(key))
    }

    /// Returns `true` if the last word is that of an id, whatever the other words are, as in `SigningKey`.
    pub(crate) fn ends_like_id(&self) -> bool {
        self.0.len() > 1 && self.0.last().is_some_and(|last| ["id", "key", "name", "number"].contains(&last.as_str()))
    }

    /// Returns `true` if the name is only `number`, which means nothing for an integer.
    pub(crate) fn is_only_number(&self) -> bool {
        matches!(self.0.as_slice(), [word] if word == "number")
    }

    /// Returns `true` if a text or an integer of this name is the id of a thing.
    pub(crate) fn is_thing(&self, key: &Self) -> bool {
        self.0.last().is_some_and(|last| THINGS.contains(&last.as_str())) && !self.is_technical(key)
    }

    /// Returns `true` if the words are about calls or processes, and not about the locked resource.
    pub(crate) fn is_technical(&self, key: &Self) -> bool {
        let is_thing = |word: &str| word == AMBIGUOUS && key.contain(word);
        self.0.iter().any(|word| TECHNICAL.contains(&word.as_str()) && !is_thing(word))
    }

    /// Returns `true` if a value of this name may identify a thing.
    pub(crate) fn may_identify(&self) -> bool {
        !self.0.iter().any(|word| NO_NAMES.contains(&word.as_str()) || TECHNICAL.contains(&word.as_str()))
    }

    /// Returns `true` if `key` contains the last word, in the singular or the plural.
    pub(crate) fn last_word_is_in(&self, key: &Self) -> bool {
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
    fn names_are_split_into_words() {
        let table = [
            ("order_id", "order id"),
            ("OrderID", "order id"),
            ("HTTPServer2Id", "http server id"),
            ("order:{REGION}s", "order region s"),
            ("", ""),
        ];
        for (name, expected) in table {
            assert_eq!(Words::new(name).0.join(" "), expected, "{name}");
        }
    }

    #[test]
    fn id_names_are_recognized() {
        let no_key = Words::new("");
        for name in ["id", "order_id", "userid", "sku", "key", "idempotency_key", "name", "tenant_name", "coupon_code"]
        {
            assert!(Words::new(name).is_id(&no_key), "{name}");
        }
        for name in ["ids", "paid", "grid", "api_key", "page_number", "first_name", "status_code", "request_id", "code"]
        {
            assert!(!Words::new(name).is_id(&no_key), "{name}");
        }
        let key = Words::new("requests:file:page:worker");
        for (name, expected) in
            [("request_id", true), ("file_name", true), ("page_number", false), ("worker_id", false)]
        {
            assert_eq!(Words::new(name).is_id(&key), expected, "{name}");
        }
    }

    #[test]
    fn id_type_names_are_recognized() {
        for (name, expected) in [("OrderId", true), ("Uuid", true), ("EmailAddress", true), ("InvoiceNumber", true)] {
            assert_eq!(Words::new(name).is_type_of_id(&Words::new("")), expected, "{name}");
        }
        for name in ["Key", "SigningKey", "Name", "RequestId", "Order", "Email", "Grid"] {
            assert!(!Words::new(name).is_type_of_id(&Words::new("")), "{name}");
        }
    }
}

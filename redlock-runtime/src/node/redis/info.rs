//! The reply of a server to `INFO`.

use crate::node::server_identity::{DataSet, Identity};
use std::collections::HashMap;
use std::time::Duration;

/// The oldest version of Redis that has all commands and options of the scripts, such as `ZADD GT`.
const LEAST: (u32, u32) = (6, 2);

/// Programs that report their version in a separate field.
const FORKS: [(&str, &str); 3] =
    [("valkey_version", "Valkey"), ("dragonfly_version", "Dragonfly"), ("garnet_version", "Garnet")];

/// The fields of all sections, by name.
#[derive(Debug, Default)]
pub(crate) struct Info(HashMap<Box<str>, Box<str>>);

impl Info {
    /// Reads the reply to `INFO`: lines of `name:value`, and headings, which are skipped.
    pub(crate) fn parse(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Self(fields.map(|(name, value)| (name.into(), value.trim_end().into())).collect())
    }

    /// Returns the value of the field `name`, unless it is empty.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| &**value).filter(|value| !value.is_empty())
    }

    /// Returns the value of the field `name` as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// Returns `true` if the server is a Sentinel. Valkey has renamed the field.
    pub(crate) fn is_sentinel(&self) -> bool {
        self.field("redis_mode").or_else(|| self.field("server_mode")) == Some("sentinel")
    }

    /// Returns the name and the version of the program: `Redis 7.0.15`. Forks report the compatible version of Redis in `redis_version`.
    pub(crate) fn product(&self) -> Option<String> {
        let of_redis = || self.field("redis_version").map(|version| format!("Redis {version}"));
        let fork = FORKS.iter().find_map(|(field, name)| self.field(field).map(|version| format!("{name} {version}")));
        fork.or_else(of_redis)
    }

    /// Returns the name and the version of the program, if the version is known to be older than [`LEAST`]. Forks report the version of
    /// Redis that they are compatible with.
    pub(crate) fn too_old(&self) -> Option<String> {
        let mut numbers = self.field("redis_version")?.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
        if (major, minor) < LEAST { self.product() } else { None }
    }

    /// Returns the identity of the server, without its marker; `None` if the server does not return its `run_id`. `settings` are those
    /// for persistence, as far as the user may read them.
    pub(crate) fn identity(&self, settings: &HashMap<String, String>) -> Option<Identity> {
        Some(Identity {
            run_id: self.field("run_id")?.into(),
            uptime: Duration::from_secs(self.number("uptime_in_seconds").unwrap_or(0)),
            is_durable: self.is_durable(settings),
            data: self.data(),
            marker: None,
        })
    }

    /// Returns the data set of the server.
    pub(crate) fn data(&self) -> DataSet {
        let is_none = |id: &&str| !id.contains(|digit| digit != '0');
        DataSet {
            id: self.field("master_replid").map(Into::into),
            previous: self.field("master_replid2").filter(|id| !is_none(id)).map(Into::into),
        }
    }

    /// Returns `true` if the server is a replica, which accepts no locks.
    pub(crate) fn is_replica(&self) -> bool {
        self.field("role") == Some("slave")
    }

    /// Returns `true` if the server runs in cluster mode.
    pub(crate) fn is_cluster_member(&self) -> bool {
        self.number("cluster_enabled") == Some(1)
    }

    /// Returns `true` if the server writes every command to disk before it answers, has no replicas, and was not one. A promoted replica
    /// has lost the writes that its master had not passed on, and a server with replicas may be replaced by one of them.
    fn is_durable(&self, settings: &HashMap<String, String>) -> bool {
        let was_replica = self.field("master_replid2").is_none_or(|id| id.contains(|digit| digit != '0'));
        let stands_alone = !was_replica && self.number("connected_slaves").is_none_or(|replicas| replicas == 0);
        let writes = self.field("aof_enabled") == Some("1") && self.field("aof_last_write_status") != Some("err");
        let is = |name, value: &str| settings.get(name).is_some_and(|setting| setting == value);
        writes && is("appendfsync", "always") && !is("no-appendfsync-on-rewrite", "yes") && stands_alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nrun_id:2f0c\r\nuptime_in_seconds:12\r\nempty:\r\n\r\n\
                        # Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\n\
                        # Replication\r\nrole:master\r\nmaster_replid:7a1e\r\nmaster_replid2:0000\r\nslave0:ip=::1,port=7\r\n";

    #[test]
    fn info_fields_of_every_section_are_parsed() {
        let info = Info::parse(INFO);
        let table =
            [("redis_version", Some("7.0.15")), ("slave0", Some("ip=::1,port=7")), ("empty", None), ("missing", None)];
        for (name, expected) in table {
            assert_eq!(info.field(name), expected, "{name}");
        }
        assert_eq!((info.number("uptime_in_seconds"), info.number("run_id")), (Some(12), None));
    }

    #[test]
    fn product_and_sentinel_mode_are_detected_for_redis_and_valkey() {
        let table = [
            ("redis_version:7.0.15\nredis_mode:standalone", Some("Redis 7.0.15"), false),
            ("redis_version:7.2.4\nvalkey_version:9.1.2\nserver_mode:sentinel", Some("Valkey 9.1.2"), true),
            ("redis_mode:sentinel", None, true),
            ("server_mode:cluster", None, false),
        ];
        for (text, product, is_sentinel) in table {
            let info = Info::parse(text);
            assert_eq!((info.product().as_deref(), info.is_sentinel()), (product, is_sentinel), "{text}");
        }
    }

    #[test]
    fn versions_before_6_2_are_too_old() {
        let table = [
            ("redis_version:6.0.14", Some("Redis 6.0.14")),
            ("redis_version:5.0.7", Some("Redis 5.0.7")),
            ("redis_version:3.2.12", Some("Redis 3.2.12")),
            ("redis_version:6.2.0", None),
            ("redis_version:6.3.4", None),
            ("redis_version:7.4.1", None),
            ("redis_version:10.0", None),
            ("redis_version:255.255.255", None),
            ("redis_version:7.2.4\nvalkey_version:8.0.1", None),
            ("redis_version:7.4.0\ndragonfly_version:df-v1.27.1", None),
            ("redis_version:6.0.16\ndragonfly_version:df-v0.1", Some("Dragonfly df-v0.1")),
            ("redis_version:7.4.3\ngarnet_version:1.0.65", None),
            ("redis_version:unstable", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Info::parse(text).too_old().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn identities() {
        let identity = Info::parse(INFO).identity(&settings(&[("appendfsync", "always")])).unwrap();
        let data = DataSet { id: Some("7a1e".into()), previous: None };
        let expected =
            Identity { run_id: "2f0c".into(), uptime: Duration::from_secs(12), is_durable: true, data, marker: None };
        assert_eq!(identity, expected);
        let promoted = Info::parse(&INFO.replace("replid2:0000", "replid2:00f0"));
        assert_eq!(promoted.data().previous.as_deref(), Some("00f0"));
        assert!(!promoted.is_replica() && Info::parse("role:slave").is_replica());
        assert_eq!(Info::parse("").identity(&settings(&[])), None);
    }

    #[test]
    fn server_is_durable_only_if_it_syncs_before_it_replies() {
        let always = ("appendfsync", "always");
        let table: [(_, _, &[_], _); 10] = [
            ("", "", &[always], true),
            ("", "", &[always, ("no-appendfsync-on-rewrite", "no")], true),
            ("", "", &[always, ("no-appendfsync-on-rewrite", "yes")], false),
            ("", "", &[("appendfsync", "everysec")], false),
            ("", "", &[], false),
            ("aof_enabled:1", "aof_enabled:0", &[always], false),
            ("status:ok", "status:err", &[always], false),
            ("replid2:0000", "replid2:00f0", &[always], false),
            ("master_replid2", "other", &[always], false),
            ("role:master", "connected_slaves:1", &[always], false),
        ];
        for (from, to, pairs, expected) in table {
            let info = Info::parse(&INFO.replace(from, to));
            assert_eq!(info.is_durable(&settings(pairs)), expected, "{to} {pairs:?}");
        }
    }

    fn settings(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }
}

//! The view that one member has of its cluster, and the choice between several views.
//!
//! A member that is cut off from the others continues to report its old knowledge, even when a replica has taken over its slots in the
//! meantime. After a while it also reports an unhealthy cluster, and it does not know the epoch that the replica has begun. A member is
//! therefore believed at once if it reports a healthy cluster and knows the newest epoch. Any other member is believed only if there is no
//! better one.

use super::slot_map::SlotMap;
use crate::error::NodeError;
use crate::node::redis::info::Info;
use redis::Value;

/// The replies of one member to [`QUESTIONS`](Self::QUESTIONS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) map: SlotMap,
    /// `true` if the member reports a healthy cluster, as far as its user may know.
    pub(super) is_well: bool,
    /// The newest epoch known to the member; 0 if its user may not know.
    pub(super) epoch: u64,
}

impl View {
    pub(super) const QUESTIONS: [[&str; 2]; 2] = [["CLUSTER", "SLOTS"], ["CLUSTER", "INFO"]];

    /// Reads the replies of the member at the host `answered`.
    ///
    /// # Errors
    /// Those of [`SlotMap::parse`].
    pub(super) fn parse(slots: &Value, info: Option<Value>, answered: &str) -> Result<Self, NodeError> {
        let info: Option<String> = info.and_then(|info| redis::from_redis_value(info).ok());
        let info = Info::parse(&info.unwrap_or_default());
        let is_well = info.field("cluster_state") != Some("fail");
        let epoch = info.field("cluster_current_epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        Ok(Self { map: SlotMap::parse(slots, answered)?, is_well, epoch })
    }

    /// Returns `true` if no member knows better that has seen no epoch after `epoch`.
    pub(super) const fn is_newest(&self, epoch: u64) -> bool {
        self.is_well && self.epoch >= epoch
    }
}

/// Chooses among `views` of which none is the newest. `asked` is the number of members that were queried, and `epoch` the newest known
/// epoch.
///
/// An older epoch is accepted only if most members answered: the cluster was created anew, and its epochs begin again.
pub(super) fn best(views: Vec<View>, asked: usize, epoch: u64) -> Option<View> {
    let are_most = 2 * views.len() > asked;
    let believed = views.into_iter().filter(|view| are_most || view.epoch >= epoch);
    believed.max_by_key(|view| (view.is_well, view.epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(is_well: bool, epoch: u64) -> View {
        View { map: SlotMap::default(), is_well, epoch }
    }

    #[test]
    fn cluster_member_replies_are_parsed() {
        let slots = Value::Array(Vec::new());
        let table = [
            ("cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:7\r\n", (true, 7)),
            ("cluster_state:fail\r\ncluster_current_epoch:6\r\n", (false, 6)),
            ("", (true, 0)),
        ];
        for (info, expected) in table {
            let view = View::parse(&slots, Some(Value::BulkString(info.into())), "h").unwrap();
            assert_eq!((view.is_well, view.epoch), expected, "{info}");
        }
        assert_eq!(View::parse(&slots, None, "h"), Ok(view(true, 0)), "the user may not ask");
        assert_eq!(View::parse(&Value::Okay, None, "h").ok(), None);
    }

    #[test]
    fn healthy_member_with_the_newest_epoch_is_trusted_at_once() {
        let table = [(true, 7, true), (true, 8, true), (true, 6, false), (false, 8, false)];
        for (is_well, epoch, expected) in table {
            assert_eq!(view(is_well, epoch).is_newest(7), expected, "{is_well} {epoch}");
        }
    }

    #[test]
    fn isolated_member_is_trusted_if_no_better_view_exists() {
        type Said = (bool, u64);
        let table: [(_, &[Said], _, Option<Said>); 6] = [
            ("nobody answers", &[], 3, None),
            ("one is cut off and knows nothing", &[(false, 6)], 3, None),
            ("it has not noticed yet", &[(true, 6)], 3, None),
            ("nothing has happened since", &[(false, 7)], 3, Some((false, 7))),
            ("who is well comes first", &[(false, 7), (true, 6)], 3, Some((true, 6))),
            ("the cluster was made anew", &[(true, 1), (true, 2)], 3, Some((true, 2))),
        ];
        for (name, views, asked, expected) in table {
            let views = views.iter().map(|(is_well, epoch)| view(*is_well, *epoch)).collect();
            let best = best(views, asked, 7).map(|view| (view.is_well, view.epoch));
            assert_eq!(best, expected, "{name}");
        }
    }
}

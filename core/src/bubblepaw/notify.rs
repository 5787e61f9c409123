//! The notifications of the contract, as the JSON-RPC engine reads them.

use serde::{Deserialize, Deserializer};

use super::wire::Notification;
use crate::rpc::Notifications;

/// The contract's notifications; others are of no interest.
pub(crate) struct HostNotifications;

impl Notifications for HostNotifications {
    type Item = Notification;

    fn read<'de, D: Deserializer<'de>>(method: &str, params: D) -> Result<Option<Notification>, D::Error> {
        match method {
            Notification::EVENT => Deserialize::deserialize(params).map(|event| Some(Notification::Event(event))),
            Notification::GAP => Deserialize::deserialize(params).map(|gap| Some(Notification::Gap(gap))),
            _ => Ok(None),
        }
    }
}

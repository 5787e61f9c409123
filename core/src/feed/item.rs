//! An item as a feed shows it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::text::LiveText;
use crate::model::{Item, ItemId, Message, RunId};

/// An item of a feed, cheap to copy. Its JSON form is that of an [`Item`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FeedItem {
    /// As it was told.
    Told(Arc<Item>),
    /// A text of the agent's while it is being written: a provisional assistant message.
    Live(Arc<LiveMessage>),
}

/// A text of the agent's while it is being written.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveMessage {
    /// Its provisional id.
    pub id: ItemId,
    /// The run that writes it.
    pub run: Option<RunId>,
    /// What is written so far.
    pub text: LiveText,
}

impl FeedItem {
    /// Its id, unique in the chat.
    pub fn id(&self) -> &ItemId {
        match self {
            FeedItem::Told(item) => item.id(),
            FeedItem::Live(message) => &message.id,
        }
    }

    /// The run it belongs to.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            FeedItem::Told(item) => item.run(),
            FeedItem::Live(message) => message.run.as_ref(),
        }
    }

    /// Whether it is an assistant message that has no id of the host's own yet.
    pub fn is_provisional(&self) -> bool {
        match self {
            FeedItem::Told(item) => matches!(&**item, Item::AssistantMessage(message) if message.provisional),
            FeedItem::Live(_) => true,
        }
    }

    /// Whether it is a nested tool call: shown while it happens, not stored.
    pub fn is_nested(&self) -> bool {
        matches!(self, FeedItem::Told(item) if matches!(&**item, Item::ToolCall(call) if !call.durable))
    }

    /// Whether it is shown only until the host tells what it stored.
    pub fn is_passing(&self) -> bool {
        self.is_provisional() || self.is_nested()
    }

    /// The text while it is being written; that of a stored item is in the item itself.
    pub fn live_text(&self) -> Option<&LiveText> {
        match self {
            FeedItem::Told(_) => None,
            FeedItem::Live(message) => Some(&message.text),
        }
    }

    /// The item of the model. A text that is being written is copied for it.
    pub fn to_item(&self) -> Cow<'_, Item> {
        match self {
            FeedItem::Told(item) => Cow::Borrowed(item),
            FeedItem::Live(live) => Cow::Owned(Item::AssistantMessage(Message {
                id: live.id.clone(),
                text: live.text.to_string(),
                run: live.run.clone(),
                created_at: None,
                provisional: true,
            })),
        }
    }

    /// Whether both are one and the same, told without reading them where they share it.
    pub(super) fn is_same(&self, other: &FeedItem) -> bool {
        match (self, other) {
            (FeedItem::Told(a), FeedItem::Told(b)) => Arc::ptr_eq(a, b) || a == b,
            (FeedItem::Live(a), FeedItem::Live(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

impl Serialize for FeedItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_item().serialize(serializer)
    }
}

//! The store sequences of a chat's messages: asked of the history once, then kept.

use std::collections::HashMap;
use std::sync::Mutex;

use super::session::Core;
use super::snapshot::Items;
use super::wire;
use crate::error::Result;
use crate::lock::lock;
use crate::model::{ChatId, HistoryItem, ItemId, Seq};

/// Messages that one request asks for.
const PAGE_MESSAGES: u64 = 500;

/// Above every store sequence, and still exact for hosts that count in doubles.
const MAX_STORE_SEQUENCE: u64 = (1 << 53) - 1;

/// Chats whose sequences are kept. Each costs about a hundred bytes a message.
const MAX_CHATS: usize = 32;

/// Known store sequences, a map a chat.
#[derive(Default)]
pub(crate) struct StoreSequences(Mutex<HashMap<ChatId, Known>>);

#[derive(Default, Clone)]
struct Known {
    sequences: HashMap<ItemId, Seq>,
    /// The highest store sequence that was seen: what is new is above.
    up_to: u64,
}

impl StoreSequences {
    fn of(&self, chat: &ChatId) -> Known {
        lock(&self.0).get(chat).cloned().unwrap_or_default()
    }

    fn keep(&self, chat: &ChatId, known: Known) {
        let mut chats = lock(&self.0);
        if chats.len() >= MAX_CHATS && !chats.contains_key(chat) {
            chats.clear();
        }
        chats.insert(chat.clone(), known);
    }
}

impl Core {
    /// The messages of a range of store sequences, both ends included.
    pub(crate) async fn load_entries(&self, chat: &ChatId, first: u64, last: u64) -> Result<Vec<wire::HistoryEntry>> {
        let mut entries = Vec::new();
        let mut from = first;
        while from <= last {
            let params = wire::HistoryRangeParams {
                session_id: chat.clone(),
                first_seq: from,
                last_seq: last,
                limit: PAGE_MESSAGES,
            };
            let page = self.call::<wire::HistoryRange>(params).await?;
            entries.extend(page.entries);
            match page.next_seq {
                // A host that doesn't move on would be asked for ever.
                Some(next) if next > from => from = next,
                _ => break,
            }
        }
        Ok(entries)
    }

    /// The store sequences of `ids`, where the history has them.
    pub(crate) async fn store_sequences_of(&self, chat: &ChatId, ids: &[ItemId]) -> Result<HashMap<ItemId, Seq>> {
        let mut known = self.store_sequences.of(chat);
        if ids.iter().any(|id| !known.sequences.contains_key(id)) {
            let first = known.up_to.saturating_add(1);
            for entry in self.load_entries(chat, first, MAX_STORE_SEQUENCE).await? {
                known.up_to = known.up_to.max(entry.seq);
                known.sequences.insert(entry.message.message_id, Seq(entry.seq));
            }
            self.store_sequences.keep(chat, known.clone());
        }
        Ok(ids.iter().filter_map(|id| Some((id.clone(), *known.sequences.get(id)?))).collect())
    }
}

/// Entries as items: a message's calls stand at its sequence, and a result joins its call where the range has it.
pub(crate) fn history_items(entries: Vec<wire::HistoryEntry>) -> Vec<HistoryItem> {
    let mut sequences: HashMap<ItemId, Seq> = HashMap::new();
    for entry in &entries {
        sequences.insert(entry.message.message_id.clone(), Seq(entry.seq));
        for call in entry.message.tool_calls.iter().flatten() {
            sequences.insert(call.call_id.clone(), Seq(entry.seq));
        }
    }
    let mut items = Items::default();
    items.extend(entries.into_iter().map(|entry| entry.message));
    items
        .into_vec()
        .into_iter()
        .filter_map(|item| Some(HistoryItem { seq: *sequences.get(item.id())?, item }))
        .collect()
}

//! The context of a chat: structure, compactions, view and summaries.

use super::convert::{self, CHAPTER, EPISODE};
use super::session::Core;
use super::wire;
use crate::error::{KitError, Outcome, Result};
use crate::model::{
    ChatId, Compaction, Context, ContextItemKind, ContextStructure, ContextSummary, ContextView, ItemId,
};

/// What events are made of: compactions and view.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContextState {
    pub(crate) compactions: Vec<Compaction>,
    pub(crate) view: ContextView,
}

impl ContextState {
    pub(crate) fn is_applied(&self, id: &str) -> bool {
        self.compactions.iter().any(|compaction| compaction.applied && compaction.id == id)
    }
}

impl Core {
    pub(crate) async fn load_context(&self, chat: &ChatId) -> Result<Context> {
        let params = wire::SessionParams { session_id: chat.clone() };
        let structure = self.call::<wire::ContextStructure>(params).await?;
        let ContextState { compactions, view } = self.load_context_state(chat).await?;
        let structure = ContextStructure {
            chapters: structure.chapters.into_iter().map(convert::chapter).collect(),
            episodes: structure.episodes.into_iter().map(convert::episode).collect(),
        };
        Ok(Context { structure, compactions, view })
    }

    /// Compactions first: a view that is newer than they are shows no less.
    pub(crate) async fn load_context_state(&self, chat: &ChatId) -> Result<ContextState> {
        let params = || wire::SessionParams { session_id: chat.clone() };
        let events = self.call::<wire::ContextEvents>(params()).await?.events;
        let view = self.call::<wire::ContextView>(params()).await?;
        let usage = self.call::<wire::SessionState>(params()).await?.usage;
        let window = usage.and_then(|usage| usage.context?.window).filter(|window| *window >= view.threshold);
        let mut items: Vec<_> = view.items.into_iter().map(convert::view_item).collect();
        let messages: Vec<ItemId> = items
            .iter()
            .filter(|item| item.kind == ContextItemKind::Message)
            .map(|item| item.id.as_str().into())
            .collect();
        let sequences = self.store_sequences_of(chat, &messages).await?;
        for item in items.iter_mut().filter(|item| item.kind == ContextItemKind::Message) {
            item.seq = sequences.get(item.id.as_str()).copied();
        }
        let view = ContextView {
            threshold: view.threshold,
            window,
            response_reserve: window.map(|window| window - view.threshold),
            items,
        };
        Ok(ContextState { compactions: events.into_iter().map(convert::compaction).collect(), view })
    }

    pub(crate) async fn load_summary(&self, chat: &ChatId, kit_id: &str) -> Result<ContextSummary> {
        let prefixes = [(EPISODE, "episode"), (CHAPTER, "chapter")];
        let found = prefixes.iter().find_map(|(prefix, kind)| Some((*prefix, *kind, kit_id.strip_prefix(prefix)?)));
        let Some((prefix, kind, id)) = found.filter(|(_, _, id)| !id.is_empty()) else {
            let message = format!("a summary's id is episode:<id> or chapter:<id>, not {kit_id:?}");
            return Err(KitError::invalid(message).with_outcome(Outcome::NotSent));
        };
        let params = wire::ContextSummaryParams { session_id: chat.clone(), kind: kind.to_owned(), id: id.to_owned() };
        let summary = self.call::<wire::ContextSummary>(params).await?;
        Ok(ContextSummary {
            id: convert::prefixed(prefix, &summary.id),
            kind: summary.kind.as_str().into(),
            title: summary.title,
            text: summary.text,
            created_at: None,
        })
    }
}

//! The context of a chat: structure, compactions, view and summaries.

use std::collections::HashSet;
use std::sync::Arc;

use super::convert::{self, CHAPTER, EPISODE};
use super::session::Core;
use super::wire::{self, EventData, HarnessEvent};
use crate::error::{KitError, Outcome, Result};
use crate::model::{
    ChatId, Compaction, Context, ContextItem, ContextItemKind, ContextStructure, ContextSummary, ContextView, ItemId,
    Usage,
};

/// What events are made of: compactions, and the view without the store sequences of its messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ContextState {
    pub(crate) compactions: Vec<Compaction>,
    view: ContextView,
}

/// A look at the context, and the whole view where somebody may know another one.
pub(crate) struct Look {
    pub(crate) state: ContextState,
    pub(crate) view: Option<ContextView>,
}

/// What a stream's app knows of the context.
#[derive(Debug, Default)]
pub(crate) struct KnownContext {
    /// As of the last look that was told; the first look tells nothing.
    state: Option<Arc<ContextState>>,
    /// Compactions that events announced, until the host shows them as applied.
    announced: HashSet<String>,
}

impl KnownContext {
    /// Notes a compaction that an event announces.
    pub(crate) fn note(&mut self, event: &HarnessEvent) {
        if let EventData::ContextCompaction { event_id, .. } = &event.data {
            self.announced.insert(event_id.clone());
        }
    }

    pub(crate) fn state(&self) -> Option<&Arc<ContextState>> {
        self.state.as_ref()
    }

    pub(crate) fn awaits_compaction(&self) -> bool {
        !self.announced.is_empty()
    }

    /// The compactions that are news, and whether the view is. The first look shows what is; an announced compaction is news
    /// all the same, with what it made of the view, also where a look had it before its announcement came.
    pub(crate) fn news(&self, now: &ContextState) -> (Vec<Compaction>, bool) {
        let announced = |compaction: &Compaction| self.announced.contains(&compaction.id);
        let unknown = |compaction: &Compaction| self.state.as_ref().is_some_and(|s| !s.is_applied(&compaction.id));
        let applied = now.compactions.iter().filter(|compaction| compaction.applied);
        let (mut news, mut view) = (Vec::new(), self.state.as_ref().is_some_and(|before| before.view != now.view));
        for compaction in applied.filter(|compaction| announced(compaction) || unknown(compaction)) {
            view |= announced(compaction);
            news.push(compaction.clone());
        }
        (news, view)
    }

    /// Everything of `now` was told.
    pub(crate) fn learn(&mut self, now: &Arc<ContextState>) {
        self.announced.retain(|id| !now.is_applied(id));
        self.state = Some(now.clone());
    }
}

/// The window that a chat's totals tell.
pub(crate) fn window(usage: &Option<Usage>) -> Option<u64> {
    usage.as_ref()?.context.as_ref()?.window
}

impl ContextState {
    pub(crate) fn is_applied(&self, id: &str) -> bool {
        self.compactions.iter().any(|compaction| compaction.applied && compaction.id == id)
    }
}

impl Core {
    pub(crate) async fn load_context(&self, chat: &ChatId) -> Result<Context> {
        let params = || wire::SessionParams { session_id: chat.clone() };
        let structure = self.call::<wire::ContextStructure>(params()).await?;
        let usage = self.call::<wire::SessionState>(params()).await?.usage.map(convert::usage);
        let ContextState { compactions, view } = self.load_context_state(chat, window(&usage)).await?;
        let view = self.with_store_sequences(chat, view).await?;
        let structure = ContextStructure {
            chapters: structure.chapters.into_iter().map(convert::chapter).collect(),
            episodes: structure.episodes.into_iter().map(convert::episode).collect(),
        };
        Ok(Context { structure, compactions, view })
    }

    /// Looks at the context. Store sequences, which may take the whole history, are asked for only where they are shown:
    /// where the view is another one than one of `known`, or `announced` says that a compaction may have been applied.
    pub(crate) async fn look(
        &self,
        chat: &ChatId,
        window: Option<u64>,
        known: Vec<Arc<ContextState>>,
        announced: bool,
    ) -> Result<Look> {
        let state = self.load_context_state(chat, window).await?;
        let shown = announced || known.iter().any(|known| known.view != state.view);
        let view = if shown { Some(self.with_store_sequences(chat, state.view.clone()).await?) } else { None };
        Ok(Look { state, view })
    }

    /// Compactions first: a view that is newer than they are shows no less.
    async fn load_context_state(&self, chat: &ChatId, window: Option<u64>) -> Result<ContextState> {
        let params = || wire::SessionParams { session_id: chat.clone() };
        let events = self.call::<wire::ContextEvents>(params()).await?.events;
        let view = self.call::<wire::ContextView>(params()).await?;
        let window = window.filter(|window| *window >= view.threshold);
        let view = ContextView {
            threshold: view.threshold,
            window,
            response_reserve: window.map(|window| window - view.threshold),
            items: view.items.into_iter().map(convert::view_item).collect(),
        };
        Ok(ContextState { compactions: events.into_iter().map(convert::compaction).collect(), view })
    }

    async fn with_store_sequences(&self, chat: &ChatId, mut view: ContextView) -> Result<ContextView> {
        let is_message = |item: &&mut ContextItem| item.kind == ContextItemKind::Message;
        let messages: Vec<ItemId> =
            view.items.iter_mut().filter(is_message).map(|item| item.id.as_str().into()).collect();
        let sequences = self.store_sequences_of(chat, &messages).await?;
        for item in view.items.iter_mut().filter(is_message) {
            item.seq = sequences.get(item.id.as_str()).copied();
        }
        Ok(view)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(applied: &[&str], threshold: u64) -> Arc<ContextState> {
        let compaction = |id: &&str| -> Compaction {
            serde_json::from_value(json!({"id": id, "kind": "k", "trigger": "t", "applied": true})).unwrap()
        };
        let view = ContextView { threshold, window: None, response_reserve: None, items: Vec::new() };
        Arc::new(ContextState { compactions: applied.iter().map(compaction).collect(), view })
    }

    fn announcement(id: &str) -> HarnessEvent {
        let data = json!({"event_id": id, "kind": "k", "trigger": "t"});
        serde_json::from_value(json!({"sequence": 1, "type": "context_compaction", "data": data})).unwrap()
    }

    fn news(known: &KnownContext, now: &ContextState) -> (Vec<String>, bool) {
        let (applied, view) = known.news(now);
        (applied.into_iter().map(|compaction| compaction.id).collect(), view)
    }

    #[test]
    fn the_first_look_shows_what_is_and_a_later_one_what_changed() {
        let mut known = KnownContext::default();
        assert_eq!(news(&known, &state(&["a"], 1)), (vec![], false));
        known.learn(&state(&["a"], 1));
        assert_eq!(news(&known, &state(&["a"], 1)), (vec![], false));
        assert_eq!(news(&known, &state(&["a", "b"], 2)), (vec!["b".to_owned()], true));
    }

    #[test]
    fn an_announced_compaction_is_told_once_whichever_came_first() {
        for look_first in [false, true] {
            let mut known = KnownContext::default();
            if look_first {
                known.learn(&state(&["a"], 1));
            }
            known.note(&announcement("a"));
            assert!(known.awaits_compaction());
            assert_eq!(news(&known, &state(&["a"], 1)), (vec!["a".to_owned()], true));
            known.learn(&state(&["a"], 1));
            assert!(!known.awaits_compaction());
            assert_eq!(news(&known, &state(&["a"], 1)), (vec![], false));
        }
    }
}

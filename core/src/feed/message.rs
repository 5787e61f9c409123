//! What events do to messages: where each goes, and how provisional text becomes the host's own.
//!
//! - A user message or system line that is known stays in its place. A new one goes behind the item that `after_id`
//!   names, and behind that item's run where it is another run's reply. A user message without it is the chat's first
//!   item. Where the named item is not on display (it may be a reply whose own id is not known yet), a run's first user
//!   message goes before the run's other items, anything else behind them: before the first item of a later run, else
//!   to the end.
//! - A piece of text goes into its provisional item, a new one at the end. One without text is no item: a text that begins
//!   anew begins behind what came since.
//! - A reply with a provisional id (`provisional:<run>`) takes the place of its run's newest provisional item. It does not
//!   where a tool call stands behind that item and the reply doesn't begin with its text: then the last step's text was
//!   never seen, and the reply goes behind the run's items.
//! - A reply with the host's own id takes the place of the oldest provisional item of its run with the same text, else of
//!   the oldest that the text goes on from, else of the newest one as above, else behind the run's items.

use std::sync::Arc;

use super::changed::TextOf;
use super::item::{FeedItem, LiveMessage};
use super::order::Slot;
use super::reducer::FeedReducer;
use super::text::LiveText;
use crate::model::{Event, Item, ItemId, Message, MessageAssistant, MessageDelta, RunId};

impl FeedReducer {
    pub(super) fn user_message(&mut self, event: &Event, message: &Item, after: Option<&ItemId>) {
        let run = message.run().or(event.run.as_ref());
        let first = run.and_then(|run| self.first_of(run));
        let at = match after {
            None => 0,
            Some(after) => {
                let is_runs_first = run.is_some() && !self.lanes.get(run).is_some_and(|lane| lane.has_user);
                self.behind(after, run).or(first.filter(|_| is_runs_first)).unwrap_or_else(|| self.behind_run(run))
            }
        };
        self.upsert(event, message, at);
        if run.is_some() {
            let lane = self.lanes.of(run);
            lane.has_user = true;
            if first.is_none_or(|first| at <= first) {
                lane.first = Some(message.id().clone());
            }
        }
    }

    pub(super) fn system_message(&mut self, event: &Event, message: &Item, after: Option<&ItemId>) {
        let at = match after {
            Some(after) => {
                let run = message.run().or(event.run.as_ref());
                self.behind(after, run).unwrap_or_else(|| self.behind_run(run))
            }
            None => self.state.items.len(),
        };
        self.upsert(event, message, at);
    }

    fn first_of(&self, run: &RunId) -> Option<usize> {
        self.state.items.position(self.lanes.get(Some(run))?.first.as_ref()?)
    }

    /// The place behind a run's items: before those of the next run that has any.
    fn behind_run(&self, run: Option<&RunId>) -> usize {
        let later = run.map(|run| self.state.runs.after(run));
        later.and_then(|mut later| later.find_map(|run| self.first_of(&run.id))).unwrap_or(self.state.items.len())
    }

    /// The place behind an item; also behind what earlier runs left there that no snapshot has. Behind a reply of another
    /// run it is behind that run: its text, begun early, may have been stored late.
    fn behind(&self, after: &ItemId, run: Option<&RunId>) -> Option<usize> {
        let (items, runs) = (&self.state.items, &self.state.runs);
        let mut at = items.position(after)?;
        let named = items.slot(at)?;
        let is_reply = matches!(&*named.item.to_item(), Item::AssistantMessage(_));
        let goes_before = |slot: &Slot| {
            let Some(its) = slot.run().filter(|its| Some(*its) != run) else { return false };
            let is_named = Some(its) == named.run();
            let is_earlier = is_named || run.is_some_and(|run| runs.is_before(its, run));
            (is_named && is_reply) || (is_earlier && slot.item.is_passing())
        };
        at += 1;
        while items.slot(at).is_some_and(goes_before) {
            at += 1;
        }
        Some(at)
    }

    pub(super) fn delta(&mut self, event: &Event, delta: &MessageDelta) {
        let (id, run) = (&delta.message_id, event.run.as_ref());
        if self.has_ended(run) || self.lanes.get(run).is_some_and(|lane| lane.retired.contains(id)) {
            return;
        }
        let stamp = self.stamp(event);
        let Some(at) = self.state.items.position(id) else {
            // What a newer snapshot may have as a stored message is not begun again; no text is no item.
            if !delta.text.is_empty() && event.seq >= self.snapshot_seq {
                let mut text = LiveText::default();
                text.put(delta.offset, &delta.text);
                let live = LiveMessage { id: id.clone(), run: run.cloned(), text };
                self.insert(event, self.state.items.len(), FeedItem::Live(live.into()));
            }
            return;
        };
        let Some(item) = self.state.items.item_mut(at, stamp) else { return };
        if let FeedItem::Told(told) = &*item {
            // A text that a snapshot told as provisional goes on; a stored message is never cut.
            let Item::AssistantMessage(message) = &**told else { return };
            if !message.provisional {
                return;
            }
            let text = LiveText::from(message.text.as_str());
            *item = FeedItem::Live(LiveMessage { id: id.clone(), run: message.run.clone(), text }.into());
        }
        let FeedItem::Live(live) = item else { return };
        if let Some(from) = Arc::make_mut(live).text.put(delta.offset, &delta.text) {
            if live.text.is_empty() {
                self.remove_text(at, id, run);
            } else {
                self.touched.text(TextOf::Item(id.clone()), from);
            }
        }
    }

    /// A text that begins anew may begin behind what came since: until then there is no item.
    fn remove_text(&mut self, at: usize, id: &ItemId, run: Option<&RunId>) {
        self.state.items.remove(at);
        self.touched.taken_out(id);
        let is_of_run = |at: &usize| self.state.items.slot(*at).is_some_and(|slot| slot.run() == run);
        let next = (at..self.state.items.len()).find(is_of_run);
        let next = next.and_then(|at| self.state.items.slot(at)).map(|slot| slot.item.id().clone());
        let lane = self.lanes.of(run);
        lane.provisional.retain(|p| p.id != *id);
        if lane.first.as_ref() == Some(id) {
            lane.first = next;
        }
    }

    pub(super) fn assistant_message(&mut self, event: &Event, told: &MessageAssistant) {
        let known = self.state.items.position(&told.message_id);
        let stands_for = if told.provisional { self.newest(event, told) } else { self.same_text(event, told) };
        let stands_for = match (known, stands_for) {
            // A message with the host's own id is known to be itself.
            (Some(_), _) if !told.provisional => None,
            (_, stands_for) => stands_for.filter(|id| *id != told.message_id),
        };
        let message = Message {
            id: told.message_id.clone(),
            text: told.text.clone(),
            run: event.run.clone(),
            created_at: event.at,
            provisional: told.provisional,
        };
        match (known, stands_for) {
            (known, Some(old)) => {
                // A run that was taken up again replies again: the newer text is the reply.
                if let Some(at) = known {
                    self.state.items.remove(at);
                    self.touched.taken_out(&told.message_id);
                    self.lanes.of(event.run.as_ref()).provisional.retain(|p| p.id != told.message_id);
                }
                let item = FeedItem::Told(Item::AssistantMessage(message).into());
                let Some(at) = self.state.items.position(&old) else { return };
                self.lanes.of(event.run.as_ref()).replace(&old, &item);
                self.touched.in_place_of(item.id(), &old);
                let stamp = self.stamp(event);
                self.state.items.set(at, item, stamp);
            }
            (Some(at), None) => {
                let Some(slot) = self.state.items.slot(at) else { return };
                let mut message = message;
                if let FeedItem::Told(item) = &slot.item
                    && let Item::AssistantMessage(known) = &**item
                {
                    // The event tells the text alone.
                    (message.created_at, message.run) = (known.created_at, known.run.clone());
                }
                self.set(event, at, FeedItem::Told(Item::AssistantMessage(message).into()));
            }
            (None, None) => {
                let at = self.behind_run(event.run.as_ref());
                self.insert(event, at, FeedItem::Told(Item::AssistantMessage(message).into()));
            }
        }
    }

    /// The run's newest provisional item, where the reply can be its text.
    fn newest(&self, event: &Event, reply: &MessageAssistant) -> Option<ItemId> {
        let newest = self.lanes.get(event.run.as_ref())?.provisional.last()?;
        (!newest.over || self.begins(&newest.id, &reply.text)).then(|| newest.id.clone())
    }

    /// The provisional item whose text the host stored as this message.
    fn same_text(&self, event: &Event, told: &MessageAssistant) -> Option<ItemId> {
        let provisional = &self.lanes.get(event.run.as_ref())?.provisional;
        let begins: Vec<_> = provisional.iter().filter(|p| self.begins(&p.id, &told.text)).collect();
        let whole = begins.iter().find(|p| self.len_bytes(&p.id) == told.text.len());
        match whole.or(begins.first()) {
            Some(found) => Some(found.id.clone()),
            None => self.newest(event, told),
        }
    }

    /// Whether the text of an item is the beginning of `text`.
    fn begins(&self, id: &ItemId, text: &str) -> bool {
        match self.state.items.get(id) {
            Some(FeedItem::Live(live)) => live.text.begins(text),
            Some(FeedItem::Told(item)) => {
                matches!(&**item, Item::AssistantMessage(message) if text.starts_with(&message.text))
            }
            None => false,
        }
    }

    fn len_bytes(&self, id: &ItemId) -> usize {
        match self.state.items.get(id) {
            Some(FeedItem::Live(live)) => live.text.len_bytes(),
            Some(FeedItem::Told(item)) => match &**item {
                Item::AssistantMessage(message) => message.text.len(),
                _ => 0,
            },
            None => 0,
        }
    }
}

//! What events do to tool calls and edits.
//!
//! A call that has ended is not set to running again by an event that restates its beginning. An end without a
//! beginning shows nothing, as there is no name to show; it is kept until the beginning comes, or the run ends.

use super::changed::TextOf;
use super::item::FeedItem;
use super::reducer::FeedReducer;
use super::text::LiveText;
use crate::model::{EditState, Event, Item, ItemId, ToolCall, ToolFinished, ToolOutput, ToolStatus};

impl FeedReducer {
    pub(super) fn tool_started(&mut self, event: &Event, call: &Item) {
        let Item::ToolCall(call) = call else {
            return self.upsert(event, call, self.state.items.len());
        };
        let mut call = call.clone();
        match self.state.items.position(&call.id) {
            Some(at) => {
                if let Some(FeedItem::Told(known)) = self.state.items.slot(at).map(|slot| &slot.item)
                    && let Item::ToolCall(known) = &**known
                {
                    call.durable |= known.durable;
                    if call.status == ToolStatus::Running {
                        call.status = known.status.clone();
                        call.result = known.result.clone();
                        call.is_error = known.is_error;
                    }
                }
                if call.durable {
                    self.lanes.of(event.run.as_ref()).end_step();
                }
                self.set(event, at, FeedItem::Told(Item::ToolCall(call).into()));
            }
            None => {
                // A nested call is in no snapshot: one that comes late stays away.
                let is_late = event.seq < self.snapshot_seq || self.has_ended(event.run.as_ref());
                if !event.durable && is_late {
                    return;
                }
                if let Some(end) = self.early_ends.remove(&call.id) {
                    finish(&mut call, &end);
                }
                self.insert(event, self.state.items.len(), FeedItem::Told(Item::ToolCall(call).into()));
            }
        }
    }

    pub(super) fn tool_finished(&mut self, event: &Event, end: &ToolFinished) {
        let Some(at) = self.state.items.position(&end.call_id) else {
            if event.durable || !self.has_ended(event.run.as_ref()) {
                self.early_ends.insert(end.call_id.clone(), end.clone());
            }
            return;
        };
        let call = match self.state.items.slot(at).map(|slot| &slot.item) {
            Some(FeedItem::Told(item)) => match &**item {
                Item::ToolCall(call) => call.clone(),
                _ => return,
            },
            _ => return,
        };
        let mut ended = call;
        finish(&mut ended, end);
        self.set(event, at, FeedItem::Told(Item::ToolCall(ended).into()));
    }

    pub(super) fn tool_output(&mut self, output: &ToolOutput) {
        let id = &output.call_id;
        if !self.state.items.contains(id) {
            return;
        }
        let outputs = &mut self.state.extra.outputs;
        if !outputs.contains_key(id) {
            outputs.insert_mut(id.clone(), LiveText::default());
        }
        if let Some(text) = outputs.get_mut(id)
            && let Some(from) = text.put(output.offset, &output.text)
        {
            self.touched.text(TextOf::Output(id.clone()), from);
        }
    }

    pub(super) fn edit_undone(&mut self, event: &Event, id: &ItemId) {
        let Some(at) = self.state.items.position(id) else { return };
        if let Some(FeedItem::Told(item)) = self.state.items.slot(at).map(|slot| &slot.item)
            && let Item::Edit(edit) = &**item
        {
            let mut edit = edit.clone();
            edit.state = EditState::Undone;
            self.set(event, at, FeedItem::Told(Item::Edit(edit).into()));
        }
    }
}

pub(super) fn finish(call: &mut ToolCall, end: &ToolFinished) {
    call.status = if end.is_error == Some(true) { ToolStatus::Failed } else { ToolStatus::Done };
    call.result = end.result.clone();
    call.is_error = end.is_error;
}

//! The context: history by store sequence, structure, view, summaries.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitport::bubblepaw::wire::{
    Chapter, ContextEvents, ContextEventsResult, ContextStructure, ContextStructureResult, ContextSummary,
    ContextSummaryResult, ContextView, ContextViewResult, Episode, HistoryRange, ViewItem,
};

use super::request::Request;
use super::result;
use crate::agent;
use crate::failure::{Failure, Outcome};
use crate::host::{Host, message_id};
use crate::store::Span;

/// Messages of a page at most.
const PAGE: u64 = 1000;

pub(super) fn history(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<HistoryRange>()?;
    if asked.limit == 0 || asked.first_seq > asked.last_seq {
        return Err(Failure::params("limit must be at least 1 and first_seq at most last_seq"));
    }
    host.read(|tx| {
        let num = tx.row(&asked.session_id)?.num;
        let page = tx.store.message_range(num, asked.first_seq, asked.last_seq, asked.limit.min(PAGE))?;
        let entries: Vec<String> =
            page.entries.iter().map(|(seq, json)| format!(r#"{{"seq":{seq},"message":{json}}}"#)).collect();
        let next = page.next.map_or_else(String::new, |next| format!(r#","next_seq":{next}"#));
        Ok(format!(r#"{{"entries":[{}]{next}}}"#, entries.join(",")))
    })
}

pub(super) fn structure(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ContextStructure>()?;
    let spans = host.read(|tx| {
        let num = tx.row(&asked.session_id)?.num;
        tx.store.spans(num)
    })?;
    let (chapters, episodes): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|span| span.kind == "chapter");
    let of_chapter = |id: &str| {
        let of = episodes.iter().filter(|episode| episode.chapter.as_deref() == Some(id));
        of.map(|episode| episode.id.clone()).collect()
    };
    result::<ContextStructure>(&ContextStructureResult {
        chapters: chapters
            .iter()
            .map(|span| Chapter {
                chapter_id: span.id.clone(),
                title: Some(span.title.clone()),
                first_seq: span.first_seq,
                last_seq: span.last_seq,
                episodes: of_chapter(&span.id),
            })
            .collect(),
        episodes: episodes
            .iter()
            .map(|span| Episode {
                episode_id: span.id.clone(),
                title: Some(span.title.clone()),
                first_seq: span.first_seq,
                last_seq: span.last_seq,
            })
            .collect(),
    })
}

pub(super) fn events(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ContextEvents>()?;
    let events = host.read(|tx| {
        let num = tx.row(&asked.session_id)?.num;
        tx.store.compactions(num)
    })?;
    result::<ContextEvents>(&ContextEventsResult { events })
}

pub(super) fn view(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ContextView>()?;
    host.read(|tx| {
        let row = tx.row(&asked.session_id)?.clone();
        let applied: Vec<String> = tx
            .store
            .compactions(row.num)?
            .into_iter()
            .filter(|event| event.applied)
            .map(|event| event.event_id)
            .collect();
        let mut spans = tx.store.spans(row.num)?;
        spans.retain(|span| applied.contains(&span.compaction));
        let chapters: Vec<String> =
            spans.iter().filter(|span| span.kind == "chapter").map(|span| span.id.clone()).collect();
        // An episode stands for itself until its chapter is in force.
        spans.retain(|span| span.chapter.as_ref().is_none_or(|chapter| !chapters.contains(chapter)));
        let mut items = BTreeMap::new();
        let mut covered = 0;
        for span in &spans {
            covered = covered.max(span.last_seq);
            items.insert(span.first_seq, ViewItem { kind: span.kind.clone(), id: span.id.clone() });
        }
        for (seq, _) in tx.store.message_range(row.num, covered + 1, u64::MAX, u64::MAX >> 24)?.entries {
            let id = message_id(row.num, seq);
            items.insert(seq, ViewItem { kind: "message".to_owned(), id });
        }
        result::<ContextView>(&ContextViewResult {
            threshold: agent::threshold(row.details.model.as_deref()),
            items: items.into_values().collect(),
        })
    })
}

pub(super) fn summary(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ContextSummary>()?;
    if !matches!(asked.kind.as_str(), "episode" | "chapter") {
        return Err(Failure::refused("invalid kind: it must be episode or chapter"));
    }
    let span = host.read(|tx| {
        let num = tx.row(&asked.session_id)?.num;
        let span = tx.store.spans(num)?.into_iter().find(|span| span.kind == asked.kind && span.id == asked.id);
        span.ok_or_else(|| Failure::refused(format!("{} not found: {}", asked.kind, asked.id)))
    })?;
    result::<ContextSummary>(&ContextSummaryResult {
        kind: span.kind,
        id: span.id,
        title: Some(span.title),
        text: span.text,
    })
}

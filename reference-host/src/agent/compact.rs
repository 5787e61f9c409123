//! The context: what model requests cost, how full the window is, and what is done about it.

use kitport::bubblepaw::wire::{ContextEvent, EventData, LastRequest, Usage, UsageContext};
use kitport::model::{ChatId, RunId};

use crate::failure::Outcome;
use crate::host::Tx;
use crate::providers;
use crate::store::Span;

/// Bytes of text that make a token, about.
const TOKEN_BYTES: u64 = 4;

/// What a request costs before anyone said a word: the system's own text.
const BASE_TOKENS: u64 = 350;

/// Cost of a million tokens that go in, and that come out, in US dollars.
const COST_IN: f64 = 0.5;
const COST_OUT: f64 = 2.0;

/// Messages of an episode at most.
const EPISODE_MESSAGES: usize = 12;

/// So many episodes make a chapter.
const CHAPTER_EPISODES: usize = 3;

/// The window where a session had no run yet.
const DEFAULT_WINDOW: u64 = 200_000;

fn window(model: Option<&str>) -> u64 {
    model.and_then(|model| providers::find(model).ok()).map_or(DEFAULT_WINDOW, |found| found.window)
}

/// How many tokens of the window may be used before it is compacted: four fifths.
pub(crate) fn threshold(model: Option<&str>) -> u64 {
    window(model) / 5 * 4
}

/// Adds a model request to the session's usage and tells its tokens.
pub(super) fn count_usage(
    tx: &mut Tx<'_>,
    session: &ChatId,
    run: &RunId,
    model: Option<&str>,
    text_bytes: usize,
) -> Outcome<()> {
    let details = &mut tx.change(session)?.details;
    let usage = details.usage.get_or_insert(Usage {
        input_tokens: 0,
        output_tokens: 0,
        cached_input_tokens: Some(0),
        total_tokens: Some(0),
        cost_usd: Some(0.0),
        context: None,
        last_request: None,
    });
    let used = usage.context.as_ref().and_then(|context| context.used).unwrap_or(BASE_TOKENS);
    let output = text_bytes as u64 / TOKEN_BYTES + 12;
    usage.input_tokens += used;
    usage.output_tokens += output;
    usage.cached_input_tokens = Some(usage.cached_input_tokens.unwrap_or(0) + used / 2);
    usage.total_tokens = Some(usage.input_tokens + usage.output_tokens);
    usage.cost_usd = Some((usage.input_tokens as f64 * COST_IN + usage.output_tokens as f64 * COST_OUT) / 1e6);
    usage.context = Some(UsageContext { used: Some(used + output + 20), window: Some(window(model)) });
    let (input_tokens, output_tokens) = (Some(used), Some(output));
    usage.last_request = Some(LastRequest { input_tokens, output_tokens });
    tx.event(session, Some(run), EventData::UsageLastRequest { input_tokens, output_tokens }).map(drop)
}

/// Compacts the context where it is too full for another request.
pub(super) fn compact_when_full(tx: &mut Tx<'_>, session: &ChatId, run: &RunId) -> Outcome<()> {
    let details = &tx.row(session)?.details;
    let used = details.usage.as_ref().and_then(|usage| usage.context.as_ref()).and_then(|context| context.used);
    let threshold = threshold(details.model.as_deref());
    if used.is_some_and(|used| used > threshold) {
        compact(tx, session, run, "threshold", false)?;
    }
    Ok(())
}

/// Makes episodes of the messages that no episode covers, and chapters of episodes. What isn't late is in force at
/// once; what is late when the run has ended.
pub(super) fn compact(tx: &mut Tx<'_>, session: &ChatId, run: &RunId, trigger: &str, late: bool) -> Outcome<()> {
    let num = tx.row(session)?.num;
    let spans = tx.store.spans(num)?;
    let covered = spans.iter().map(|span| span.last_seq).max().unwrap_or(0);
    let fresh = tx.store.message_range(num, covered + 1, u64::MAX, 1 << 20)?.entries;
    // The messages of the run that goes on stay in sight, where there are others.
    let marker = format!("\"run_id\":\"{run}\"");
    let earlier = fresh.iter().take_while(|(_, json)| !json.contains(&marker)).count();
    let fresh = if earlier > 0 { &fresh[..earlier] } else { &fresh[..] };
    let event_id = tx.change(session)?.new_id("compaction");
    let mut open: Vec<Span> =
        spans.into_iter().filter(|span| span.kind == "episode" && span.chapter.is_none()).collect();
    for part in fresh.chunks(EPISODE_MESSAGES) {
        let (Some((first_seq, _)), Some((last_seq, _))) = (part.first(), part.last()) else { continue };
        let id = tx.change(session)?.new_id("episode");
        let span = Span {
            kind: "episode".to_owned(),
            title: format!("Messages {first_seq} to {last_seq}"),
            text: format!("In {} messages the fox and the user talked about letters and hills.", part.len()),
            id,
            first_seq: *first_seq,
            last_seq: *last_seq,
            chapter: None,
            compaction: event_id.clone(),
        };
        tx.store.insert_span(num, &span)?;
        open.push(span);
    }
    if open.len() >= CHAPTER_EPISODES {
        let id = tx.change(session)?.new_id("chapter");
        for episode in &open {
            tx.store.set_chapter(&episode.id, &id)?;
        }
        let (first, last) = (&open[0], &open[open.len() - 1]);
        tx.store.insert_span(
            num,
            &Span {
                kind: "chapter".to_owned(),
                title: format!("{} episodes", open.len()),
                text: format!("{} episodes of letters and hills.", open.len()),
                id,
                first_seq: first.first_seq,
                last_seq: last.last_seq,
                chapter: None,
                compaction: event_id.clone(),
            },
        )?;
    }
    if let Some(context) = tx.change(session)?.details.usage.as_mut().and_then(|usage| usage.context.as_mut()) {
        context.used = context.used.map(|used| (used / 4).max(BASE_TOKENS));
    }
    let kind = "episodes".to_owned();
    let event = ContextEvent {
        event_id: event_id.clone(),
        kind: kind.clone(),
        trigger: trigger.to_owned(),
        seq: fresh.last().map(|(seq, _)| *seq),
        at: Some(tx.now),
        applied: !late,
    };
    tx.store.insert_compaction(num, &event)?;
    let data = EventData::ContextCompaction { event_id, kind, trigger: trigger.to_owned() };
    tx.event(session, Some(run), data).map(drop)
}

//! Faults of lines: each line passes here after it was pushed, and may be framed by noise, repeated, held back,
//! dropped or decorated.

use std::collections::HashMap;
use std::io::Write as _;

use kitport::model::ChatId;

use super::Faults;
use crate::outbox::Kind;

/// What stands on stdout of hosts that log there: lines that are no messages, one of them not even text.
const NOISE: &[&[u8]] = &[
    b"[info] migrated 3 tables in 12 ms\n",
    b"\n",
    b"   \t \n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"session_id\":\"s\n",
    b"\xff\xfe\xf0\x28 not text \xc3\n",
    b"[1,2,3]\n",
    b"null\n",
    b"\"{}\"\n",
    b"{\"level\":\"warn\",\"message\":\"a log line in JSON\"}\n",
    b"(node:1) Warning: something is deprecated\r\n",
];

/// Lines that come after a durable notification before its late repetition.
const LATE_LINES: u32 = 12;

/// The faults of lines.
#[derive(Debug)]
pub(crate) struct Pen {
    faults: Faults,
    rng: fastrand::Rng,
    /// Repetitions that wait for some more lines.
    late: Vec<(u32, Vec<u8>)>,
    /// An answer that waits for another one to overtake it.
    held: Option<Vec<u8>>,
    /// Sessions whose notifications are being dropped: how many more, and the last sequence dropped.
    dropping: HashMap<ChatId, (u32, u64)>,
    big_line_due: bool,
}

impl Pen {
    /// None where no fault touches lines.
    pub(crate) fn new(faults: &Faults, seed: u64) -> Option<Box<Pen>> {
        let touches = faults.noise
            || faults.duplicates
            || faults.transient_duplicates
            || faults.reorder
            || faults.drop
            || faults.future
            || faults.big_line_mib.is_some();
        touches.then(|| {
            Box::new(Pen {
                faults: faults.clone(),
                rng: fastrand::Rng::with_seed(seed),
                late: Vec::new(),
                held: None,
                dropping: HashMap::new(),
                big_line_due: true,
            })
        })
    }

    /// Whether something waits for the host to be quiet.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some() || !self.dropping.is_empty() || !self.late.is_empty()
    }

    /// Lets out what was held back.
    pub(crate) fn idle(&mut self, buffer: &mut Vec<u8>) {
        for (session, (_, last)) in std::mem::take(&mut self.dropping) {
            self.gap(buffer, &session, last);
        }
        if let Some(held) = self.held.take() {
            buffer.extend_from_slice(&held);
        }
        for (_, line) in self.late.drain(..) {
            buffer.extend_from_slice(&line);
        }
    }

    /// Does its worst with the line that begins at `start`.
    pub(crate) fn touch(&mut self, buffer: &mut Vec<u8>, start: usize, kind: Kind<'_>) {
        match kind {
            Kind::Handshake => return,
            Kind::Answer => self.answer(buffer, start),
            Kind::Event { session, sequence, durable } => self.event(buffer, start, session, sequence, durable),
            Kind::Other => {}
        }
        self.late.retain_mut(|(lines, late)| {
            *lines -= 1;
            if *lines == 0 {
                buffer.extend_from_slice(late);
            }
            *lines > 0
        });
        if self.faults.noise && self.rng.u8(..4) == 0 {
            buffer.extend_from_slice(NOISE[self.rng.usize(..NOISE.len())]);
        }
        if self.faults.future && self.rng.u8(..16) == 0 {
            buffer.extend_from_slice(
                b"{\"jsonrpc\":\"2.0\",\"method\":\"host.weather\",\"params\":{\"sky\":[\"clear\"],\"session_id\":7}}\n",
            );
        }
    }

    fn answer(&mut self, buffer: &mut Vec<u8>, start: usize) {
        if self.faults.future {
            decorate(buffer, start, b"\"result\":{");
        }
        if !self.faults.reorder {
            return;
        }
        match self.held.take() {
            // The newer one stands already: the older one follows it.
            Some(held) => buffer.extend_from_slice(&held),
            None if self.rng.bool() => self.held = Some(buffer.split_off(start)),
            None => {}
        }
    }

    fn event(&mut self, buffer: &mut Vec<u8>, start: usize, session: &ChatId, sequence: u64, durable: bool) {
        if self.faults.future {
            decorate(buffer, start, b"\"data\":{");
            decorate(buffer, start, b"\"params\":{");
        }
        if self.faults.drop {
            let begins = self.rng.u8(..8) == 0;
            if begins && !self.dropping.contains_key(session) {
                self.dropping.insert(session.clone(), (self.rng.u32(1..6), sequence));
            }
            if let Some((left, last)) = self.dropping.get_mut(session) {
                buffer.truncate(start);
                *left -= 1;
                *last = sequence;
                if *left == 0 {
                    let last = *last;
                    self.dropping.remove(session);
                    self.gap(buffer, session, last);
                }
                return;
            }
        }
        let repeat = if durable { self.faults.duplicates } else { self.faults.transient_duplicates };
        if repeat {
            let line = buffer[start..].to_vec();
            match self.rng.u8(..4) {
                0 if durable => self.late.push((self.rng.u32(1..LATE_LINES), line)),
                0 | 1 => {}
                _ => buffer.extend_from_slice(&line),
            }
        }
        if let Some(mib) = self.faults.big_line_mib
            && std::mem::take(&mut self.big_line_due)
        {
            let bytes = usize::try_from(mib).unwrap_or(usize::MAX).saturating_mul(1024 * 1024);
            write!(
                buffer,
                "{{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{{\"session_id\":\"{session}\",\"event\":\
                 {{\"sequence\":{sequence},\"durable\":false,\"type\":\"memory_dump\",\"data\":{{\"text\":\""
            )
            .expect("a vector takes every byte");
            buffer.resize(buffer.len() + bytes, b'm');
            buffer.extend_from_slice(b"\"}}}}\n");
        }
    }

    fn gap(&mut self, buffer: &mut Vec<u8>, session: &ChatId, last: u64) {
        let head = "{\"jsonrpc\":\"2.0\",\"method\":\"events.gap\",\"params\":{\"session_id\":";
        let told = if self.rng.bool() { format!(",\"last_sequence\":{last}") } else { String::new() };
        writeln!(buffer, "{head}\"{session}\"{told}}}}}").expect("a vector takes every byte");
    }
}

/// Adds an unknown field to the first object that `key` opens in the line.
fn decorate(buffer: &mut Vec<u8>, start: usize, key: &[u8]) {
    let Some(place) = memchr::memmem::find(&buffer[start..], key) else { return };
    let at = start + place + key.len();
    let field: &[u8] = if buffer.get(at) == Some(&b'}') {
        b"\"x_future\":[1,{\"deep\":null}]"
    } else {
        b"\"x_future\":[1,{\"deep\":null}],"
    };
    buffer.splice(at..at, field.iter().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(names: &[&str], lines: u32) -> Vec<Vec<u8>> {
        let mut pen = Pen::new(&Faults::named(names.iter().copied()).unwrap(), 3).unwrap();
        let session = ChatId::from("s");
        let mut buffer = Vec::new();
        for n in 0..lines {
            let start = buffer.len();
            writeln!(buffer, "{{\"params\":{{\"event\":{{\"n\":{n},\"data\":{{}}}}}}}}").unwrap();
            pen.touch(&mut buffer, start, Kind::Event { session: &session, sequence: n.into(), durable: true });
            let start = buffer.len();
            writeln!(buffer, "{{\"id\":{n},\"result\":{{\"a\":1}}}}").unwrap();
            pen.touch(&mut buffer, start, Kind::Answer);
        }
        pen.idle(&mut buffer);
        assert!(!pen.holds());
        buffer.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    fn count(lines: &[Vec<u8>], what: &str) -> usize {
        lines.iter().filter(|line| memchr::memmem::find(line, what.as_bytes()).is_some()).count()
    }

    #[test]
    fn nothing_wrong_needs_no_pen() {
        assert!(Pen::new(&Faults::named(["hang=3", "split"]).unwrap(), 1).is_none());
    }

    #[test]
    fn every_answer_comes_once_in_another_order() {
        let lines = play(&["reorder"], 50);
        assert_eq!(lines.len(), 100);
        let answers: Vec<&Vec<u8>> = lines.iter().filter(|line| line.starts_with(b"{\"id\"")).collect();
        assert_eq!(answers.len(), 50);
        assert!(!answers.is_sorted());
    }

    #[test]
    fn what_is_dropped_is_told() {
        let lines = play(&["drop"], 200);
        let gaps = count(&lines, "events.gap");
        assert!(gaps > 5 && count(&lines, "\"event\":") < 200, "{gaps}");
    }

    #[test]
    fn repetitions_are_whole_and_noise_is_between_lines() {
        let lines = play(&["duplicates", "noise"], 200);
        assert!(count(&lines, "\"event\":{") > 250);
        assert_eq!(count(&lines, "\"result\""), 200);
        assert!(lines.iter().any(|line| std::str::from_utf8(line).is_err()));
    }

    #[test]
    fn unknown_fields_leave_the_json_whole() {
        for line in play(&["future"], 20) {
            let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
            assert!(value.is_object());
        }
    }

    #[test]
    fn the_big_line_comes_once() {
        let lines = play(&["big-line=1"], 10);
        assert_eq!(lines.iter().filter(|line| line.len() > 1024 * 1024).count(), 1);
    }
}

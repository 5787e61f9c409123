//! What a line over the limit would have been, read from its beginning alone.
//!
//! An answer fails its request at once, so its id is looked for; a notification is only told of. The line is cut off
//! somewhere, so this is no parser: it walks the top level of an object as far as there is one.

/// What the beginning of a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// The answer to the request with this id.
    Answer(u64),
    /// An answer whose id can't be one of ours.
    StrangeAnswer,
    /// Something with a method: a notification, or a request.
    Call,
    /// Nothing that could be told.
    Unknown,
}

/// Reads the beginning of a line.
pub fn read_head(head: &[u8]) -> Head {
    let mut scan = Scan { bytes: head, at: 0 };
    let mut id = None;
    let mut answer = false;
    let mut call = false;
    scan.object(|key, value| match key {
        b"id" => id = Some(value.to_vec()),
        b"method" => call = true,
        b"result" | b"error" => answer = true,
        _ => {}
    });
    match (call, id) {
        (true, _) => Head::Call,
        (false, Some(id)) => match std::str::from_utf8(&id).ok().and_then(super::message::read_id) {
            Some(id) => Head::Answer(id),
            None => Head::StrangeAnswer,
        },
        (false, None) if answer => Head::StrangeAnswer,
        (false, None) => Head::Unknown,
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// Walks the members of the object, whole values only; a key whose value is cut off is still told, with no value.
    fn object(&mut self, mut member: impl FnMut(&[u8], &[u8])) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            self.space();
            let from = self.at;
            let whole = self.value();
            // A string or object that is cut off still says that the key is there; half a number would be another one.
            let value = if whole.is_some() { &self.bytes[from..self.at] } else { b"".as_slice() };
            if whole.is_some() || key != b"id" {
                member(key, value);
            }
            whole?;
            self.expect(b',')?;
        }
    }

    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.space();
        (*self.bytes.get(self.at)? == byte).then(|| self.at += 1)
    }

    /// A string, without its quotes and as it is written.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let from = self.at;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(&self.bytes[from..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    fn value(&mut self) -> Option<()> {
        match *self.bytes.get(self.at)? {
            b'"' => self.string().map(|_| ()),
            b'{' | b'[' => self.nested(),
            _ => {
                while !matches!(*self.bytes.get(self.at)?, b',' | b'}' | b']' | b' ' | b'\t' | b'\r') {
                    self.at += 1;
                }
                Some(())
            }
        }
    }

    fn nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_id_is_found_before_and_after_the_version() {
        assert_eq!(read_head(br#"{"jsonrpc":"2.0","id":17,"result":{"a":"xxx"#), Head::Answer(17));
        assert_eq!(read_head(br#"{"id":17,"jsonrpc":"2.0","result":{"a":"xxx"#), Head::Answer(17));
        assert_eq!(read_head(b" {\t\"id\" : 17 , \"result\":[1,2"), Head::Answer(17));
        assert_eq!(read_head(br#"{"error":{"code":1,"data":["id",{"id":4}]},"id":5,"more":"xxx"#), Head::Answer(5));
    }

    #[test]
    fn a_call_is_told_from_an_answer() {
        assert_eq!(read_head(br#"{"jsonrpc":"2.0","method":"event","params":{"id":3,"x":"#), Head::Call);
        assert_eq!(read_head(br#"{"id":3,"method":"ask","params":{"x":"#), Head::Call);
        assert_eq!(read_head(br#"{"id":3,"method":"as"#), Head::Call);
    }

    #[test]
    fn what_is_inside_is_not_taken_for_the_top() {
        assert_eq!(read_head(br#"{"result":{"id":3,"method":"x"#), Head::StrangeAnswer);
        assert_eq!(read_head(br#"{"a":"\",\"id\":3,","b":"#), Head::Unknown);
        assert_eq!(read_head(br#"{"a":["]",{"id":9}],"id":8,"result":"x"#), Head::Answer(8));
    }

    #[test]
    fn half_a_number_is_no_id() {
        assert_eq!(read_head(br#"{"id":12"#), Head::Unknown);
        assert_eq!(read_head(br#"{"id":12,"#), Head::Answer(12));
    }

    #[test]
    fn strange_ids_and_noise_are_no_answer_of_ours() {
        assert_eq!(read_head(br#"{"id":"a","result":1,"x":"#), Head::StrangeAnswer);
        assert_eq!(read_head(br#"{"id":null,"error":{"#), Head::StrangeAnswer);
        assert_eq!(read_head(b"xxxxxxxxxxx"), Head::Unknown);
        assert_eq!(read_head(b""), Head::Unknown);
        assert_eq!(read_head(br#"[{"id":1,"result""#), Head::Unknown);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(prop::sample::select(br#"{}[]":,\id 0a"#.to_vec()), 0..60)) {
            read_head(&bytes);
        }
    }
}

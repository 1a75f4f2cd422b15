//! Replies as bytes. Whoever writes a reply says what it is; the protocol decides its form: in
//! RESP2 a map is a flat array and a double a string.

use lsmkv::Reply;

/// Version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The first that all clients know.
    Resp2,
    /// With maps, sets, doubles; asked for by HELLO 3.
    Resp3,
}

impl Protocol {
    /// Its number.
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Appends replies to a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    fn head(&mut self, kind: u8, number: impl itoa::Integer) {
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn status(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    pub(crate) fn ok(&mut self) {
        self.status("OK");
    }

    /// An error with its code. A line end in it would end the reply: it becomes a blank.
    pub(crate) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let blank = |byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
        self.out.extend(text.bytes().map(blank));
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.head(b':', number);
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.head(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Text for a person: a kind of its own in RESP3.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if !self.is_resp3() {
            return self.bulk(text.as_bytes());
        }
        self.head(b'=', text.len() + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn nil(&mut self) {
        self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub(crate) fn nil_array(&mut self) {
        self.out.extend_from_slice(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The head of an array; its elements follow.
    pub(crate) fn array(&mut self, len: usize) {
        self.head(b'*', len);
    }

    /// The head of a map; its keys and values follow in turn.
    pub(crate) fn map(&mut self, len: usize) {
        if self.is_resp3() { self.head(b'%', len) } else { self.head(b'*', len.saturating_mul(2)) }
    }

    /// The head of a set; its elements follow.
    pub(crate) fn set(&mut self, len: usize) {
        self.head(if self.is_resp3() { b'~' } else { b'*' }, len);
    }

    pub(crate) fn double(&mut self, number: f64) {
        let text = Reply::double_text(number);
        if self.is_resp3() {
            self.line(b',', text.as_bytes());
        } else {
            self.bulk(text.as_bytes());
        }
    }

    /// What a command of the library answered.
    pub(crate) fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Nil => self.nil(),
            Reply::NilArray => self.nil_array(),
            Reply::Status(text) => self.status(text),
            Reply::Error(text) => self.error(text),
            Reply::Int(number) => self.integer(*number),
            Reply::Bulk(bytes) => self.bulk(bytes),
            Reply::Double(number) => self.double(*number),
            Reply::Array(items) => {
                self.array(items.len());
                items.iter().for_each(|item| self.reply(item));
            }
            Reply::Set(items) => {
                self.set(items.len());
                items.iter().for_each(|item| self.reply(item));
            }
            Reply::Map(pairs) => {
                self.map(pairs.len());
                pairs.iter().for_each(|pair| self.pair(pair));
            }
            Reply::Pairs(pairs) if self.is_resp3() => {
                self.array(pairs.len());
                for pair in pairs {
                    self.array(2);
                    self.pair(pair);
                }
            }
            Reply::Pairs(pairs) => {
                self.array(pairs.len().saturating_mul(2));
                pairs.iter().for_each(|pair| self.pair(pair));
            }
        }
    }

    fn pair(&mut self, (first, second): &(Reply, Reply)) {
        self.reply(first);
        self.reply(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Writer<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out, protocol));
        String::from_utf8(out).unwrap()
    }

    fn both(reply: &Reply) -> (String, String) {
        let form = |protocol| written(protocol, |writer| writer.reply(reply));
        (form(Protocol::Resp2), form(Protocol::Resp3))
    }

    #[test]
    fn each_kind_of_reply_has_its_form_in_both_versions() {
        let bulk = |text: &'static str| Reply::Bulk(text.into());
        let pair = || vec![(bulk("a"), Reply::Double(1.5))];
        for (reply, resp2, resp3) in [
            (Reply::Nil, "$-1\r\n", "_\r\n"),
            (Reply::NilArray, "*-1\r\n", "_\r\n"),
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::Int(-7), ":-7\r\n", ":-7\r\n"),
            (bulk("a\r\n"), "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"),
            (Reply::Double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n"),
            (Reply::Array(vec![Reply::Int(1)]), "*1\r\n:1\r\n", "*1\r\n:1\r\n"),
            (Reply::Set(vec![Reply::Int(1)]), "*1\r\n:1\r\n", "~1\r\n:1\r\n"),
            (Reply::Map(pair()), "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n", "%1\r\n$1\r\na\r\n,1.5\r\n"),
            (
                Reply::Pairs(pair()),
                "*2\r\n$1\r\na\r\n$3\r\n1.5\r\n",
                "*1\r\n*2\r\n$1\r\na\r\n,1.5\r\n",
            ),
        ] {
            assert_eq!(both(&reply), (resp2.to_owned(), resp3.to_owned()), "{reply:?}");
        }
    }

    #[test]
    fn an_error_is_one_line_whatever_it_says() {
        let text = written(Protocol::Resp2, |writer| writer.error("ERR no 'a\r\n+OK\n' here"));
        assert_eq!(text, "-ERR no 'a  +OK ' here\r\n");
    }

    #[test]
    fn verbatim_text_counts_its_format() {
        let write = |writer: &mut Writer<'_>| writer.verbatim("ab\r\n");
        assert_eq!(written(Protocol::Resp3, write), "=8\r\ntxt:ab\r\n\r\n");
        assert_eq!(written(Protocol::Resp2, write), "$4\r\nab\r\n\r\n");
    }
}

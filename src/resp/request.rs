//! Parsing of requests: arrays of bulk strings, or inline words.
//!
//! The reader gets all bytes received so far, each time more arrive, and remembers its position. So
//! a request of a million arguments that arrives in small pieces is parsed once. A claimed length
//! is compared with a limit and never allocated.
//!
//! An error ends the connection, because the start of the next request is unknown.

use std::fmt;

use crate::commands::quoted_words;

/// The maximum length of an inline request and of a line with a length.
const MAX_LINE: usize = 64 << 10;

/// The argument capacity that the reader keeps from one request to the next.
const RETAINED_ARGUMENTS: usize = 256;

/// The limits of a request.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum size of an argument.
    pub bulk: usize,
    /// The maximum number of arguments.
    pub arguments: usize,
    /// Whether the client has yet to authenticate; then the limits are much lower.
    pub unauthenticated: bool,
}

/// An argument whose length is known, and which is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// Where it begins, from the start of the request.
    pub start: usize,
    pub len: usize,
    /// The number of arguments of the request.
    pub count: usize,
}

impl Limits {
    const UNAUTHENTICATED_ARGUMENTS: usize = 10;
    const UNAUTHENTICATED_BULK: usize = 16 << 10;
}

/// The result of parsing the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The request is not complete yet.
    Incomplete,
    /// A complete request of this many bytes. A request without arguments asks for nothing.
    Request(usize),
}

/// The received bytes are not a valid request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(String);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

fn error<T>(text: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(text.into()))
}

/// An incremental parser of requests. Positions count from the start of the request.
#[derive(Debug, Default)]
pub struct RequestReader {
    /// The number of bytes parsed so far.
    at: usize,
    /// The number of arguments still to come, after the array header.
    missing: Option<usize>,
    /// The length of the next argument, after its header.
    bulk: Option<usize>,
    /// The byte ranges of the arguments parsed so far.
    arguments: Vec<(usize, usize)>,
    /// The words of an inline request.
    words: Vec<Vec<u8>>,
}

impl RequestReader {
    /// Continues parsing. `bytes` starts with the request and holds all bytes received so far.
    pub fn read(&mut self, bytes: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        if self.at == 0 {
            self.clear();
            match bytes.first() {
                None => return Ok(Parsed::Incomplete),
                Some(b'*') => {}
                Some(_) => return self.read_inline(bytes),
            }
        }
        if self.missing.is_none() {
            let Some((line, next)) = line_after(bytes, 1, "too big mbulk count string")? else {
                return Ok(Parsed::Incomplete);
            };
            self.missing = Some(count(line, limits)?);
            self.at = next;
        }
        while let Some(left) = self.missing.filter(|left| *left > 0) {
            if !self.read_argument(bytes, limits)? {
                return Ok(Parsed::Incomplete);
            }
            self.missing = Some(left - 1);
        }
        Ok(self.done(self.at))
    }

    /// The arguments of the request that was parsed from these bytes.
    pub fn arguments<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let found = self.arguments.iter().filter_map(|(from, to)| bytes.get(*from..*to));
        found.chain(self.words.iter().map(Vec::as_slice))
    }

    /// The byte ranges of the arguments; `None` for an inline request, whose words may have
    /// escapes.
    pub fn argument_ranges(&self) -> Option<&[(usize, usize)]> {
        self.words.is_empty().then_some(self.arguments.as_slice())
    }

    /// The argument that is not complete yet, if its length is known.
    pub fn announced(&self) -> Option<Announced> {
        let (len, missing) = (self.bulk?, self.missing?);
        Some(Announced { start: self.at, len, count: self.arguments.len() + missing })
    }

    /// Takes the announced argument for an empty one: its bytes went elsewhere.
    pub fn leave_out(&mut self) {
        self.bulk = self.bulk.map(|_| 0);
    }

    /// The memory that the reader holds.
    pub fn memory(&self) -> usize {
        self.arguments.capacity() * size_of::<(usize, usize)>()
            + self.words.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Forgets the last request, and frees its memory if that is large.
    fn clear(&mut self) {
        self.words.clear();
        self.arguments.clear();
        if self.arguments.capacity() > RETAINED_ARGUMENTS {
            self.arguments = Vec::new();
        }
    }

    fn done(&mut self, taken: usize) -> Parsed {
        (self.at, self.missing, self.bulk) = (0, None, None);
        Parsed::Request(taken)
    }

    /// Parses one argument; `false` if it is not complete yet.
    fn read_argument(&mut self, bytes: &[u8], limits: &Limits) -> Result<bool, ProtocolError> {
        let len = match self.bulk {
            Some(len) => len,
            None => {
                match bytes.get(self.at) {
                    None => return Ok(false),
                    Some(b'$') => {}
                    Some(other) => {
                        return error(format!("expected '$', got '{}'", char::from(*other)));
                    }
                }
                let Some((line, next)) =
                    line_after(bytes, self.at + 1, "too big bulk count string")?
                else {
                    return Ok(false);
                };
                let len = bulk_length(line, limits)?;
                (self.bulk, self.at) = (Some(len), next);
                len
            }
        };
        // Cannot overflow: the limit is far below the maximum.
        let end = self.at + len;
        if bytes.len() < end + 2 {
            return Ok(false);
        }
        self.arguments.push((self.at, end));
        (self.bulk, self.at) = (None, end + 2);
        Ok(true)
    }

    fn read_inline(&mut self, bytes: &[u8]) -> Result<Parsed, ProtocolError> {
        let head = bytes.get(..MAX_LINE).unwrap_or(bytes);
        let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
            if head.len() < MAX_LINE {
                return Ok(Parsed::Incomplete);
            }
            return error("too big inline request");
        };
        let line = head.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(words) = quoted_words::split(line) else {
            return error("unbalanced quotes in request");
        };
        self.words = words;
        Ok(self.done(end + 1))
    }
}

/// The bytes from `start` to the end of the line, and the start of the next line.
fn line_after<'a>(
    bytes: &'a [u8],
    start: usize,
    too_long: &str,
) -> Result<Option<(&'a [u8], usize)>, ProtocolError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let head = rest.get(..MAX_LINE).unwrap_or(rest);
    match head.iter().position(|byte| *byte == b'\r') {
        Some(end) if rest.len() > end + 1 => {
            Ok(Some((head.get(..end).unwrap_or_default(), start + end + 2)))
        }
        None if head.len() >= MAX_LINE => error(too_long),
        _ => Ok(None),
    }
}

fn number(line: &[u8]) -> Option<i64> {
    const SHORT: usize = 9;
    if line.is_empty() || line.len() > SHORT || line.first() == Some(&b'-') {
        let text = std::str::from_utf8(line).ok()?;
        return text.parse().ok().filter(|_| !text.starts_with('+'));
    }
    // Nearly all numbers: digits, too few to overflow.
    line.iter().try_fold(0i64, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// Parses the number of arguments of an array; a nil array has none.
fn count(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let Some(count) = number(line) else { return error("invalid multibulk length") };
    let Ok(count) = usize::try_from(count) else { return Ok(0) };
    if count > limits.arguments {
        return error("invalid multibulk length");
    }
    if limits.unauthenticated && count > Limits::UNAUTHENTICATED_ARGUMENTS {
        return error("unauthenticated multibulk length");
    }
    Ok(count)
}

fn bulk_length(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let len = number(line).and_then(|len| usize::try_from(len).ok());
    let Some(len) = len.filter(|len| *len <= limits.bulk) else {
        return error("invalid bulk length");
    };
    if limits.unauthenticated && len > Limits::UNAUTHENTICATED_BULK {
        return error("unauthenticated bulk length");
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bulk: 512 << 20, arguments: 1 << 20, unauthenticated: false };

    /// All requests in these bytes, which arrive `step` at a time.
    fn requests(bytes: &[u8], step: usize) -> Result<Vec<Vec<Vec<u8>>>, ProtocolError> {
        let (mut reader, mut found) = (RequestReader::default(), Vec::new());
        let (mut start, mut end) = (0, 0);
        while end < bytes.len() {
            end = (end + step).min(bytes.len());
            while let Parsed::Request(taken) = reader.read(&bytes[start..end], &LIMITS)? {
                let request = &bytes[start..end];
                found.push(reader.arguments(request).map(<[u8]>::to_vec).collect());
                start += taken;
            }
        }
        assert_eq!(start, bytes.len(), "bytes are left over");
        Ok(found)
    }

    fn words(list: &[&str]) -> Vec<Vec<u8>> {
        list.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn requests_are_the_same_however_they_are_cut() {
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*0\r\n*-1\r\n\r\n\
                      *3\r\n$3\r\nSET\r\n$4\r\na\r\nb\r\n$0\r\n\r\nset 'a b' \"\\x41\\n\"\n";
        let expected = [
            words(&["GET", "k"]),
            words(&["PING"]),
            vec![],
            vec![],
            vec![],
            words(&["SET", "a\r\nb", ""]),
            words(&["set", "a b", "A\n"]),
        ];
        for step in 1..=bytes.len() {
            assert_eq!(requests(bytes, step).unwrap(), expected, "{step} bytes at a time");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_with_the_reference_s_words() {
        for (bytes, text) in [
            (&b"*x\r\n"[..], "invalid multibulk length"),
            (b"*1048577\r\n", "invalid multibulk length"),
            (b"*+1\r\n", "invalid multibulk length"),
            (b"*1\r\n:1\r\n", "expected '$', got ':'"),
            (b"*1\r\n*1\r\n", "expected '$', got '*'"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*1\r\n$2147483648\r\n", "invalid bulk length"),
            (b"*1\r\n$99999999999999999999\r\n", "invalid bulk length"),
            (b"set \"a\n", "unbalanced quotes in request"),
        ] {
            let refused = requests(bytes, bytes.len()).unwrap_err();
            assert_eq!(refused.to_string(), format!("Protocol error: {text}"));
        }
    }

    #[test]
    fn lines_without_end_are_refused_at_a_length() {
        for (first, text) in
            [(b"*", "too big mbulk count string"), (b"x", "too big inline request")]
        {
            let bytes = [first.as_slice(), &vec![b'1'; MAX_LINE]].concat();
            let refused = requests(&bytes, 1000).unwrap_err();
            assert_eq!(refused.to_string(), format!("Protocol error: {text}"));
        }
        let bulk = [b"*1\r\n$".as_slice(), &vec![b'1'; MAX_LINE]].concat();
        let refused = requests(&bulk, 1000).unwrap_err();
        assert_eq!(refused.to_string(), "Protocol error: too big bulk count string");
    }

    #[test]
    fn who_has_not_authenticated_may_claim_little() {
        let limits = Limits { unauthenticated: true, ..LIMITS };
        let read = |bytes: &[u8]| RequestReader::default().read(bytes, &limits);
        assert_eq!(read(b"*10\r\n"), Ok(Parsed::Incomplete));
        assert!(read(b"*11\r\n").unwrap_err().to_string().contains("unauthenticated multibulk"));
        assert_eq!(read(b"*1\r\n$16384\r\n"), Ok(Parsed::Incomplete));
        let refused = read(b"*1\r\n$16385\r\n").unwrap_err();
        assert!(refused.to_string().contains("unauthenticated bulk"));
    }

    #[test]
    fn an_announced_argument_may_go_elsewhere() {
        let mut reader = RequestReader::default();
        let head = b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n";
        for cut in [4, 10, 20, head.len() - 1] {
            assert_eq!(reader.read(&head[..cut], &LIMITS), Ok(Parsed::Incomplete));
            assert!(reader.announced().is_none_or(|next| next.len < 5000), "{cut}");
        }
        assert_eq!(reader.read(head, &LIMITS), Ok(Parsed::Incomplete));
        let announced = Announced { start: head.len(), len: 5000, count: 4 };
        assert_eq!(reader.announced(), Some(announced));
        reader.leave_out();
        let request = [head, &b"\r\n$2\r\nNX\r\n*1"[..]].concat();
        assert_eq!(reader.read(&request[..head.len() + 1], &LIMITS), Ok(Parsed::Incomplete));
        assert_eq!(reader.read(&request, &LIMITS), Ok(Parsed::Request(request.len() - 2)));
        let arguments: Vec<&[u8]> = reader.arguments(&request).collect();
        assert_eq!(arguments, [&b"SET"[..], b"k", b"", b"NX"]);
        assert_eq!(reader.announced(), None);
    }

    #[test]
    fn a_claimed_length_allocates_nothing() {
        let mut reader = RequestReader::default();
        let claim = b"*1000000\r\n$536870912\r\nxyz";
        assert_eq!(reader.read(claim, &LIMITS), Ok(Parsed::Incomplete));
        assert!(reader.arguments.capacity() < 16);
    }
}

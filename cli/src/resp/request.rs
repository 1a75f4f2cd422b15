//! Requests as they arrive: arrays of bulk strings, or a line of words.
//!
//! The reader is given the bytes received so far, again and again as more arrive, and remembers
//! how far it has come: a request of a million arguments that arrives in small pieces is read
//! once. What a length merely claims is compared with a limit and never allocated.
//!
//! Errors end the connection: after one, nothing tells where the next request begins.

use std::fmt;

use super::inline;

/// Longest line: of an inline request, or of a length.
const LONGEST_LINE: usize = 64 << 10;

/// Places of arguments for which memory is kept from one request to the next.
const KEPT_ARGUMENTS: usize = 256;

/// What a request may claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of an argument.
    pub(crate) bulk: usize,
    /// Number of arguments.
    pub(crate) arguments: usize,
    /// Whether the client has yet to authenticate; then the limits are much lower.
    pub(crate) stranger: bool,
}

impl Limits {
    const STRANGER_ARGUMENTS: usize = 10;
    const STRANGER_BULK: usize = 16 << 10;
}

/// What the bytes so far amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// More are needed.
    Incomplete,
    /// A request, which took so many bytes; it may have no arguments, and then asks for nothing.
    Request(usize),
}

/// Bytes that are no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(String);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

fn error<T>(text: impl Into<String>) -> Result<T, ProtocolError> {
    Err(ProtocolError(text.into()))
}

/// See the module's documentation. Positions count from the beginning of the request.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    /// Bytes understood so far.
    at: usize,
    /// Arguments still to come, once the array's head was read.
    missing: Option<usize>,
    /// The length of the argument that comes next, once its head was read.
    bulk: Option<usize>,
    /// Where the arguments read so far begin and end.
    arguments: Vec<(usize, usize)>,
    /// The words of an inline request.
    words: Vec<Vec<u8>>,
}

impl RequestReader {
    /// Reads on in `bytes`, which begin with the request and hold all that has arrived of it.
    pub(crate) fn read(&mut self, bytes: &[u8], limits: &Limits) -> Result<Parsed, ProtocolError> {
        if self.at == 0 {
            self.forget();
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

    /// The arguments of the request that was read from these bytes.
    pub(crate) fn arguments<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let found = self.arguments.iter().filter_map(|(from, to)| bytes.get(*from..*to));
        found.chain(self.words.iter().map(Vec::as_slice))
    }

    /// Where they begin and end, if they lie in the bytes as they are: those of an array do.
    pub(crate) fn places(&self) -> Option<&[(usize, usize)]> {
        self.words.is_empty().then_some(self.arguments.as_slice())
    }

    /// Bytes of memory that it takes beside what has arrived.
    pub(crate) fn memory(&self) -> usize {
        self.arguments.capacity() * size_of::<(usize, usize)>()
            + self.words.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Forgets the last request, and the memory it took if that was much.
    fn forget(&mut self) {
        self.words.clear();
        self.arguments.clear();
        if self.arguments.capacity() > KEPT_ARGUMENTS {
            self.arguments = Vec::new();
        }
    }

    fn done(&mut self, taken: usize) -> Parsed {
        (self.at, self.missing, self.bulk) = (0, None, None);
        Parsed::Request(taken)
    }

    /// Whether another argument is there.
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
        // A limit far below the largest number was checked.
        let end = self.at + len;
        if bytes.len() < end + 2 {
            return Ok(false);
        }
        self.arguments.push((self.at, end));
        (self.bulk, self.at) = (None, end + 2);
        Ok(true)
    }

    fn read_inline(&mut self, bytes: &[u8]) -> Result<Parsed, ProtocolError> {
        let head = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
        let Some(end) = head.iter().position(|byte| *byte == b'\n') else {
            if head.len() < LONGEST_LINE {
                return Ok(Parsed::Incomplete);
            }
            return error("too big inline request");
        };
        let line = head.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(words) = inline::split(line) else { return error("unbalanced quotes in request") };
        self.words = words;
        Ok(self.done(end + 1))
    }
}

/// The bytes from `start` up to the end of the line, and where the next line begins.
fn line_after<'a>(
    bytes: &'a [u8],
    start: usize,
    too_long: &str,
) -> Result<Option<(&'a [u8], usize)>, ProtocolError> {
    let rest = bytes.get(start..).unwrap_or_default();
    let head = rest.get(..LONGEST_LINE).unwrap_or(rest);
    match head.iter().position(|byte| *byte == b'\r') {
        Some(end) if rest.len() > end + 1 => {
            Ok(Some((head.get(..end).unwrap_or_default(), start + end + 2)))
        }
        None if head.len() >= LONGEST_LINE => error(too_long),
        _ => Ok(None),
    }
}

fn number(line: &[u8]) -> Option<i64> {
    const SHORT: usize = 9;
    if line.is_empty() || line.len() > SHORT || line.first() == Some(&b'-') {
        let text = std::str::from_utf8(line).ok()?;
        return text.parse().ok().filter(|_| !text.starts_with('+'));
    }
    // What nearly all are: digits, too few to overflow.
    line.iter().try_fold(0i64, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
    })
}

/// How many arguments an array says it has; one that is nil has none.
fn count(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let Some(count) = number(line) else { return error("invalid multibulk length") };
    let Ok(count) = usize::try_from(count) else { return Ok(0) };
    if count > limits.arguments {
        return error("invalid multibulk length");
    }
    if limits.stranger && count > Limits::STRANGER_ARGUMENTS {
        return error("unauthenticated multibulk length");
    }
    Ok(count)
}

fn bulk_length(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let len = number(line).and_then(|len| usize::try_from(len).ok());
    let Some(len) = len.filter(|len| *len <= limits.bulk) else {
        return error("invalid bulk length");
    };
    if limits.stranger && len > Limits::STRANGER_BULK {
        return error("unauthenticated bulk length");
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bulk: 512 << 20, arguments: 1 << 20, stranger: false };

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
            let bytes = [first.as_slice(), &vec![b'1'; LONGEST_LINE]].concat();
            let refused = requests(&bytes, 1000).unwrap_err();
            assert_eq!(refused.to_string(), format!("Protocol error: {text}"));
        }
        let bulk = [b"*1\r\n$".as_slice(), &vec![b'1'; LONGEST_LINE]].concat();
        let refused = requests(&bulk, 1000).unwrap_err();
        assert_eq!(refused.to_string(), "Protocol error: too big bulk count string");
    }

    #[test]
    fn who_has_not_authenticated_may_claim_little() {
        let limits = Limits { stranger: true, ..LIMITS };
        let read = |bytes: &[u8]| RequestReader::default().read(bytes, &limits);
        assert_eq!(read(b"*10\r\n"), Ok(Parsed::Incomplete));
        assert!(read(b"*11\r\n").unwrap_err().to_string().contains("unauthenticated multibulk"));
        assert_eq!(read(b"*1\r\n$16384\r\n"), Ok(Parsed::Incomplete));
        let refused = read(b"*1\r\n$16385\r\n").unwrap_err();
        assert!(refused.to_string().contains("unauthenticated bulk"));
    }

    #[test]
    fn a_claimed_length_allocates_nothing() {
        let mut reader = RequestReader::default();
        let claim = b"*1000000\r\n$536870912\r\nxyz";
        assert_eq!(reader.read(claim, &LIMITS), Ok(Parsed::Incomplete));
        assert!(reader.arguments.capacity() < 16);
    }
}

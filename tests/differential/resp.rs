//! The part of RESP that the test needs: values, their encoding, and the form of our replies in
//! version 2.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use lsmkv::Reply;

/// A command with its arguments.
pub(crate) type Command = Vec<Vec<u8>>;

/// A reply.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resp {
    Status(String),
    /// Bytes that are no UTF-8 become U+FFFD: ours are text.
    Error(String),
    Int(i64),
    Bulk(Option<Vec<u8>>),
    Array(Option<Vec<Resp>>),
    /// Of version 3, as what follows.
    Null,
    /// As its text, so that it can be compared.
    Double(String),
    /// Keys and values in turn.
    Map(Vec<Resp>),
    Set(Vec<Resp>),
    Push(Vec<Resp>),
    /// With the format in front.
    Verbatim(Vec<u8>),
}

impl Resp {
    /// The elements, of a map its keys and values; none of what has none.
    pub(crate) fn items(&self) -> &[Resp] {
        match self {
            Self::Array(Some(items)) | Self::Map(items) | Self::Set(items) | Self::Push(items) => {
                items
            }
            _ => &[],
        }
    }

    /// Pairs as one flat array, which they are in version 2, if all elements are pairs.
    pub(crate) fn without_pairs(&self) -> Self {
        let is_pair = |item: &Resp| matches!(item, Self::Array(Some(pair)) if pair.len() == 2);
        match self {
            Self::Array(Some(items)) if items.iter().all(is_pair) => {
                Self::Array(Some(items.iter().flat_map(Resp::items).cloned().collect()))
            }
            other => other.clone(),
        }
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(Some(bytes)) => Some(bytes),
            Self::Double(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// Bytes as text that shows every one of them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// A command as one would type it.
pub(crate) fn line(command: &[Vec<u8>]) -> String {
    command.iter().map(|arg| shown(arg)).collect::<Vec<_>>().join(" ")
}

impl fmt::Debug for Resp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Int(number) => write!(f, ":{number}"),
            Self::Bulk(None) => write!(f, "(nil)"),
            Self::Bulk(Some(bytes)) => write!(f, "{}", shown(bytes)),
            Self::Array(None) => write!(f, "(nil array)"),
            Self::Array(Some(items)) => f.debug_list().entries(items).finish(),
            Self::Null => write!(f, "_"),
            Self::Double(text) => write!(f, ",{text}"),
            Self::Map(items) => f.debug_tuple("%").field(items).finish(),
            Self::Set(items) => f.debug_set().entries(items).finish(),
            Self::Push(items) => f.debug_tuple(">").field(items).finish(),
            Self::Verbatim(bytes) => write!(f, "={}", shown(bytes)),
        }
    }
}

impl From<Reply> for Resp {
    fn from(reply: Reply) -> Self {
        let all = |replies: Vec<Reply>| Some(replies.into_iter().map(Self::from).collect());
        match reply {
            Reply::Nil => Self::Bulk(None),
            Reply::NilArray => Self::Array(None),
            Reply::Status(text) => Self::Status(text.to_owned()),
            Reply::Text(text) => {
                Self::Status(String::from_utf8_lossy(&text).replace(['\r', '\n'], " "))
            }
            Reply::Error(text) => Self::Error(text.replace(['\r', '\n'], " ")),
            Reply::Bool(yes) => Self::Int(i64::from(yes)),
            Reply::BigNumber(bytes) | Reply::Verbatim(_, bytes) => Self::Bulk(Some(bytes.to_vec())),
            Reply::Int(number) => Self::Int(number),
            Reply::Bulk(bytes) => Self::Bulk(Some(bytes.to_vec())),
            Reply::Double(number) => Self::Bulk(Some(double(number).into_bytes())),
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => Self::Array(all(items)),
            Reply::Map(pairs) | Reply::Pairs(pairs) => {
                Self::Array(all(pairs.into_iter().flat_map(|(a, b)| [a, b]).collect()))
            }
        }
    }
}

/// A double as C's `%.17g`.
fn double(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let trim = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if value == 0.0 {
        trim(digits)
    } else if (-4..17).contains(&exponent) {
        let places = usize::try_from(16 - exponent).unwrap();
        let plain = format!("{value:.places$}");
        if places == 0 { plain } else { trim(&plain) }
    } else {
        format!("{}e{}{:02}", trim(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}

/// A connection.
pub(crate) struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        Ok(Self { writer: stream.try_clone()?, reader: BufReader::new(stream) })
    }

    /// Sends commands together; their replies.
    pub(crate) fn pipeline<'a>(
        &mut self,
        commands: impl IntoIterator<Item = &'a Command>,
    ) -> io::Result<Vec<Resp>> {
        let mut bytes = Vec::new();
        let mut count = 0;
        for command in commands {
            count += 1;
            bytes.extend(format!("*{}\r\n", command.len()).bytes());
            for arg in command {
                bytes.extend(format!("${}\r\n", arg.len()).bytes());
                bytes.extend(arg);
                bytes.extend(b"\r\n");
            }
        }
        // So little fits into the socket, whether the other side reads or not.
        if bytes.len() < 4096 {
            self.writer.write_all(&bytes)?;
            return (0..count).map(|_| read(&mut self.reader)).collect();
        }
        // A thread of its own: neither side then waits for the other to read.
        std::thread::scope(|scope| {
            let mut writer = &self.writer;
            let sent = scope.spawn(move || writer.write_all(&bytes));
            let replies = (0..count).map(|_| read(&mut self.reader)).collect();
            sent.join().unwrap()?;
            replies
        })
    }

    /// The next message of a connection that is subscribed.
    #[allow(dead_code, reason = "the test of the server reads messages itself")]
    pub(crate) fn read(&mut self) -> io::Result<Resp> {
        read(&mut self.reader)
    }

    /// Sends one command.
    pub(crate) fn call(&mut self, args: &[&str]) -> io::Result<Resp> {
        let command: Command = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        Ok(self.pipeline([&command])?.remove(0))
    }
}

/// Reads a reply of either version, which must not have a message inside.
pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Resp> {
    let mut interleaved = Vec::new();
    let reply = read_apart(reader, &mut interleaved)?;
    match interleaved.is_empty() {
        true => Ok(reply),
        false => Err(io::Error::other(format!("{interleaved:?} inside {reply:?}"))),
    }
}

/// Reads a reply, and apart from it the messages that were sent between its elements.
pub(crate) fn read_apart(
    reader: &mut impl BufRead,
    interleaved: &mut Vec<Resp>,
) -> io::Result<Resp> {
    let mut head = Vec::new();
    reader.read_until(b'\n', &mut head)?;
    let head = head.strip_suffix(b"\r\n").unwrap_or(&head);
    let head = String::from_utf8_lossy(head).into_owned();
    let Some(kind) = head.chars().next() else {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server hung up"));
    };
    let rest = &head[1..];
    let number = || rest.parse::<i64>().map_err(io::Error::other);
    Ok(match kind {
        '+' => Resp::Status(rest.to_owned()),
        '-' => Resp::Error(rest.to_owned()),
        ':' => Resp::Int(number()?),
        '$' => Resp::Bulk(match usize::try_from(number()?) {
            Err(_) => None,
            Ok(len) => Some(bytes(reader, len)?),
        }),
        '*' => Resp::Array(match usize::try_from(number()?) {
            Err(_) => None,
            Ok(len) => Some(elements(reader, interleaved, len)?),
        }),
        '_' => Resp::Null,
        ',' => Resp::Double(rest.to_owned()),
        '%' => Resp::Map(elements(reader, interleaved, 2 * usize::try_from(number()?).unwrap())?),
        '~' => Resp::Set(elements(reader, interleaved, usize::try_from(number()?).unwrap())?),
        '>' => Resp::Push(elements(reader, interleaved, usize::try_from(number()?).unwrap())?),
        '=' => Resp::Verbatim(bytes(reader, usize::try_from(number()?).unwrap())?),
        _ => return Err(io::Error::other(format!("not RESP: {head}"))),
    })
}

/// So many bytes, and the end of the line.
fn bytes(reader: &mut impl BufRead, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len + 2];
    reader.read_exact(&mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

fn elements(
    reader: &mut impl BufRead,
    interleaved: &mut Vec<Resp>,
    len: usize,
) -> io::Result<Vec<Resp>> {
    let mut items = Vec::new();
    while items.len() < len {
        match read_apart(reader, interleaved)? {
            item if is_message(&item) => interleaved.push(item),
            item => items.push(item),
        }
    }
    Ok(items)
}

/// Whether a push belongs to no command: in EXEC the confirmation of SUBSCRIBE is an element.
fn is_message(item: &Resp) -> bool {
    let Resp::Push(items) = item else { return false };
    matches!(items.first(), Some(Resp::Bulk(Some(kind))) if kind == b"invalidate" || kind == b"message")
}

#[test]
fn doubles_print_as_c_prints_them() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (10.0, "10"),
        (0.1, "0.10000000000000001"),
        (1e16, "10000000000000000"),
        (1e17, "1e+17"),
        (1e-5, "1.0000000000000001e-05"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(double(value), text);
    }
}

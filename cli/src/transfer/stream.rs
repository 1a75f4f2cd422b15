//! Commands as a file: the byte stream that a client would send, as `redis-cli --pipe` accepts it.

use std::io::{Read, Write};

use lsmkv::Reply;

use super::{Chunk, Command, Progress, Sink};
use crate::failure::Failure;
use lsmkv::resp::{Limits, Parsed, RequestReader};

/// Writes a command as a RESP array.
pub(crate) fn write_command(out: &mut impl Write, command: &Command) -> std::io::Result<()> {
    write!(out, "*{}\r\n", command.len())?;
    for word in command {
        write!(out, "${}\r\n", word.len())?;
        out.write_all(word)?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

/// Writes keys as the commands that create them.
pub(crate) struct RespSink<W> {
    out: W,
    replace: bool,
    selected: Option<u32>,
}

impl<W: Write> RespSink<W> {
    /// With `replace`, the stream deletes each key before it writes it.
    pub(crate) fn new(out: W, replace: bool) -> Self {
        Self { out, replace, selected: None }
    }
}

impl<W: Write> Sink for RespSink<W> {
    fn put(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        if self.selected != Some(chunk.database) {
            self.selected = Some(chunk.database);
            let select = vec!["SELECT".into(), chunk.database.to_string().into()];
            write_command(&mut self.out, &select)?;
        }
        for command in chunk.commands(self.replace) {
            write_command(&mut self.out, &command)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// The result of loading a stream.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) commands: u64,
    /// The number of error replies, and the first of them.
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
}

/// The number of bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// Gives every command of a stream to `run`. Commands are RESP arrays or one per line.
pub(crate) fn load_commands(
    mut input: impl Read,
    mut run: impl FnMut(&[&[u8]]) -> lsmkv::Result<Reply>,
    progress: &mut Progress,
) -> Result<Loaded, Failure> {
    let limits = Limits { bulk: 512 << 20, arguments: 1 << 20, unauthenticated: false };
    let mut reader = RequestReader::default();
    let mut loaded = Loaded::default();
    let mut buffer = Vec::new();
    let mut start = 0;
    loop {
        let unread = buffer.get(start..).unwrap_or_default();
        match reader.read(unread, &limits).map_err(|error| Failure::new(error.to_string()))? {
            Parsed::Request(taken) => {
                let words: Vec<&[u8]> = reader.arguments(unread).collect();
                if !words.is_empty() {
                    loaded.commands += 1;
                    note(&mut loaded, run(&words)?, &words);
                    progress.advance(1);
                }
                start += taken;
            }
            Parsed::Incomplete => {
                buffer.drain(..start);
                start = 0;
                if !read_more(&mut input, &mut buffer)? {
                    break;
                }
            }
        }
        if progress.interrupted() {
            return Err(Failure::new(format!("stopped after {} commands", loaded.commands)));
        }
    }
    if !buffer.is_empty() {
        let commands = loaded.commands;
        return Err(Failure::new(format!("the stream ends inside a command, after {commands}")));
    }
    progress.finish();
    Ok(loaded)
}

fn read_more(input: &mut impl Read, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
    let old = buffer.len();
    let read = input.take(READ_BYTES as u64).read_to_end(buffer)?;
    if read == 0 && old > 0 && buffer.last() != Some(&b'\n') {
        // The last line has no line end.
        buffer.push(b'\n');
        return Ok(true);
    }
    Ok(read > 0)
}

fn note(loaded: &mut Loaded, reply: Reply, words: &[&[u8]]) {
    if let Reply::Error(text) = reply {
        loaded.errors += 1;
        loaded.first_error.get_or_insert_with(|| {
            let name = words.first().map(|name| name.escape_ascii().to_string());
            let key = words.get(1).map(|key| key.escape_ascii().to_string());
            format!("{} {}: {text}", name.unwrap_or_default(), key.unwrap_or_default())
        });
    }
}

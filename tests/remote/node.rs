//! A node of a cluster that says what a test wants it to say.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// What the node does about a command.
pub(crate) enum Answer {
    Says(&'static str),
    /// Says a text that is made at that moment.
    Tells(String),
    /// Ends the connection without a reply.
    Cuts,
}

/// Starts a node that answers each command as `answer` says, and claims to serve the slots of
/// `ranges`, or all of them if there are none. Returns its port.
pub(crate) fn fake_node(
    ranges: &[(u16, u16, u16)],
    answer: impl Fn(&[String]) -> Answer + Send + Sync + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    fake_node_on(listener, ranges, answer)
}

/// Starts a node like [`fake_node`] on a port that is known before.
pub(crate) fn fake_node_on(
    listener: TcpListener,
    ranges: &[(u16, u16, u16)],
    answer: impl Fn(&[String]) -> Answer + Send + Sync + 'static,
) -> u16 {
    let port = listener.local_addr().unwrap().port();
    let whole = [(0, 16_383, port)];
    let ranges = if ranges.is_empty() { &whole[..] } else { ranges };
    let slots: Vec<String> = ranges
        .iter()
        .map(|(first, last, port)| {
            format!("*3\r\n:{first}\r\n:{last}\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n")
        })
        .collect();
    let slots = format!("*{}\r\n{}", slots.len(), slots.concat());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, slots) = (Arc::clone(&answer), slots.clone());
            std::thread::spawn(move || serve(stream.unwrap(), &slots, answer.as_ref()));
        }
    });
    port
}

fn serve(mut stream: TcpStream, slots: &str, answer: &dyn Fn(&[String]) -> Answer) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(words) = read_command(&mut reader) {
        let reply = match words[0].as_str() {
            "HELLO" => Answer::Says("%1\r\n+proto\r\n:3\r\n"),
            "CLUSTER" => Answer::Tells(slots.to_owned()),
            _ => answer(&words),
        };
        let text = match &reply {
            Answer::Says(text) => text,
            Answer::Tells(text) => text.as_str(),
            Answer::Cuts => return,
        };
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn read_command(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let number = |reader: &mut dyn BufRead| -> Option<usize> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        line.trim_end().get(1..)?.parse().ok()
    };
    let count = number(reader)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let len = number(reader)?;
        let mut bytes = vec![0; len + 2];
        reader.read_exact(&mut bytes).ok()?;
        words.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
    }
    Some(words)
}

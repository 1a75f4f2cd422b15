//! How random commands are described: a line of words, from which any number of commands is drawn.
//!
//! ```text
//! WORD       itself, in any case             'word      itself, as it is
//! name       a random value, see `values`    [ … ]      perhaps
//! { a | b }  one of them                     ( … )+     once or several times
//! < a | b >  any of them, in any order, also twice, also conflicting
//! # ( … )    how many, then that many; sometimes the number lies
//! ```
//! Brackets, bars and `#` stand alone between spaces. Words in capitals are literal, others name
//! values.

use lsmkv::io::splitmix::SplitMix64;

use super::resp::Command;
use super::values::{self, Fresh};

/// A parsed line.
#[derive(Debug)]
enum Node {
    Word(String, bool),
    Value(String),
    Perhaps(Vec<Node>),
    OneOf(Vec<Vec<Node>>),
    Several(Vec<Node>),
    AnyOf(Vec<Vec<Node>>),
    Counted(Vec<Node>),
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) name: String,
    nodes: Vec<Node>,
}

impl Template {
    pub(crate) fn parse(line: &str) -> Self {
        let mut words = line.split_whitespace().peekable();
        let name = (*words.peek().unwrap()).to_owned();
        let (mut alternatives, end) = parse(&mut words);
        assert!(end.is_none() && alternatives.len() == 1, "{line}: brackets do not match");
        Self { name, nodes: alternatives.remove(0) }
    }

    /// A random command.
    pub(crate) fn draw(&self, random: &mut SplitMix64, fresh: &mut Fresh) -> Command {
        let mut command = Command::new();
        emit(&self.nodes, random, fresh, &mut command);
        if random.one_in(14) {
            distort(&self.name, &mut command, random);
        }
        command
    }
}

/// Alternatives up to a closing bracket or the end, and what closed them.
fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> (Vec<Vec<Node>>, Option<&'a str>) {
    let mut alternatives = vec![Vec::new()];
    while let Some(word) = words.next() {
        let node = match word {
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "]" | "}" | ")" | ")+" | ">" => return (alternatives, Some(word)),
            "[" => Node::Perhaps(parse(words).0.remove(0)),
            "{" => Node::OneOf(parse(words).0),
            "<" => Node::AnyOf(parse(words).0),
            "(" => Node::Several(parse(words).0.remove(0)),
            "#" => {
                words.next();
                Node::Counted(parse(words).0.remove(0))
            }
            _ => match word.strip_prefix('\'') {
                Some(exact) => Node::Word(exact.to_owned(), true),
                None if word.chars().any(|c| c.is_ascii_lowercase()) => {
                    Node::Value(word.to_owned())
                }
                None => Node::Word(word.to_owned(), false),
            },
        };
        alternatives.last_mut().unwrap().push(node);
    }
    (alternatives, None)
}

fn emit(nodes: &[Node], random: &mut SplitMix64, fresh: &mut Fresh, out: &mut Command) {
    for node in nodes {
        match node {
            Node::Word(word, exact) => out.push(cased(word, *exact, random)),
            Node::Value(name) => out.push(values::draw(name, random, fresh)),
            Node::Perhaps(nodes) => {
                if random.one_in(2) {
                    emit(nodes, random, fresh, out);
                }
            }
            Node::OneOf(ways) => emit(pick(ways, random).as_slice(), random, fresh, out),
            Node::AnyOf(ways) => {
                for _ in 0..random.below(4).saturating_sub(random.below(2)) {
                    emit(pick(ways, random).as_slice(), random, fresh, out);
                }
            }
            Node::Several(nodes) => {
                for _ in 0..=random.below(4) {
                    emit(nodes, random, fresh, out);
                }
            }
            Node::Counted(nodes) => counted(nodes, random, fresh, out),
        }
    }
}

fn counted(nodes: &[Node], random: &mut SplitMix64, fresh: &mut Fresh, out: &mut Command) {
    let count = 1 + random.below(3);
    let said = if random.one_in(12) {
        let lies = ["0", "-1", "1", "4", "5", "abc", "", "9223372036854775807", "1.0", "01"];
        pick(&lies, random).to_string()
    } else {
        count.to_string()
    };
    out.push(said.into_bytes());
    for _ in 0..count {
        emit(nodes, random, fresh, out);
    }
}

fn cased(word: &str, exact: bool, random: &mut SplitMix64) -> Vec<u8> {
    if exact || !random.one_in(4) {
        return word.as_bytes().to_vec();
    }
    let flip = |b: u8| if random.one_in(2) { b.to_ascii_lowercase() } else { b };
    word.bytes().map(flip).collect()
}

/// Breaks a command: an argument too few, too many, or a strange one.
fn distort(name: &str, command: &mut Command, random: &mut SplitMix64) {
    let at = usize::try_from(1 + random.below(command.len() as u64)).unwrap();
    let strange = values::strange(name, random);
    match random.below(4) {
        0 if at < command.len() && !values::is_timed(name) => {
            command.remove(at);
        }
        1 => command.truncate(at),
        2 => command.push(strange),
        _ if at < command.len() => command[at] = strange,
        _ => command.push(strange),
    }
}

/// One of these.
pub(crate) fn pick<'a, T>(from: &'a [T], random: &mut SplitMix64) -> &'a T {
    &from[usize::try_from(random.below(from.len() as u64)).unwrap()]
}

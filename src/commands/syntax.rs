//! Renders the arguments of a command as a person writes them. The code generator compiles this
//! file too.

use super::schema::spec::Arg;

/// Renders arguments like `key [NX | XX] element [element …]`; empty if there are none.
pub(crate) fn syntax(args: &[Arg]) -> String {
    args.iter().map(argument).collect::<Vec<_>>().join(" ")
}

/// What follows the first `given` arguments of a call. Options may come in any order, so all of them
/// are shown as long as one could follow.
#[allow(dead_code, reason = "only the library asks")]
pub(crate) fn missing_syntax(args: &[Arg], given: usize) -> String {
    match args {
        args if given == 0 => syntax(args),
        [] => String::new(),
        [Arg::Optional(_) | Arg::OneOf(_), ..] => syntax(args),
        [Arg::Many(sequence), rest @ ..] => repeated(sequence, given, rest),
        [Arg::Counted(_, sequence), rest @ ..] => match given - 1 {
            0 => join([&format!("{} [{} …]", syntax(sequence), syntax(sequence)), &syntax(rest)]),
            given => repeated(sequence, given, rest),
        },
        [_, rest @ ..] => missing_syntax(rest, given - 1),
    }
}

/// What follows `given` arguments of a sequence that repeats.
fn repeated(sequence: &[Arg], given: usize, rest: &[Arg]) -> String {
    let within = given % sequence.len().max(1);
    let started = if within == 0 { &[][..] } else { sequence.get(within..).unwrap_or_default() };
    join([&syntax(started), &format!("[{} …]", syntax(sequence)), &syntax(rest)])
}

fn join<const N: usize>(parts: [&str; N]) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

fn argument(arg: &Arg) -> String {
    match arg {
        Arg::Key(name)
        | Arg::Bytes(name)
        | Arg::Member(name)
        | Arg::Int(name)
        | Arg::Float(name)
        | Arg::Double(name)
        | Arg::Word(name) => (*name).to_owned(),
        Arg::Choice(_, _, words) => format!("<{}>", words.join(" | ")),
        Arg::Optional([Arg::OneOf(sequences)]) => format!("[{}]", alternatives(sequences)),
        Arg::Optional(sequence) => format!("[{}]", syntax(sequence)),
        Arg::OneOf(sequences) => format!("<{}>", alternatives(sequences)),
        Arg::Many(sequence) => {
            let once = syntax(sequence);
            format!("{once} [{once} …]")
        }
        Arg::Counted(number, sequence) => {
            let once = syntax(sequence);
            format!("{number} {once} [{once} …]")
        }
    }
}

fn alternatives(sequences: &[&[Arg]]) -> String {
    sequences.iter().map(|sequence| syntax(sequence)).collect::<Vec<_>>().join(" | ")
}

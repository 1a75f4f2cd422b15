//! What a row of the command table says. Plain data: the code generator includes this file and
//! the table as they are.

#![allow(dead_code, reason = "the library and the generator each use a part")]

/// An argument of a regular command, in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    /// The key of the command.
    Key,
    /// A key with a name of its own, of a command with several.
    Named(&'static str),
    /// Bytes.
    Bytes(&'static str),
    /// A 64-bit integer.
    Int(&'static str),
    /// A number as text of any precision; in C a double.
    Float(&'static str),
    /// One or more keys: all that is left.
    Keys,
    /// One or more byte strings: all that is left.
    Many(&'static str),
    /// One or more pairs of byte strings: all that is left.
    Pairs(&'static str, &'static str),
}

/// What a command does to its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It only reads: runs at one moment, without locks.
    Read,
    /// It writes the keys it names: runs under their locks.
    Write,
    /// It writes anything: runs alone.
    Alone,
    /// As `Write`, but alone if this word is among its arguments.
    AloneWith(&'static str),
}

/// Where the keys are among the arguments (the command's name is number 0), to lock them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// None.
    None,
    /// From the first to the last, every `step`th; a negative last counts from the end.
    Range(usize, isize, usize),
    /// Argument `.0` says how many keys follow it; more keys before it: arguments `1..=.1`.
    Counted(usize, usize),
}

/// What the method of a regular command returns, and so what is replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing: `OK`.
    Ok,
    /// A number.
    Int,
    /// Yes or no, replied as 1 or 0.
    Flag,
    /// A number or nothing.
    MaybeInt,
    /// Bytes.
    Value,
    /// A number as text of any precision; in C a double.
    Float,
    /// Bytes or nothing.
    Bulk,
    /// A double or nothing.
    MaybeDouble,
    /// A double.
    Double,
    /// A list of byte strings.
    List,
    /// A list in which some may be missing.
    MaybeList,
    /// A set of byte strings.
    Set,
    /// Fields with values.
    Map,
    /// A list of doubles in which some may be missing.
    MaybeDoubles,
    /// A list of yes or no.
    Flags,
}

/// How the arguments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// These arguments, given to the method of `Tx` named like the command; its answer.
    Regular(&'static [Arg], Answer),
    /// A parser of its own in `irregular`, in the module of the group; the syntax for the
    /// documentation.
    Irregular(&'static str),
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// In capitals.
    pub(crate) name: &'static str,
    /// Number of arguments with the name; negative: at least that many.
    pub(crate) arity: isize,
    /// What it does to its keys.
    pub(crate) access: Access,
    /// Where its keys are.
    pub(crate) keys: Keys,
    /// How its arguments are read.
    pub(crate) grammar: Grammar,
    /// What it does, in a sentence.
    pub(crate) doc: &'static str,
    /// Whether it can also reply piece by piece, without holding all that it replies: `stream` has
    /// a function of its name if it is regular, else its parser has a sibling, `…_into`.
    pub(crate) streams: bool,
}

impl Row {
    /// A row with everything; the table's files use shorter forms of it.
    pub(crate) const fn new(
        name: &'static str,
        arity: isize,
        access: Access,
        keys: Keys,
        grammar: Grammar,
        doc: &'static str,
    ) -> Self {
        Self { name, arity, access, keys, grammar, doc, streams: false }
    }

    /// The same, of a command whose reply may be as long as a collection.
    pub(crate) const fn streamed(self) -> Self {
        Self { streams: true, ..self }
    }

    /// Its arguments as a person writes them; empty if there are none.
    pub(crate) fn syntax(&self) -> String {
        let args = match self.grammar {
            Grammar::Irregular(text) => return text.to_owned(),
            Grammar::Regular(args, _) => args,
        };
        let word = |arg: &Arg| match arg {
            Arg::Key => "key".to_owned(),
            Arg::Named(name) | Arg::Bytes(name) | Arg::Int(name) | Arg::Float(name) => {
                (*name).to_owned()
            }
            Arg::Keys => "key [key …]".to_owned(),
            Arg::Many(name) => format!("{name} [{name} …]"),
            Arg::Pairs(a, b) => format!("{a} {b} [{a} {b} …]"),
        };
        args.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// The commands of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// Name of the module in `irregular`.
    pub(crate) module: &'static str,
    /// Title in the documentation.
    pub(crate) title: &'static str,
    /// Its commands, by name.
    pub(crate) rows: &'static [Row],
}

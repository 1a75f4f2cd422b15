//! What the entry of a command can say. It is plain data: the library and the code generator both
//! compile this file, and everything about a command follows from its entry.

#![allow(dead_code, reason = "the library and the code generator each use a part")]

/// One command. [`Command::new`] makes it; the other methods state what differs from the default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// The name, in capitals.
    pub(crate) name: &'static str,
    /// The Redis version that introduced the command.
    pub(crate) since: &'static str,
    /// What the command does to its keys.
    pub(crate) access: Access,
    /// The arguments after the name.
    pub(crate) args: &'static [Arg],
    /// The kind of the reply.
    pub(crate) reply: ReplyKind,
    /// The cost, in the notation of the Redis documentation.
    pub(crate) complexity: &'static str,
    /// One sentence about what the command does.
    pub(crate) summary: &'static str,
    /// The number of arguments including the name; negative for a minimum. Follows from `args`.
    pub(crate) arity: isize,
    /// Where the keys are among the arguments. Follows from `args`.
    pub(crate) keys: KeyPositions,
    /// Where a member of the key's collection is among the arguments. Follows from `args`.
    pub(crate) member: MemberPosition,
    /// Properties that few commands have.
    pub(crate) flags: Flags,
    /// Which code reads the arguments.
    pub(crate) parser: Parser,
    /// The functions of the C ABI.
    pub(crate) functions: Functions,
    /// Statuses of the derived functions besides the usual ones, each `NAME` or `NAME: when`.
    pub(crate) statuses: &'static [&'static str],
    /// The method of the Python package.
    pub(crate) python: Python,
}

/// What a command does to its keys, and so which locks it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads at one read point, without locks.
    Read,
    /// Writes the keys it names, under their locks.
    Write,
    /// Writes any key, while no other write runs.
    Alone,
    /// Writes the keys it names, under their locks; any key, alone, if this word is among the
    /// arguments.
    AloneWith(&'static str),
    /// Runs a script: writes the keys it names, under their locks, and others that it checks at the
    /// commit.
    Script,
}

/// An argument, or a group of arguments, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    /// A key, with its name in the documentation.
    Key(&'static str),
    /// A byte string, with its name in the documentation.
    Bytes(&'static str),
    /// Bytes that name a member or a field of the key's collection.
    Member(&'static str),
    /// A 64-bit integer.
    Int(&'static str),
    /// A number as text of any precision; a double in C.
    Float(&'static str),
    /// A double.
    Double(&'static str),
    /// A literal word.
    Word(&'static str),
    /// One of these words: the name, the Rust enum whose variants are the words, the words.
    Choice(&'static str, &'static str, &'static [&'static str]),
    /// All of these arguments, or none.
    Optional(&'static [Arg]),
    /// One of these sequences of arguments.
    OneOf(&'static [&'static [Arg]]),
    /// These arguments, once or more often.
    Many(&'static [Arg]),
    /// A number of this name, then these arguments that many times.
    Counted(&'static str, &'static [Arg]),
}

/// The kind of a reply. The method of a regular command returns the matching Rust type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// The status `OK`.
    Ok,
    /// An integer.
    Int,
    /// A boolean, replied as 1 or 0.
    Flag,
    /// An integer or nil.
    MaybeInt,
    /// A byte string, never nil.
    Value,
    /// A number as text of any precision; a double in C.
    Float,
    /// Bytes or nil.
    Bulk,
    /// A double or nil.
    MaybeDouble,
    /// A double.
    Double,
    /// An array of byte strings.
    List,
    /// An array of byte strings and nils.
    MaybeList,
    /// A set of byte strings.
    Set,
    /// Fields with values.
    Map,
    /// An array of doubles and nils.
    MaybeDoubles,
    /// An array of 1 and 0.
    Flags,
    /// A reply that depends on the options.
    Varies,
}

/// Where the keys of a command are among its arguments. The command's name is argument 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPositions {
    /// The command has no keys.
    None,
    /// Every `step`-th argument from `first` to `last`.
    Range {
        /// The position of the first key.
        first: usize,
        /// The position of the last key. A negative one counts from the end.
        last: isize,
        /// The distance between two keys.
        step: usize,
    },
    /// An argument tells how many keys follow it.
    Counted {
        /// The position of that argument.
        at: usize,
        /// The number of arguments after the name that are keys too.
        before: usize,
    },
}

/// Where the arguments name a member of the key's collection, so that it can be prefetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberPosition {
    /// The arguments name no member.
    None,
    /// The argument at this position.
    At(usize),
    /// The last argument.
    Last,
}

/// Properties that few commands have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// No property.
    pub(crate) const NONE: Self = Self(0);
    /// The reply may be of several values, so it is written to a sink value by value.
    pub(crate) const STREAMS: Self = Self(1);
    /// Reads one value of its only key, whatever the size of the key.
    pub(crate) const ONE_VALUE: Self = Self(2);
    /// Works on keys of any type, so it never replies WRONGTYPE.
    pub(crate) const ANY_TYPE: Self = Self(4);
    /// A strict batch fails if a key of this command is missing.
    pub(crate) const STRICT: Self = Self(8);
    /// A script may not call it.
    pub(crate) const NO_SCRIPT: Self = Self(16);
    /// Waits until a key holds an element.
    pub(crate) const BLOCKS: Self = Self(32);
    /// Reads and writes no keys, so it needs no locks.
    pub(crate) const NO_KEYS: Self = Self(64);

    /// The union of both sets of properties.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all properties of `other` are set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Which code reads the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parser {
    /// Generated code reads the arguments in sequence and calls the method of `Tx` named like the
    /// command.
    Generated,
    /// A handwritten function in `parse`, named like the command, reads the arguments, for this
    /// reason: Redis reads them in an order, or replies with errors, that the argument tree does
    /// not express.
    ByHand(&'static str),
}

/// The functions of the C ABI that run a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Functions {
    /// Derived functions: one takes the arguments as they are and, if the command repeats
    /// arguments, another takes many. Their output has this name and receives this; if the second
    /// text is empty, the reply kind tells what it receives. Further functions follow them.
    Derived(&'static str, &'static str, &'static [Function]),
    /// Exactly these functions.
    Listed(&'static [Function]),
}

/// A function of the C ABI. Its const functions make it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// The name without `lsmkv_`.
    pub(crate) name: &'static str,
    /// What the function does. Parameters have the same names in C and C++.
    pub(crate) doc: &'static str,
    /// The parameters between the handle and the outputs.
    pub(crate) parameters: &'static [Parameter],
    /// How the function runs the command.
    pub(crate) body: Body,
    /// What the function returns besides its status.
    pub(crate) output: Output,
    /// The access of this function, if it differs from the command's.
    pub(crate) access: Option<Access>,
    /// The command that runs, if it is not the entry's.
    pub(crate) command: Option<&'static str>,
    /// Statuses besides the usual ones, each `NAME` or `NAME: when`.
    pub(crate) statuses: &'static [&'static str],
}

/// A parameter of a C function: one C parameter, or a pointer with a length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    /// The name of the (first) C parameter.
    pub(crate) name: &'static str,
    /// The kind of the parameter.
    pub(crate) kind: ParameterKind,
    /// The default value in C++.
    pub(crate) default: Option<&'static str>,
}

/// The kind of a parameter of a C function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    /// A key: pointer and length.
    Key,
    /// A value, field, member or element: pointer and length.
    Bytes,
    /// `int64_t`, of any sign.
    Int,
    /// `int64_t` that must not be negative.
    Unsigned,
    /// `int64_t` whose double is an `int64_t` too.
    SignedCount,
    /// `uint64_t`: the offset of a bit.
    Offset,
    /// `uint32_t`: the number of a database.
    Database,
    /// `double`: a score, a step or seconds.
    Double,
    /// At least one key: an array of slices and its length `n`.
    Keys,
    /// At least one value: an array of slices and its length `n`.
    Items,
    /// At least one pair of a field and a value: twice `npairs` slices.
    FieldPairs,
    /// At least one pair of a key and a value: twice `npairs` slices.
    KeyPairs,
    /// At least one member, `n` of them, and an array of as many scores.
    Scored,
    /// Any number of values: an array of slices, and its length in the parameter of that name.
    AnyItems(&'static str),
    /// A slice; NULL if there is none.
    Optional,
    /// An array of doubles, one per key; NULL if there is none.
    Weights,
    /// `int32_t`: the position of a word among these.
    Choice(&'static [&'static str]),
    /// `uint32_t`: the options that may be set, as `LSMKV_` constants, and sets of options of which
    /// at most one may be set.
    Flags(&'static [&'static str], &'static [&'static [&'static str]]),
    /// `double`: a score bound, which the flag of this name excludes from the range.
    ScoreBound(&'static str),
    /// A slice: a member bound, which the flag of this name excludes from the range. The second
    /// text is the wire form of an absent bound.
    MemberBound(&'static str, &'static str),
    /// At least one operation of BITFIELD: an array of `lsmkv_bitfield_op` and its length `n`.
    FieldOperations,
    /// The caller's memory and its size `cap`.
    Room,
}

/// How a C function runs its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Calls this method of `Db` with the parameters. A batch stores the command with the
    /// parameters in order.
    Method(&'static str),
    /// Runs the command with these words.
    Words(&'static [Words]),
    /// Calls the function of this name in `ffi::odd`.
    Odd,
}

/// A part of the words of a command that a C function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// A literal word.
    Word(&'static str),
    /// The parameter of this name.
    Of(&'static str),
    /// The number of elements of the parameter of this name.
    CountOf(&'static str),
    /// This flag's word, if it is set in the parameter `flags`.
    Flag(&'static str),
    /// The second word, if this flag is set in the parameter `flags`.
    FlagAs(&'static str, &'static str),
    /// This word and the parameter of that name, if the caller gives it.
    IfGiven(&'static str, &'static str),
    /// This word before each element of the parameter of that name.
    BeforeEach(&'static str, &'static str),
}

/// What a C function returns besides its status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// The name of the parameter.
    pub(crate) name: &'static str,
    /// Its type.
    pub(crate) kind: OutputKind,
    /// What the output receives, as the object of a sentence.
    pub(crate) receives: &'static str,
    /// The status for a nil reply.
    pub(crate) nil: Nil,
}

/// The type of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputKind {
    /// There is no output.
    None,
    /// `int64_t`: a number of any sign.
    Int,
    /// `int64_t` that is 1 or 0.
    Flag,
    /// `double`: a number that need not be whole.
    Double,
    /// `lsmkv_buf`: a byte string.
    Bytes,
    /// `lsmkv_reply *`: a reply of any kind.
    Reply,
    /// `int32_t`: the type of a key.
    Type,
    /// `size_t`: the length of the value that was copied.
    Length,
    /// `lsmkv_buf` and `double`: a member and its score, in `member` and `score`.
    MemberAndScore,
    /// `lsmkv_buf`: the replaced value. The command changes if the caller wants it.
    Replaced,
}

/// The status of a nil reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nil {
    /// The reply is never nil.
    Never,
    /// A nil reply is the status NOT_FOUND.
    NotFound,
    /// A nil reply is NOT_FOUND; the text says when there is one.
    NotFoundWhen(&'static str),
    /// A nil reply is SKIPPED; the text says when there is one.
    Skipped(&'static str),
}

/// The method of the Python package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Python {
    /// A method named like the command, with the arguments of the entry.
    Derived,
    /// A method with this name and these parameters of redis-py, each with its default or "".
    Named(&'static str, &'static [(&'static str, &'static str)]),
    /// A method with this name and these parameters of redis-py that returns 1 or 0 instead of True
    /// or False.
    NamedNumber(&'static str, &'static [(&'static str, &'static str)]),
    /// A handwritten method in `bindings/python/lsmkv/commands`, since redis-py shapes the
    /// arguments in its own way.
    ByHand,
}

/// The commands of a family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    /// The name of the family's modules.
    pub(crate) module: &'static str,
    /// The title in the documentation.
    pub(crate) title: &'static str,
    /// The commands, by name.
    pub(crate) commands: &'static [Command],
}

impl Command {
    /// Creates an entry from the facts that every command has.
    pub(crate) const fn new(
        name: &'static str,
        since: &'static str,
        access: Access,
        args: &'static [Arg],
        reply: ReplyKind,
        complexity: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            since,
            access,
            args,
            reply,
            complexity,
            summary,
            arity: super::derive::arity(args),
            keys: super::derive::keys(args),
            member: super::derive::member(args),
            flags: Flags::NONE,
            parser: Parser::Generated,
            functions: Functions::Derived("out", "", &[]),
            statuses: &[],
            python: Python::Derived,
        }
    }

    /// Adds properties.
    pub(crate) const fn flags(self, flags: Flags) -> Self {
        Self { flags: self.flags.and(flags), ..self }
    }

    /// Marks the reply as written to a sink value by value.
    pub(crate) const fn streams(self) -> Self {
        self.flags(Flags::STREAMS)
    }

    /// Tells that a function in `parse` reads the arguments, for this reason.
    pub(crate) const fn parsed_by_hand(self, reason: &'static str) -> Self {
        Self { parser: Parser::ByHand(reason), ..self }
    }

    /// Sets the key positions, if the arguments do not tell them.
    pub(crate) const fn keys(self, keys: KeyPositions) -> Self {
        Self { keys, ..self }
    }

    /// Sets the name of the derived functions' output, and what it receives.
    pub(crate) const fn output(self, name: &'static str, receives: &'static str) -> Self {
        Self { functions: Functions::Derived(name, receives, &[]), ..self }
    }

    /// Replaces the derived functions by these.
    pub(crate) const fn functions(self, list: &'static [Function]) -> Self {
        Self { functions: Functions::Listed(list), ..self }
    }

    /// Adds functions, which follow the derived ones in the header.
    pub(crate) const fn more_functions(self, list: &'static [Function]) -> Self {
        let functions = match self.functions {
            Functions::Derived(name, receives, _) => Functions::Derived(name, receives, list),
            Functions::Listed(_) => Functions::Listed(list),
        };
        Self { functions, ..self }
    }

    /// Adds statuses to those of the derived functions.
    pub(crate) const fn statuses(self, statuses: &'static [&'static str]) -> Self {
        Self { statuses, ..self }
    }

    /// Gives the Python method redis-py's name and parameters.
    pub(crate) const fn python(
        self,
        name: &'static str,
        parameters: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { python: Python::Named(name, parameters), ..self }
    }

    /// Gives the Python method redis-py's name and parameters, and a result of 1 or 0 instead of
    /// True or False.
    pub(crate) const fn python_number(
        self,
        name: &'static str,
        parameters: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { python: Python::NamedNumber(name, parameters), ..self }
    }

    /// Tells that the Python method is handwritten.
    pub(crate) const fn python_by_hand(self) -> Self {
        Self { python: Python::ByHand, ..self }
    }
}

impl Function {
    /// Creates a function that calls a method of `Db`.
    pub(crate) const fn method(
        name: &'static str,
        method: &'static str,
        parameters: &'static [Parameter],
        output: Output,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Body::Method(method), parameters, output, doc)
    }

    /// Creates a function that runs the command with these words.
    pub(crate) const fn words(
        name: &'static str,
        parameters: &'static [Parameter],
        words: &'static [Words],
        output: Output,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Body::Words(words), parameters, output, doc)
    }

    /// Creates a function whose body is in `ffi::odd`.
    pub(crate) const fn odd(
        name: &'static str,
        parameters: &'static [Parameter],
        output: Output,
        doc: &'static str,
    ) -> Self {
        Self::new(name, Body::Odd, parameters, output, doc)
    }

    const fn new(
        name: &'static str,
        body: Body,
        parameters: &'static [Parameter],
        output: Output,
        doc: &'static str,
    ) -> Self {
        Self { name, doc, parameters, body, output, access: None, command: None, statuses: &[] }
    }

    /// Makes the function run another command, with the access of that command.
    pub(crate) const fn runs(self, command: &'static str, access: Access) -> Self {
        Self { command: Some(command), access: Some(access), ..self }
    }

    /// Adds statuses to the usual ones.
    pub(crate) const fn statuses(self, statuses: &'static [&'static str]) -> Self {
        Self { statuses, ..self }
    }
}

impl Parameter {
    /// Creates a parameter without a default.
    pub(crate) const fn new(name: &'static str, kind: ParameterKind) -> Self {
        Self { name, kind, default: None }
    }

    /// Sets the default value in C++.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }
}

impl Output {
    /// No output.
    pub(crate) const NONE: Self = Self::new("", OutputKind::None, "");

    /// Creates an output that a nil reply never leaves empty.
    pub(crate) const fn new(name: &'static str, kind: OutputKind, receives: &'static str) -> Self {
        Self { name, kind, receives, nil: Nil::Never }
    }

    /// Sets the status of a nil reply.
    pub(crate) const fn nil(self, nil: Nil) -> Self {
        Self { nil, ..self }
    }
}

//! The intermediate representation: every function of the C ABI that runs a command, with
//! everything that an emitter needs. It is made from the schema alone.

use crate::check::check;
use crate::schema::GROUPS;
use crate::schema::spec::{
    Access, Arg, Body, Command, Flags, Function as Entry, Functions, Group, Nil, Output,
    OutputKind, Parameter, ParameterKind, ReplyKind,
};
use crate::text::uncapitalised;

/// The commands of a family and their functions.
pub(crate) struct Family {
    pub(crate) group: &'static Group,
    pub(crate) commands: Vec<Described>,
}

/// A command and its functions.
pub(crate) struct Described {
    pub(crate) command: &'static Command,
    pub(crate) functions: Vec<Function>,
}

/// A function of the C ABI that runs a command.
pub(crate) struct Function {
    /// The name, with its prefix.
    pub(crate) name: String,
    /// The command that the function runs.
    pub(crate) runs: &'static str,
    pub(crate) writes: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Body,
    pub(crate) output: Output,
    /// What the function does, for C and C++.
    pub(crate) doc: String,
    /// Sentences about pointers and arrays, for C only.
    pub(crate) pointers: Vec<String>,
    /// Every status the function returns, each `NAME` or `NAME: when`.
    pub(crate) statuses: Vec<String>,
    /// The number of trailing parameters that hold one element of a repeated argument.
    pub(crate) repeats: usize,
    /// The reply kind, if the function is derived from a regular command.
    pub(crate) reply: Option<ReplyKind>,
    /// Whether the reply is written element by element.
    pub(crate) streams: bool,
}

/// Lowers the schema to families, or returns the fault in it.
pub(crate) fn families() -> Result<Vec<Family>, String> {
    check(GROUPS)?;
    let described =
        |command: &'static Command| Described { command, functions: functions(command) };
    let family = |group: &'static Group| Family {
        group,
        commands: group.commands.iter().map(described).collect(),
    };
    Ok(GROUPS.iter().map(family).collect())
}

/// The functions of a command, in the order of the header.
fn functions(command: &'static Command) -> Vec<Function> {
    let listed = |list: &'static [Entry]| list.iter().map(|entry| listed(command, entry));
    match command.functions {
        Functions::Listed(list) => listed(list).collect(),
        Functions::Derived(output, receives, list) => {
            let derived =
                forms(command).into_iter().map(|many| derived(command, many, output, receives));
            derived.chain(listed(list)).collect()
        }
    }
}

fn listed(command: &'static Command, entry: &'static Entry) -> Function {
    let access = entry.access.unwrap_or(command.access);
    let mut function = Function {
        name: format!("lsmkv_{}", entry.name),
        runs: entry.command.unwrap_or(command.name),
        writes: access != Access::Read,
        parameters: entry.parameters.to_vec(),
        body: entry.body,
        output: entry.output,
        doc: entry.doc.to_owned(),
        pointers: entry.parameters.iter().filter_map(pointer).collect(),
        statuses: Vec::new(),
        repeats: 0,
        reply: None,
        streams: false,
    };
    function.statuses = statuses(command, &function, entry.statuses);
    function
}

/// Derives the function for single arguments, or for many of the last one.
fn derived(
    command: &'static Command,
    many: bool,
    output: &'static str,
    receives: &'static str,
) -> Function {
    let name = command.name.to_ascii_lowercase();
    let mut function = Function {
        name: format!("lsmkv_{name}{}", if many { "_many" } else { "" }),
        runs: command.name,
        writes: command.access != Access::Read,
        parameters: command.args.iter().flat_map(|arg| parameters(*arg, many)).collect(),
        body: Body::Method(command.name),
        output: derived_output(command.reply, output, receives),
        doc: format!("{}: {}", command.name, uncapitalised(command.summary)),
        pointers: Vec::new(),
        statuses: Vec::new(),
        repeats: match command.args.last() {
            Some(Arg::Many(sequence)) if !many => sequence.len(),
            _ => 0,
        },
        reply: Some(command.reply),
        // One value goes into a buffer as it is.
        streams: command.flags.has(Flags::STREAMS) && command.reply != ReplyKind::Bulk,
    };
    function.pointers = function.parameters.iter().filter_map(pointer).collect();
    function.statuses = statuses(command, &function, command.statuses);
    function
}

/// Which forms are derived: for one (false), for many (true). A command that replies for each of
/// several has only the form for many.
fn forms(command: &Command) -> Vec<bool> {
    let Some(Arg::Many(sequence)) = command.args.last() else { return vec![false] };
    let of_each = matches!(
        command.reply,
        ReplyKind::List
            | ReplyKind::MaybeList
            | ReplyKind::Set
            | ReplyKind::MaybeDoubles
            | ReplyKind::Flags
    );
    let keys = matches!(sequence.first(), Some(Arg::Key(_)));
    let several_keys = keys && (sequence.len() > 1 || command.args.len() > 1);
    if of_each || several_keys { vec![true] } else { vec![false, true] }
}

fn parameters(arg: Arg, many: bool) -> Vec<Parameter> {
    let one = |name, kind| vec![Parameter::new(name, kind)];
    match arg {
        Arg::Key(name) => one(name, ParameterKind::Key),
        Arg::Bytes(name) | Arg::Member(name) => one(name, ParameterKind::Bytes),
        Arg::Int(name) => one(name, ParameterKind::Int),
        Arg::Float(name) | Arg::Double(name) => one(name, ParameterKind::Double),
        Arg::Choice(name, _, words) => one(name, ParameterKind::Choice(words)),
        Arg::Many([Arg::Key(_), _]) => one("pairs", ParameterKind::KeyPairs),
        Arg::Many([_, _]) if many => one("pairs", ParameterKind::FieldPairs),
        Arg::Many([Arg::Key(_)]) if many => one("keys", ParameterKind::Keys),
        Arg::Many(_) if many => one("items", ParameterKind::Items),
        Arg::Many(sequence) => sequence.iter().flat_map(|arg| parameters(*arg, many)).collect(),
        Arg::Word(_) | Arg::Optional(_) | Arg::OneOf(_) | Arg::Counted(..) => Vec::new(),
    }
}

fn derived_output(reply: ReplyKind, name: &'static str, receives: &'static str) -> Output {
    let (kind, usual) = match reply {
        ReplyKind::Ok => return Output::NONE,
        ReplyKind::Int | ReplyKind::MaybeInt => (OutputKind::Int, "the number"),
        ReplyKind::Flag => (OutputKind::Flag, "1 for yes or 0 for no"),
        ReplyKind::Float | ReplyKind::Double | ReplyKind::MaybeDouble => {
            (OutputKind::Double, "the number")
        }
        ReplyKind::Value | ReplyKind::Bulk => (OutputKind::Bytes, "the bytes"),
        ReplyKind::Map => (OutputKind::Reply, "a map of fields and values"),
        ReplyKind::Set => (OutputKind::Reply, "a set of byte strings"),
        ReplyKind::List => (OutputKind::Reply, "an array of byte strings"),
        ReplyKind::MaybeList => (OutputKind::Reply, "an array with a byte string or nil for each"),
        ReplyKind::MaybeDoubles => (OutputKind::Reply, "an array with a double or nil for each"),
        ReplyKind::Flags => (OutputKind::Reply, "an array with 1 or 0 for each"),
        ReplyKind::Varies => (OutputKind::Reply, "the reply"),
    };
    let nil = matches!(reply, ReplyKind::MaybeInt | ReplyKind::MaybeDouble | ReplyKind::Bulk);
    let receives = if receives.is_empty() { usual } else { receives };
    let nil = if nil { Nil::NotFound } else { Nil::Never };
    Output::new(name, kind, receives).nil(nil)
}

/// What C callers must know about the pointers of a parameter.
fn pointer(parameter: &Parameter) -> Option<String> {
    let name = parameter.name;
    Some(match parameter.kind {
        ParameterKind::Keys => "There are n keys, at least one.".to_owned(),
        ParameterKind::Items => "There are n items, at least one.".to_owned(),
        ParameterKind::FieldPairs => {
            "There are npairs pairs of a field and a value, so twice as many slices; at least one \
             pair."
                .to_owned()
        }
        ParameterKind::KeyPairs => {
            "There are npairs pairs of a key and a value, so twice as many slices; at least one \
             pair."
                .to_owned()
        }
        ParameterKind::Scored => "items[i] gets scores[i]; there is at least one.".to_owned(),
        ParameterKind::AnyItems(n) => format!("{name} holds {n} slices, or is NULL if {n} is 0."),
        ParameterKind::Optional => format!("{name} may be NULL."),
        ParameterKind::Weights => format!("{name} holds n numbers, or is NULL."),
        ParameterKind::MemberBound(..) => {
            format!("{name} may be NULL: then the range is open there.")
        }
        ParameterKind::Room => format!("{name} may be NULL if cap is 0."),
        _ => return None,
    })
}

fn statuses(command: &Command, function: &Function, more: &[&str]) -> Vec<String> {
    let mut all = vec!["OK".to_owned()];
    match function.output.nil {
        Nil::Never => {}
        Nil::NotFound => all.push("NOT_FOUND".to_owned()),
        Nil::NotFoundWhen(when) => all.push(format!("NOT_FOUND: {when}")),
        Nil::Skipped(when) => all.push(format!("SKIPPED: {when}")),
    }
    if !command.flags.has(Flags::ANY_TYPE) {
        all.push("WRONGTYPE".to_owned());
    }
    all.extend(
        more.iter().filter(|text| !text.starts_with("INVALID")).map(|text| (*text).to_owned()),
    );
    let mut reasons: Vec<String> = function.parameters.iter().filter_map(invalid).collect();
    reasons
        .extend(more.iter().filter_map(|text| text.strip_prefix("INVALID: ")).map(str::to_owned));
    if more.contains(&"INVALID") {
        all.push("INVALID".to_owned());
    } else if !reasons.is_empty() {
        all.push(format!("INVALID: {}", reasons.join(", or ")));
    }
    all.push(if function.writes { "any of a write" } else { "any of a read" }.to_owned());
    all
}

/// The reason for which a parameter can be refused.
fn invalid(parameter: &Parameter) -> Option<String> {
    let name = parameter.name;
    Some(match parameter.kind {
        ParameterKind::Flags(..) => "a flag".to_owned(),
        ParameterKind::Unsigned => format!("{name} is negative"),
        ParameterKind::SignedCount => format!("{name} is too large"),
        ParameterKind::Choice(_) => format!("{name} has no such value"),
        _ => return None,
    })
}

impl Function {
    /// Whether the output is required, since a call without it would be useless.
    pub(crate) fn requires_output(&self) -> bool {
        let costly =
            matches!(self.output.kind, OutputKind::Bytes | OutputKind::Reply | OutputKind::Length);
        costly && !self.writes
    }

    /// The parameter named `name`.
    pub(crate) fn parameter(&self, name: &str) -> Result<&Parameter, String> {
        let found = self.parameters.iter().find(|parameter| parameter.name == name);
        found.ok_or_else(|| format!("{} has no parameter {name}", self.name))
    }
}

/// The type of a parameter or result in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CType {
    Void,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Size,
    Double,
    /// Bytes or text as input.
    BytesIn,
    /// Any other pointer.
    Pointer,
}

/// A parameter as Rust declares it, and its type in C.
pub(crate) struct CParameter {
    pub(crate) name: String,
    pub(crate) rust: &'static str,
    pub(crate) c: CType,
}

impl Function {
    /// All C parameters in order, including the handle and the error.
    pub(crate) fn c_parameters(&self) -> Vec<CParameter> {
        let parameter = |name: &str, rust, c| CParameter { name: name.to_owned(), rust, c };
        let mut all = vec![parameter("db", "*mut lsmkv_db", CType::Pointer)];
        for given in &self.parameters {
            let name = given.name;
            let (rust, c) = match given.kind {
                ParameterKind::Key | ParameterKind::Bytes => ("*const c_void", CType::BytesIn),
                ParameterKind::Int | ParameterKind::Unsigned | ParameterKind::SignedCount => {
                    ("i64", CType::Int64)
                }
                ParameterKind::Offset => ("u64", CType::Uint64),
                ParameterKind::Database | ParameterKind::Flags(..) => ("u32", CType::Uint32),
                ParameterKind::Double | ParameterKind::ScoreBound(_) => ("f64", CType::Double),
                ParameterKind::Choice(_) => ("i32", CType::Int32),
                ParameterKind::Weights => ("*const f64", CType::Pointer),
                ParameterKind::FieldOperations => ("*const lsmkv_bitfield_op", CType::Pointer),
                ParameterKind::Room => ("*mut c_void", CType::Pointer),
                _ => ("*const lsmkv_slice", CType::Pointer),
            };
            all.push(parameter(name, rust, c));
            if let Some(length) = length_name(given) {
                all.push(parameter(&length, "usize", CType::Size));
            }
            if given.kind == ParameterKind::Scored {
                all.push(parameter("scores", "*const f64", CType::Pointer));
            }
        }
        for (name, rust) in outputs(&self.output) {
            all.push(CParameter { name: name.to_owned(), rust, c: CType::Pointer });
        }
        all.push(parameter("err", "*mut lsmkv_err", CType::Pointer));
        all
    }
}

/// The name of the length that follows a pointer.
pub(crate) fn length_name(parameter: &Parameter) -> Option<String> {
    let name = parameter.name;
    Some(match parameter.kind {
        ParameterKind::Key | ParameterKind::Bytes => match name.chars().last() {
            Some(digit) if digit.is_ascii_digit() => format!("len{digit}"),
            _ => format!("{}len", name.get(..1).unwrap_or_default()),
        },
        ParameterKind::Keys | ParameterKind::Items | ParameterKind::Scored => "n".to_owned(),
        ParameterKind::FieldOperations => "n".to_owned(),
        ParameterKind::FieldPairs | ParameterKind::KeyPairs => "npairs".to_owned(),
        ParameterKind::AnyItems(n) => n.to_owned(),
        ParameterKind::Room => "cap".to_owned(),
        _ => return None,
    })
}

/// The names and types of the outputs.
pub(crate) fn outputs(output: &Output) -> Vec<(&'static str, &'static str)> {
    let one = |kind| vec![(output.name, kind)];
    match output.kind {
        OutputKind::None => Vec::new(),
        OutputKind::Int | OutputKind::Flag => one("*mut i64"),
        OutputKind::Double => one("*mut f64"),
        OutputKind::Bytes | OutputKind::Replaced => one("*mut lsmkv_buf"),
        OutputKind::Reply => one("*mut *mut lsmkv_reply"),
        OutputKind::Type => one("*mut i32"),
        OutputKind::Length => one("*mut usize"),
        OutputKind::MemberAndScore => vec![("member", "*mut lsmkv_buf"), ("score", "*mut f64")],
    }
}

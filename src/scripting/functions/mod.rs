//! FUNCTION and FCALL: libraries of functions that the store keeps.
//!
//! The store has one record for all libraries, in the form of `payload`. A Lua state loads them when
//! it first runs a function, and again when the record has changed. What a library keeps in its own
//! variables therefore belongs to one state and can be lost at any time.

mod library;
mod payload;

use bytes::Bytes;

use super::engine::{ScriptState, help, invalid, kill};
use super::lua_state::LuaState;
use super::run::Run;
use crate::commands::Reply;
use crate::commands::args::{Args, quoted, wrong_number};
use crate::commands::scripts::ScriptCall;
use crate::encoding::glob;
use crate::encoding::keys::{Space, meta_key};
use crate::error::Result;
use crate::keyspace::trees::META;
use crate::txn::Tx;
pub(super) use library::BAD_NAME;
use library::{Library, LibraryFunction, load, name_of};

/// The libraries that a Lua state has loaded.
#[derive(Debug, Default)]
pub(super) struct LoadedFunctions {
    /// The record they were loaded from.
    record: Option<Bytes>,
    libraries: Vec<Library>,
}

fn record_key() -> Vec<u8> {
    meta_key(Space::RESERVED, b"functions").to_vec()
}

/// The codes of all libraries.
fn codes(tx: &Tx<'_>) -> Result<Vec<Vec<u8>>> {
    tx.row(META, &record_key())?.map_or(Ok(Vec::new()), |record| payload::decode(&record))
}

fn store_codes(tx: &mut Tx<'_>, codes: &[Vec<u8>]) {
    match codes {
        [] => tx.remove_row(META, &record_key()),
        codes => {
            let record = payload::encode(codes.iter().map(Vec::as_slice));
            tx.put_row(META, &record_key(), record);
        }
    }
}

/// Loads the store's libraries into a state, unless it has them.
fn refresh(tx: &Tx<'_>, lua: &mut LuaState) -> Result<()> {
    let record = tx.row(META, &record_key())?;
    if lua.functions.record == record {
        return Ok(());
    }
    lua.functions = LoadedFunctions::default();
    let codes = record.as_ref().map_or(Ok(Vec::new()), |record| payload::decode(record))?;
    let libraries = codes.iter().map(|code| load(lua, code)).collect::<Result<_>>()?;
    lua.functions = LoadedFunctions { record, libraries };
    Ok(())
}

/// Runs `work` with a state that has the store's libraries.
fn with_libraries<T>(
    tx: &Tx<'_>,
    state: &ScriptState,
    work: impl FnOnce(&[Library]) -> T,
) -> Result<T> {
    let mut lua = state.take(tx)?;
    refresh(tx, &mut lua)?;
    let answer = work(&lua.functions.libraries);
    state.put_back(lua);
    Ok(answer)
}

const NOT_FOUND: &str = "ERR Function not found";

/// Returns an error if there is no function of this name.
pub(super) fn find(tx: &Tx<'_>, state: &ScriptState, name: &[u8]) -> Result<()> {
    let has = |library: &Library| library.functions.iter().any(|function| function.is(name));
    let found = with_libraries(tx, state, |libraries| libraries.iter().any(has))?;
    if found { Ok(()) } else { Err(invalid(NOT_FOUND)) }
}

/// Runs a function.
pub(super) fn call(
    tx: &mut Tx<'_>,
    state: &ScriptState,
    name: &[u8],
    call: &ScriptCall<'_>,
) -> Result<Reply> {
    let mut lua = state.take(tx)?;
    refresh(tx, &mut lua)?;
    let mut all = lua.functions.libraries.iter().flat_map(|library| &library.functions);
    let Some(function) = all.find(|function| function.is(name)) else {
        state.put_back(lua);
        return Err(invalid(NOT_FOUND));
    };
    let (no_writes, callback) = (function.no_writes(), function.callback.clone());
    let name = String::from_utf8_lossy(&function.name).into();
    if call.read_only && !no_writes {
        state.put_back(lua);
        return Err(invalid("ERR Can not execute a script with write flag using *_ro command."));
    }
    let run = Run {
        name,
        keys: call.keys,
        args: call.args,
        read_only: call.read_only || no_writes,
        is_function: true,
    };
    run.execute(tx, state, lua, &callback)
}

/// Runs FUNCTION.
pub(super) fn command(tx: &mut Tx<'_>, state: &ScriptState, mut args: Args<'_>) -> Result<Reply> {
    let word = args.bytes()?;
    let known = ["DELETE", "DUMP", "FLUSH", "HELP", "KILL", "LIST", "LOAD", "RESTORE", "STATS"];
    let found = known.into_iter().find(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    let Some(name) = found else {
        let word = quoted(word);
        return Err(invalid(format!("ERR unknown subcommand '{word}'. Try FUNCTION HELP.")));
    };
    let fits = match name {
        "DELETE" => args.len() == 1,
        "LOAD" | "RESTORE" => !args.is_empty(),
        "FLUSH" | "LIST" => true,
        _ => args.is_empty(),
    };
    if !fits {
        return Err(wrong_number(&format!("function|{name}")));
    }
    let most = match name {
        "FLUSH" => 1,
        "RESTORE" => 2,
        _ => usize::MAX,
    };
    if args.len() > most {
        let word = quoted(word);
        return Err(invalid(format!(
            "ERR unknown subcommand or wrong number of arguments for '{word}'. Try FUNCTION HELP."
        )));
    }
    // Libraries are no keys, so no lock of a key keeps others from changing them.
    if matches!(name, "DELETE" | "FLUSH" | "LOAD" | "RESTORE") && tx.is_restartable() {
        tx.restart_alone();
        return Ok(Reply::Nil);
    }
    match name {
        "DELETE" => delete(tx, args.bytes()?),
        "DUMP" => {
            let codes = codes(tx)?;
            Ok(Reply::Bulk(payload::encode(codes.iter().map(Vec::as_slice)).into()))
        }
        "FLUSH" => flush(tx, &mut args),
        "HELP" => Ok(help("FUNCTION", HELP)),
        "KILL" => kill(tx, state, true),
        "LIST" => list(tx, state, &mut args),
        "LOAD" => load_command(tx, state, &mut args),
        "RESTORE" => restore(tx, state, &mut args),
        _ => stats(tx, state),
    }
}

const HELP: &[&str] = &[
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "DUMP",
    "    Return a serialized payload representing the libraries, can be restored using FUNCTION RESTORE command",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "KILL",
    "    End the function that has run longest.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries.",
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload.",
    "STATS",
    "    Return information about the function that has run longest, and how many there are.",
];

fn delete(tx: &mut Tx<'_>, name: &[u8]) -> Result<Reply> {
    let mut codes = codes(tx)?;
    let before = codes.len();
    codes.retain(|code| name_of(code).is_ok_and(|(found, _)| found != name));
    if codes.len() == before {
        return Err(invalid("ERR Library not found"));
    }
    store_codes(tx, &codes);
    Ok(Reply::OK)
}

fn flush(tx: &mut Tx<'_>, args: &mut Args<'_>) -> Result<Reply> {
    let how = args.all();
    let known =
        |how: &[u8]| how.eq_ignore_ascii_case(b"ASYNC") || how.eq_ignore_ascii_case(b"SYNC");
    if !how.iter().all(|how| known(how)) {
        return Err(invalid("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    store_codes(tx, &[]);
    Ok(Reply::OK)
}

/// Adds a library to the others, after a check that it loads and that no function has two owners.
fn add(
    tx: &Tx<'_>,
    state: &ScriptState,
    codes: &mut Vec<Vec<u8>>,
    code: &[u8],
    replace: bool,
) -> Result<Vec<u8>> {
    let (name, _) = name_of(code)?;
    let is_same = |other: &Vec<u8>| name_of(other).is_ok_and(|(found, _)| found == name);
    if codes.iter().any(is_same) {
        if !replace {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(invalid(format!("ERR Library '{name}' already exists")));
        }
        codes.retain(|other| !is_same(other));
    }
    let lua = state.take(tx)?;
    let library = load(&lua, code)?;
    for other in codes.iter() {
        let other = load(&lua, other)?;
        let has = |function: &LibraryFunction| {
            other.functions.iter().any(|known| known.is(&function.name))
        };
        if let Some(function) = library.functions.iter().find(|function| has(function)) {
            let name = String::from_utf8_lossy(&function.name).into_owned();
            return Err(invalid(format!("ERR Function {name} already exists")));
        }
    }
    state.put_back(lua);
    codes.push(code.to_vec());
    Ok(name)
}

fn load_command(tx: &mut Tx<'_>, state: &ScriptState, args: &mut Args<'_>) -> Result<Reply> {
    let mut replace = false;
    while args.len() > 1 {
        if !args.take_word("REPLACE") {
            let word = quoted(args.bytes()?);
            return Err(invalid(format!("ERR Unknown option given: {word}")));
        }
        replace = true;
    }
    let mut codes = codes(tx)?;
    let name = add(tx, state, &mut codes, args.bytes()?, replace)?;
    store_codes(tx, &codes);
    Ok(Reply::Bulk(name.into()))
}

fn restore(tx: &mut Tx<'_>, state: &ScriptState, args: &mut Args<'_>) -> Result<Reply> {
    let given = payload::decode(args.bytes()?)?;
    let (mut known, mut replace) = (codes(tx)?, false);
    match args.all() {
        [] => {}
        [word] if word.eq_ignore_ascii_case(b"APPEND") => {}
        [word] if word.eq_ignore_ascii_case(b"REPLACE") => replace = true,
        [word] if word.eq_ignore_ascii_case(b"FLUSH") => known.clear(),
        _ => {
            let text = "ERR Wrong restore policy given, value should be either FLUSH, APPEND or \
                        REPLACE.";
            return Err(invalid(text));
        }
    }
    for code in &given {
        add(tx, state, &mut known, code, replace)?;
    }
    store_codes(tx, &known);
    Ok(Reply::OK)
}

fn text(text: &'static str) -> Reply {
    Reply::Bulk(Bytes::from_static(text.as_bytes()))
}

fn list(tx: &Tx<'_>, state: &ScriptState, args: &mut Args<'_>) -> Result<Reply> {
    let (mut pattern, mut with_code) = (None, false);
    while let Some(word) = args.peek() {
        if !with_code && args.take_word("WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.take_word("LIBRARYNAME") {
            let text = "ERR library name argument was not given";
            pattern = Some(args.bytes().map_err(|_| invalid(text))?);
        } else {
            return Err(invalid(format!("ERR Unknown argument {}", quoted(word))));
        }
    }
    // As in Redis, upper and lower case are the same.
    let pattern = pattern.map(<[u8]>::to_ascii_lowercase);
    let fits = |name: &[u8], pattern: &Vec<u8>| glob::matches(pattern, &name.to_ascii_lowercase());
    let wanted = |library: &&Library| pattern.as_ref().is_none_or(|it| fits(&library.name, it));
    with_libraries(tx, state, |libraries| {
        let shown = libraries.iter().filter(wanted).map(|library| show(library, with_code));
        Reply::Array(shown.collect())
    })
}

fn show(library: &Library, with_code: bool) -> Reply {
    let functions = library.functions.iter().map(|function| {
        let description = function.description.clone().map(Bytes::from);
        Reply::Map(vec![
            (text("name"), Reply::Bulk(function.name.clone().into())),
            (text("description"), Reply::bulk(description)),
            (
                text("flags"),
                Reply::Set(function.flags.iter().map(|flag| Reply::Status(flag)).collect()),
            ),
        ])
    });
    let mut fields = vec![
        (text("library_name"), Reply::Bulk(library.name.clone().into())),
        (text("engine"), text("LUA")),
        (text("functions"), Reply::Array(functions.collect())),
    ];
    if with_code {
        fields.push((text("library_code"), Reply::Bulk(library.code.clone().into())));
    }
    Reply::Map(fields)
}

fn stats(tx: &Tx<'_>, state: &ScriptState) -> Result<Reply> {
    let count = |number: usize| Reply::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let (libraries, functions) = with_libraries(tx, state, |libraries| {
        let functions = libraries.iter().map(|library| library.functions.len()).sum();
        (libraries.len(), functions)
    })?;
    let running = state.running.longest(true).map_or(Reply::Nil, |script| {
        let ms = i64::try_from(script.since.elapsed().as_millis()).unwrap_or(i64::MAX);
        let command = script.command.iter().map(|word| Bytes::from(word.clone()));
        Reply::Map(vec![
            (text("name"), Reply::Bulk(Bytes::copy_from_slice(script.name.as_bytes()))),
            (text("command"), Reply::list(command)),
            (text("duration_ms"), Reply::Int(ms)),
        ])
    });
    let counts = Reply::Map(vec![
        (text("libraries_count"), count(libraries)),
        (text("functions_count"), count(functions)),
    ]);
    let engines = Reply::Map(vec![(text("LUA"), counts)]);
    Ok(Reply::Map(vec![(text("running_script"), running), (text("engines"), engines)]))
}

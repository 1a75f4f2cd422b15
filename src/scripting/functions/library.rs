//! A library of functions: its first line, and what it registers.

use mlua::{Function, Table, Value};

use crate::commands::quoted_words;
use crate::error::Result;
use crate::scripting::engine::{invalid, lua_failure};
use crate::scripting::lua_state::LuaState;
use crate::scripting::shebang::FLAGS;

/// The name that Redis gives to libraries in error messages.
const LIBRARY_NAME: &str = "@user_function";
/// Why a name of a library or function is refused.
pub(in crate::scripting) const BAD_NAME: &str = "Library names can only contain letters, numbers, or \
     underscores(_) and must be at least one character long";

/// A library that was loaded into a Lua state.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) name: Vec<u8>,
    pub(super) code: Vec<u8>,
    pub(super) functions: Vec<LibraryFunction>,
}

/// A function of a library.
#[derive(Debug)]
pub(super) struct LibraryFunction {
    pub(super) name: Vec<u8>,
    pub(super) description: Option<Vec<u8>>,
    pub(super) flags: Vec<&'static str>,
    pub(super) callback: Function,
}

impl LibraryFunction {
    /// Whether this is its name. As in Redis, upper and lower case are the same.
    pub(super) fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Whether it promises not to write.
    pub(super) fn no_writes(&self) -> bool {
        self.flags.contains(&"no-writes")
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name of a library, from its first line, and the code after that line.
pub(super) fn name_of(code: &[u8]) -> Result<(Vec<u8>, &[u8])> {
    if !code.starts_with(b"#!") {
        return Err(invalid("ERR Missing library metadata"));
    }
    let end = code.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| invalid("ERR Invalid library metadata"))?;
    let (line, rest) = code.split_at(end);
    let words = quoted_words::split(line).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| invalid("ERR Invalid library metadata"))?;
    let (engine, words) = words.split_first().map_or((&[][..], &[][..]), |(it, rest)| (it, rest));
    let engine = engine.get(2..).unwrap_or_default();
    let mut name = None;
    for word in words {
        match word.strip_prefix(b"name=") {
            Some(_) if name.is_some() => {
                let text = "ERR Invalid metadata value, name argument was given multiple times";
                return Err(invalid(text));
            }
            Some(given) => name = Some(given.to_vec()),
            None => {
                return Err(invalid(format!("ERR Invalid metadata value given: {}", shown(word))));
            }
        }
    }
    let name = name.ok_or_else(|| invalid("ERR Library name was not given"))?;
    if !is_name(&name) {
        return Err(invalid(format!("ERR {BAD_NAME}")));
    }
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(invalid(format!("ERR Engine '{}' not found", shown(engine))));
    }
    Ok((name, rest))
}

/// Loads a library into a Lua state: runs its code, which registers functions.
pub(super) fn load(state: &LuaState, code: &[u8]) -> Result<Library> {
    let (name, body) = name_of(code)?;
    let chunk = state.compile(body, LIBRARY_NAME).map_err(|error| {
        let text = match &error {
            mlua::Error::SyntaxError { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let text = text.lines().next().unwrap_or_default().to_owned();
        invalid(format!("ERR Error compiling function: {text}"))
    })?;
    let run = || state.load_library(&chunk);
    let (loaded, registered) = run()?;
    if !loaded {
        return Err(invalid(format!("ERR Error registering functions: {}", error_of(&registered))));
    }
    let Value::Table(registered) = registered else {
        return Err(invalid("ERR No functions registered"));
    };
    let functions = functions(&registered)?;
    if functions.is_empty() {
        return Err(invalid("ERR No functions registered"));
    }
    Ok(Library { name, code: code.to_vec(), functions })
}

fn error_of(error: &Value) -> String {
    let text = error.as_table().and_then(|table| table.raw_get::<mlua::LuaString>("err").ok());
    text.map_or_else(|| "ERR unknown error".to_owned(), |text| text.to_string_lossy())
}

/// The functions that a library has registered. The sandbox has checked their names and flags.
fn functions(registered: &Table) -> Result<Vec<LibraryFunction>> {
    let failed = |error: mlua::Error| lua_failure(&error);
    let mut all: Vec<LibraryFunction> = Vec::new();
    for function in registered.sequence_values::<Table>() {
        let function = function.map_err(failed)?;
        let text = |field: &str| {
            let value: Option<mlua::LuaString> = function.raw_get(field).map_err(failed)?;
            Ok(value.map(|text| text.as_bytes().to_vec()))
        };
        let name = text("name")?.unwrap_or_default();
        let given: Option<Table> = function.raw_get("flags").map_err(failed)?;
        let given = given.iter().flat_map(Table::sequence_values::<mlua::LuaString>);
        let given = given.collect::<mlua::Result<Vec<_>>>().map_err(failed)?;
        let known = |flag: &&'static str| given.iter().any(|it| *it.as_bytes() == *flag.as_bytes());
        let flags = FLAGS.into_iter().filter(known).collect();
        let callback = function.raw_get("callback").map_err(failed)?;
        all.push(LibraryFunction { name, description: text("description")?, flags, callback });
    }
    Ok(all)
}

//! Parsers of the commands that run scripts, and of SCRIPT and FUNCTION.

use crate::commands::args::Args;
use crate::commands::reply::Reply;
use crate::commands::script_log;
use crate::commands::scripts::{ScriptCall, ScriptName, engine};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::parse_integer;

fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::Invalid, text)
}

/// Parses what follows the script: the number of keys, the keys, the arguments.
fn run<'a>(
    tx: &mut Tx<'_>,
    mut args: Args<'a>,
    name: impl FnOnce(&'a [u8]) -> ScriptName<'a>,
    read_only: bool,
) -> Result<Reply> {
    script_log::begin(tx.is_restartable());
    let name = name(args.bytes()?);
    let keys = match keys(&mut args, name) {
        Ok(keys) => keys,
        Err(error) => {
            // Redis looks for a function before it looks at the number of keys.
            if let ScriptName::Function(function) = name {
                engine()?.find_function(tx, function)?;
            }
            return Err(error);
        }
    };
    let call = ScriptCall { name, keys, args: args.all(), read_only };
    engine()?.run(tx, &call)
}

fn keys<'a>(args: &mut Args<'a>, name: ScriptName<'_>) -> Result<&'a [&'a [u8]]> {
    let bad_count = || match name {
        ScriptName::Function(_) => invalid("ERR Bad number of keys provided"),
        _ => crate::types::number::not_an_integer(),
    };
    let count = parse_integer(args.bytes()?).map_err(|_| bad_count())?;
    if count > i64::try_from(args.len()).unwrap_or(i64::MAX) {
        return Err(invalid("ERR Number of keys can't be greater than number of args"));
    }
    let count =
        usize::try_from(count).map_err(|_| invalid("ERR Number of keys can't be negative"))?;
    args.take(count)
}

pub(crate) fn eval(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run(tx, args, ScriptName::Source, false)
}

pub(crate) fn eval_ro(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run(tx, args, ScriptName::Source, true)
}

pub(crate) fn evalsha(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run(tx, args, ScriptName::Sha1, false)
}

pub(crate) fn evalsha_ro(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run(tx, args, ScriptName::Sha1, true)
}

pub(crate) fn fcall(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run(tx, args, ScriptName::Function, false)
}

pub(crate) fn fcall_ro(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run(tx, args, ScriptName::Function, true)
}

pub(crate) fn script(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    engine()?.script(tx, args)
}

pub(crate) fn function(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    engine()?.function(tx, args)
}

//! Libraries of functions: FUNCTION and FCALL.

use super::engine::{ScriptState, invalid};
use crate::commands::Reply;
use crate::commands::args::Args;
use crate::commands::scripts::ScriptCall;
use crate::error::Result;
use crate::txn::Tx;

#[derive(Debug, Default)]
pub(super) struct FunctionCatalog;
#[derive(Debug, Default)]
pub(super) struct LoadedFunctions;

pub(super) fn call(_: &mut Tx<'_>, _: &ScriptState, _: &[u8], _: &ScriptCall<'_>) -> Result<Reply> {
    Err(invalid("ERR Function not found"))
}
pub(super) fn command(_: &mut Tx<'_>, _: &ScriptState, _: Args<'_>) -> Result<Reply> {
    Err(invalid("ERR Function not found"))
}

//! The libraries that Redis adds to Lua.

mod arguments;
mod bit;
pub(super) mod cjson;
mod cmsgpack;
mod numbers;
mod packing;
mod random;

use mlua::{Lua, Table};

pub(super) use random::Random;

/// Adds the libraries to a table.
pub(super) fn add(lua: &Lua, native: &Table, cjson: &cjson::SharedSettings) -> mlua::Result<()> {
    native.raw_set("bit", bit::library(lua)?)?;
    native.raw_set("cjson", cjson::library(lua, cjson)?)?;
    native.raw_set("cmsgpack", cmsgpack::library(lua)?)?;
    native.raw_set("struct", packing::library(lua)?)?;
    Ok(())
}

/// Adds `math.random` and `math.randomseed`.
pub(super) fn add_random(
    lua: &Lua,
    native: &Table,
    random: &std::sync::Arc<Random>,
) -> mlua::Result<()> {
    random::add(lua, native, random)
}

//! Scripts: EVAL, EVALSHA, SCRIPT, FUNCTION, FCALL.
//!
//! - `engine`: the commands; `run`: one run of a script; `functions`: libraries of functions;
//! - `lua_state`: a Lua state with its sandbox (`sandbox.lua`); `libraries`: cjson, cmsgpack,
//!   struct, bit and `math.random`;
//! - `to_lua`, `to_reply`: replies as Lua values and back; `failure`: errors in scripts;
//! - `cache`, `sha1`, `shebang`: the scripts that a store knows;
//! - `watchdog`: ends scripts that run too long.
//!
//! How a script gets its locks and its commit is in `txn::script`.

mod cache;
mod engine;
mod failure;
mod functions;
mod libraries;
mod lua_state;
mod run;
mod sha1;
mod shebang;
mod to_lua;
mod to_reply;
mod watchdog;

pub(crate) use engine::LuaEngine;

//! Functions of regular commands, from the command table (`make generate`).

mod hash;
mod key;
mod list;
mod set;
mod string;
mod zset;

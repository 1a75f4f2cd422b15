//! Redis semantics over the engine: [`Db`], and one file a type with its commands as methods.

mod db;
mod key;
mod string;
mod stripes;

pub use db::{Db, Limits};

//! Renders the arguments of a command as a person writes them. This file includes the module that
//! the library uses at run time.

use crate::schema;

#[path = "../../../src/commands/syntax.rs"]
mod shared;

pub(crate) use shared::syntax;

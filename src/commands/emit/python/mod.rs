//! Files of the Python package: the declarations of the C functions, and the methods of regular
//! commands.

mod commands;
mod signatures;

pub(crate) use commands::python_commands;
pub(crate) use signatures::python_signatures;

use super::{header, spec};

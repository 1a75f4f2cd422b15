//! Emitters of the Python package.

mod methods;
mod signatures;
mod stub;

pub(crate) use methods::methods;
pub(crate) use signatures::signatures;
pub(crate) use stub::stub;

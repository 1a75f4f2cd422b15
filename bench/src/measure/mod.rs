//! Numbers from clocks, counters and the kernel.

pub(crate) mod histogram;
pub(crate) mod median;
pub(crate) mod process;

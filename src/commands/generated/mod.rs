//! Written by `make generate` from the command table; committed, and checked by every build.

pub(super) mod dispatch;

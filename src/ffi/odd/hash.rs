//! HGETDEL of one field: the command replies with an array, the C function returns one value.

use crate::commands::{Reply, entries};
use crate::error::Result;
use crate::ffi::argv::Argv;
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::output::{WriteOutput, unexpected};
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, lsmkv_status};
use crate::ffi::target::CommandTarget;

pub(crate) fn hgetdel(
    target: &CommandTarget<'_>,
    key: &[u8],
    field: &[u8],
    out: &Out<lsmkv_buf>,
) -> Result<lsmkv_status> {
    if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::HGETDEL);
        argv.extend(&[key, b"FIELDS", b"1", field]);
        return match target.reply(&entries::HGETDEL, &argv)? {
            None => Ok(LSMKV_OK),
            Some(Reply::Array(values)) => match values.into_iter().next() {
                Some(Reply::Bulk(value)) => out.write(value),
                _ => Ok(LSMKV_NOT_FOUND),
            },
            Some(other) => Err(unexpected(&other)),
        };
    }
    out.write(target.db()?.hgetdel(key, &[field])?.into_iter().next().flatten())
}

//! HGETDEL of one field: the command replies with an array, the C function returns one value.

use crate::commands::entries;
use crate::error::Result;
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::output::WriteOutput;
use crate::ffi::slice::Out;
use crate::ffi::status::lsmkv_status;
use crate::ffi::target::CommandTarget;

pub(crate) fn hgetdel(
    target: &CommandTarget<'_>,
    key: &[u8],
    field: &[u8],
    out: &Out<lsmkv_buf>,
) -> Result<lsmkv_status> {
    if target.records() {
        return target.record(&entries::HGETDEL, &[key, b"FIELDS", b"1", field]);
    }
    out.write(target.db().hgetdel(key, &[field])?.into_iter().next().flatten())
}

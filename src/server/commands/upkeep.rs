//! Upkeep that a process asks the holder of a shared store for. It may take long, so it runs on a
//! thread of its own.

use super::Call;
use crate::admin::StatValue;
use crate::commands::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::server::scripts::run_on_thread;
use crate::txn::Db;

/// SYNC, FLUSH, COMPACT, RESUME, STATS, CHECK, or CHECKPOINT with a directory.
pub(super) fn upkeep(call: &mut Call<'_, '_>) {
    let (what, argument) = (call.word(2), call.arg(3).to_vec());
    let work = move |db: &Db| match upkeep_reply(db, &what, &argument) {
        Ok(reply) => reply,
        Err(error) => Reply::Error(error.to_line()),
    };
    run_on_thread(call.server, call.client, 0, call.out, work);
}

/// Does upkeep on a store of this process.
pub(crate) fn upkeep_reply(db: &Db, what: &str, argument: &[u8]) -> Result<Reply> {
    match what {
        "SYNC" => db.sync()?,
        "FLUSH" => db.flush()?,
        "COMPACT" => db.compact()?,
        "RESUME" => db.resume()?,
        "CHECKPOINT" => {
            use std::os::unix::ffi::OsStrExt;
            db.checkpoint(std::path::Path::new(std::ffi::OsStr::from_bytes(argument)))?;
        }
        "STATS" => {
            let figures = db.stats()?.into_iter().map(|figure| {
                let value = match figure.value {
                    StatValue::Count(count) => Reply::Int(i64::try_from(count).unwrap_or(i64::MAX)),
                    StatValue::Ratio(ratio) => Reply::Double(ratio),
                };
                (Reply::Bulk(figure.name.to_owned().into()), value)
            });
            return Ok(Reply::Map(figures.collect()));
        }
        "CHECK" => {
            let problems = db.check()?.into_iter().map(|problem| Reply::Bulk(problem.into()));
            return Ok(Reply::Array(problems.collect()));
        }
        _ => return Err(Error::new(ErrorKind::Unsupported, format!("there is no upkeep {what}"))),
    }
    Ok(Reply::Status("OK"))
}

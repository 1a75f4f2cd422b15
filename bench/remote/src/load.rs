//! The calls that are timed, through one client and another.

use std::time::{Duration, Instant};

use lsmkv::{Remote, Reply};
use redis::ConnectionLike as _;

use crate::Result;

/// The calls of a round.
pub(crate) const CALLS: usize = 8000;
/// The commands of one call, where there are several.
const TOGETHER: usize = 16;

pub(crate) fn key(number: usize) -> String {
    format!("key:{:06}", number * 7919 % 10_000)
}

pub(crate) const VALUE: &[u8] = &[b'v'; 100];

/// The four kinds of call that are timed.
pub(crate) const KINDS: [(&str, bool, usize); 4] =
    [("SET", true, 1), ("GET", false, 1), ("SET", true, TOGETHER), ("GET", false, TOGETHER)];

/// The time of a round through the bare crate.
pub(crate) fn bare(
    connection: &mut redis::Connection,
    writes: bool,
    together: usize,
) -> Result<Duration> {
    let begun = Instant::now();
    for call in 0..CALLS / together {
        let mut pipeline = redis::pipe();
        for number in 0..together {
            let key = key(call * together + number);
            if writes {
                pipeline.cmd("SET").arg(key).arg(VALUE);
            } else {
                pipeline.cmd("GET").arg(key);
            }
        }
        let replies: Vec<redis::Value> = if together == 1 {
            let one = pipeline.cmd_iter().next().ok_or("no command")?;
            vec![connection.req_command(one)?]
        } else {
            pipeline.query(connection)?
        };
        assert_eq!(replies.len(), together);
    }
    Ok(begun.elapsed())
}

/// The time of a round through a remote store.
pub(crate) fn forwarded(store: &Remote, writes: bool, together: usize) -> Result<Duration> {
    let begun = Instant::now();
    for call in 0..CALLS / together {
        let keys: Vec<String> = (0..together).map(|n| key(call * together + n)).collect();
        let argvs: Vec<Vec<&[u8]>> = keys
            .iter()
            .map(|key| match writes {
                true => vec![b"SET".as_slice(), key.as_bytes(), VALUE],
                false => vec![b"GET".as_slice(), key.as_bytes()],
            })
            .collect();
        let replies: Vec<Reply> = match argvs.as_slice() {
            [one] => vec![store.command(one)?],
            several => store.session()?.pipeline(several)?,
        };
        assert_eq!(replies.len(), together);
    }
    Ok(begun.elapsed())
}

//! The way of keys from a source to a sink.

use super::{Progress, Sink, Source, State};
use crate::failure::Failure;

/// What a copy brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) keys: u64,
    pub(crate) members: u64,
}

/// Moves everything from a source to a sink. Stops when interrupted, with a failure, perhaps inside
/// a big collection; `saved` is told every so often how far it has come, after the sink was flushed: what a sink that
/// fails later had not settled is copied again the next time.
pub(crate) fn copy(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    progress: &mut Progress,
    saved: &mut dyn FnMut(&State) -> Result<(), Failure>,
) -> Result<Copied, Failure> {
    let mut copied = Copied::default();
    match copy_all(source, sink, progress, saved, &mut copied) {
        Ok(()) => Ok(copied),
        // Whoever waits when it is interrupted fails.
        Err(_) if progress.interrupted() => {
            Err(Failure::new(format!("stopped after {} keys", copied.keys)))
        }
        Err(failure) => Err(failure),
    }
}

fn copy_all(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    progress: &mut Progress,
    saved: &mut dyn FnMut(&State) -> Result<(), Failure>,
    copied: &mut Copied,
) -> Result<(), Failure> {
    const KEYS_BETWEEN_SAVES: u64 = 1000;
    let mut unsaved = 0;
    progress.expect(source.expected());
    loop {
        let chunk = match source.next() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(failure) => {
                save(source, sink, saved)?;
                return Err(failure);
            }
        };
        sink.put(&chunk)?;
        copied.members += chunk.body.len() as u64;
        if chunk.last {
            copied.keys += 1;
            unsaved += 1;
            progress.advance(1);
        }
        let stopped = progress.interrupted();
        if unsaved >= KEYS_BETWEEN_SAVES || stopped {
            save(source, sink, saved)?;
            unsaved = 0;
        }
        if stopped {
            return Err(Failure::new("stopped"));
        }
    }
    sink.flush()?;
    progress.finish();
    Ok(())
}

fn save(
    source: &dyn Source,
    sink: &mut dyn Sink,
    saved: &mut dyn FnMut(&State) -> Result<(), Failure>,
) -> Result<(), Failure> {
    sink.flush()?;
    source.position().map_or(Ok(()), |state| saved(&state))
}

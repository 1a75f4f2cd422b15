//! Copies keys from a source to a sink.

use super::{Progress, ResumePoint, Sink, Source};
use crate::failure::Failure;

/// The number of keys and members copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) keys: u64,
    pub(crate) members: u64,
}

/// Copies all keys. An interruption ends the copy with a failure, perhaps inside a big collection.
/// `saved` regularly gets the position reached, each time after a flush of the sink; the next copy
/// repeats what was not flushed.
pub(crate) fn copy(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    progress: &mut Progress,
    saved: &mut dyn FnMut(&ResumePoint) -> Result<(), Failure>,
) -> Result<Copied, Failure> {
    let mut copied = Copied::default();
    match copy_all(source, sink, progress, saved, &mut copied) {
        Ok(()) => Ok(copied),
        // An operation that waits fails when it is interrupted.
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
    saved: &mut dyn FnMut(&ResumePoint) -> Result<(), Failure>,
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
        for part in chunk.parts() {
            sink.put(&part)?;
            copied.members += part.body.len() as u64;
            if part.last {
                copied.keys += 1;
                unsaved += 1;
                progress.advance(1);
            }
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
    saved: &mut dyn FnMut(&ResumePoint) -> Result<(), Failure>,
) -> Result<(), Failure> {
    sink.flush()?;
    source.position().map_or(Ok(()), |state| saved(&state))
}

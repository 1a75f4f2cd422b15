//! Commands whose keys are in several slots: each part goes to the node of its slot.

use std::sync::Arc;

use bytes::Bytes;

use super::Cluster;
use super::every_node::sum;
use super::pipeline::Pipeline;
use super::plan::{Split, SplitJoin};
use crate::commands::{Head, Reply, ReplyBuilder, ReplySink};
use crate::error::{Error, Result};
use crate::remote::call::Call;
use crate::remote::frame::Frame;
use crate::remote::server_error::server_error;
use crate::remote::waits::Waits;

impl Cluster {
    /// Runs the parts of a command, as several commands that are sent together.
    pub(super) fn run_split(
        &self,
        call: &Call<'_>,
        split: &Split,
        waits: &Arc<Waits>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let replies = self.parts(call, split, waits).map_err(|error| part_failed(call, error))?;
        let refusal = replies.iter().find_map(|reply| match reply {
            Reply::Error(text) => Some(text),
            _ => None,
        });
        match refusal {
            // Nothing else has run, or only reads.
            Some(text) if split.parts.len() == 1 || call.only_reads() => {
                return Ok(Frame::Error(text.clone()));
            }
            Some(text) => return Err(part_failed(call, server_error(text))),
            None => {}
        }
        match split.join {
            SplitJoin::Sum => sink.integer(sum(&replies)),
            SplitJoin::Ok => sink.status("OK"),
            SplitJoin::ByKey => in_order_of_keys(split, replies, sink),
        }
        Ok(Frame::Reply)
    }

    /// The replies to the parts.
    fn parts(&self, call: &Call<'_>, split: &Split, waits: &Arc<Waits>) -> Result<Vec<Reply>> {
        let name = call.argv.first().copied().unwrap_or_default();
        let mut replies = Vec::with_capacity(split.parts.len());
        let mut keep = |builder: &mut ReplyBuilder| replies.push(std::mem::take(builder).finish());
        let mut builder = ReplyBuilder::default();
        let mut pipeline = Pipeline::new(self, waits);
        for part in &split.parts {
            let words = part.places.iter().flat_map(|place| {
                let begin = 1 + place * split.stride;
                call.argv.get(begin..begin + split.stride).unwrap_or_default()
            });
            let argv: Vec<&[u8]> = std::iter::once(name).chain(words.copied()).collect();
            pipeline.add(Some(part.slot), &argv, call.entry)?;
            if pipeline.is_full() {
                pipeline.finish(&mut builder, &mut keep)?;
            }
        }
        pipeline.finish(&mut builder, &mut keep)?;
        Ok(replies)
    }
}

/// The error of a command that failed in part.
fn part_failed(call: &Call<'_>, error: Error) -> Error {
    if call.only_reads() {
        return error;
    }
    error.wrap(error.kind(), "parts of the command may have run on other nodes of the cluster")
}
/// Writes the elements of the parts in the order of the keys of the whole command.
fn in_order_of_keys(split: &Split, replies: Vec<Reply>, sink: &mut dyn ReplySink) {
    let len = split.parts.iter().map(|part| part.places.len()).sum();
    let mut elements: Vec<Reply> = vec![Reply::Nil; len];
    for (part, reply) in split.parts.iter().zip(replies) {
        let Reply::Array(found) = reply else { continue };
        for (place, element) in part.places.iter().zip(found) {
            if let Some(slot) = elements.get_mut(*place) {
                *slot = element;
            }
        }
    }
    sink.head(Head::Array, len);
    elements.iter().for_each(|element| match element {
        Reply::Bulk(bytes) => sink.shared_bulk(Bytes::clone(bytes)),
        other => other.write_to(sink),
    });
}

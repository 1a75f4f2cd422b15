//! Commands that concern every node, and how their replies become one.

use super::Cluster;
use super::plan::Join;
use crate::commands::{Reply, ReplyBuilder, ReplySink};
use crate::error::Result;
use crate::remote::call::Call;
use crate::remote::frame::Frame;
use crate::remote::pool::Pool;

impl Cluster {
    pub(super) fn run_at_every(
        &self,
        call: &Call<'_>,
        join: Join,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut replies = Vec::new();
        for pool in self.every_pool() {
            match self.query(&pool, call)? {
                Ok(reply) => replies.push(reply),
                Err(text) => return Ok(Frame::Error(text)),
            }
        }
        match join {
            Join::Sum => sink.integer(sum(&replies)),
            Join::First => replies.first().unwrap_or(&Reply::Nil).write_to(sink),
            Join::Concatenation => {
                let elements = replies.into_iter().flat_map(|reply| match reply {
                    Reply::Array(elements) | Reply::Set(elements) => elements,
                    other => vec![other],
                });
                Reply::Array(elements.collect()).write_to(sink);
            }
        }
        Ok(Frame::Reply)
    }

    pub(super) fn run_until_found(
        &self,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut pools = self.every_pool();
        let turn = self.next_turn();
        let len = pools.len().max(1);
        pools.rotate_left(turn % len);
        for pool in pools {
            match self.query(&pool, call)? {
                Ok(Reply::Nil) => {}
                Ok(reply) => {
                    reply.write_to(sink);
                    return Ok(Frame::Reply);
                }
                Err(text) => return Ok(Frame::Error(text)),
            }
        }
        sink.nil();
        Ok(Frame::Reply)
    }

    /// Runs a command at one node, and returns its reply or the text of its error.
    pub(super) fn query(
        &self,
        pool: &Pool,
        call: &Call<'_>,
    ) -> Result<std::result::Result<Reply, String>> {
        let mut reply = ReplyBuilder::default();
        match self.call_once(pool, false, call, None, &mut reply) {
            Ok(Frame::Error(text)) => Ok(Err(text)),
            Ok(_) => Ok(Ok(reply.finish())),
            Err(failure) => {
                let _ = self.refresh();
                Err(failure.into_error())
            }
        }
    }
}

/// The sum of the numbers among replies.
pub(super) fn sum(replies: &[Reply]) -> i64 {
    replies.iter().fold(0, |sum: i64, reply| match reply {
        Reply::Int(number) => sum.saturating_add(*number),
        _ => sum,
    })
}

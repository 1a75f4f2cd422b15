//! PUBLISH and SPUBLISH: messages are sent after the commit.

use crate::error::Result;
use crate::messages::Kind;
use crate::txn::Tx;

impl Tx<'_> {
    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8]) -> Result<i64> {
        Ok(self.send(Kind::Channel, channel, message))
    }

    pub(crate) fn spublish(&mut self, channel: &[u8], message: &[u8]) -> Result<i64> {
        Ok(self.send(Kind::Shard, channel, message))
    }
}

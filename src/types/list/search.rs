//! Commands that find an element by its value. Each walks the list.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::list::elements::Elements;
use crate::types::list::{Side, reply_number};

/// Where LINSERT puts the new element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPosition {
    /// Before the element that was found.
    Before,
    /// After the element that was found.
    After,
}

/// What LPOS looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The first match to return: 1 is the first, 2 the second; -1 the last, and then the search
    /// goes towards the head. Never 0.
    pub rank: i64,
    /// The number of matches to return; 0 = all.
    pub count: u64,
    /// The number of elements to look at; 0 = all.
    pub maxlen: u64,
}

impl Default for Search {
    /// The first match.
    fn default() -> Self {
        Self { rank: 1, count: 1, maxlen: 0 }
    }
}

commands! {
    /// LPOS: the positions of the elements that equal `element`, in the order of the search.
    read fn lpos(key: &[u8], element: &[u8], search: Search) -> Vec<i64>;
}

/// Fails for a rank of 0.
pub(crate) fn check_rank(rank: i64) -> Result<()> {
    if rank != 0 {
        return Ok(());
    }
    let text = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second \
                ... or use negative to start from the end of the list";
    Err(Error::new(ErrorKind::Invalid, text))
}

impl Search {
    /// The side at which the search begins.
    fn from(&self) -> Side {
        if self.rank < 0 { Side::Right } else { Side::Left }
    }

    /// The positions of the matches, in the order of the search.
    fn run(&self, tx: &Tx<'_>, list: &Elements<'_>, element: &[u8]) -> Result<Vec<u64>> {
        let (mut to_skip, wanted) = match self.rank {
            // The reference negates this rank, which overflows: it then skips no match and stops at
            // none.
            i64::MIN => (0, 0),
            rank => (rank.unsigned_abs().saturating_sub(1), self.count),
        };
        let len = list.len();
        let looked_at = if self.maxlen == 0 { len } else { self.maxlen.min(len) };
        let positions = match self.from() {
            Side::Left => 0..looked_at,
            Side::Right => len - looked_at..len,
        };
        let mut found = Vec::new();
        let mut run = list.walk(tx, positions, self.from())?;
        while run.advance()? {
            if run.element() != element {
                continue;
            }
            if to_skip > 0 {
                to_skip -= 1;
                continue;
            }
            found.push(run.position());
            if found.len() as u64 == wanted {
                break;
            }
        }
        Ok(found)
    }
}

impl Tx<'_> {
    pub(crate) fn lpos(&self, key: &[u8], element: &[u8], search: Search) -> Result<Vec<i64>> {
        check_rank(search.rank)?;
        let Some(list) = self.list(key)? else { return Ok(Vec::new()) };
        let found = search.run(self, &list, element)?;
        Ok(found.into_iter().map(reply_number).collect())
    }

    pub(crate) fn linsert(
        &mut self,
        key: &[u8],
        place: InsertPosition,
        pivot: &[u8],
        element: &[u8],
    ) -> Result<i64> {
        let Some(mut list) = self.list(key)? else { return Ok(0) };
        let mut run = list.walk_all(self, Side::Left)?;
        while run.advance()? {
            if run.element() != pivot {
                continue;
            }
            let position = run.position() + u64::from(place == InsertPosition::After);
            list.insert(self, position, Bytes::copy_from_slice(element))?;
            self.save_list(&list)?;
            self.notify(Classes::LIST, "linsert", key);
            return Ok(reply_number(list.len()));
        }
        Ok(-1)
    }

    pub(crate) fn lrem(&mut self, key: &[u8], count: i64, element: &[u8]) -> Result<i64> {
        let Some(mut list) = self.list(key)? else { return Ok(0) };
        let rank = if count < 0 { -1 } else { 1 };
        let search = Search { rank, count: count.unsigned_abs(), maxlen: 0 };
        let mut found = search.run(self, &list, element)?;
        if found.is_empty() {
            return Ok(0);
        }
        found.sort_unstable();
        list.remove(self, &found)?;
        self.save_list(&list)?;
        self.notify_taken(Classes::LIST, "lrem", key)?;
        Ok(reply_number(found.len() as u64))
    }
}

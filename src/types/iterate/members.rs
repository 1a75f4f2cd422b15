//! Iterators over the members of a hash, set or sorted set in byte order, and the elements of a
//! list in list order.

use std::sync::Arc;

use bytes::Bytes;

use super::{Progress, chunk};
use crate::encoding::meta::Type;
use crate::engine::CacheFill;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::errors::wrong_type;
use crate::txn::Db;
use crate::txn::collection::Collection;
use crate::txn::store::Store;
use crate::txn::{Tx, Walk};
use crate::types::list::{ElementWalk, Side};
use crate::types::scores::stored_score;

/// Where an iteration over members begins. The default is all members in order.
#[derive(Clone, Debug, Default)]
pub struct MemberRange {
    /// Continue behind this member, whether or not it still exists: the bytes of a member, or for
    /// any type what [`MemberIter::resume_point`] returned, even before the store was last closed.
    pub after: Option<Vec<u8>>,
    /// Iterate from the last member to the first.
    pub reverse: bool,
    /// Leave the block cache as it is: for a walk that is not repeated.
    pub cache_fill: CacheFill,
}

/// A member and its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Member {
    /// A field of a hash.
    Field {
        /// The field.
        field: Bytes,
        /// The value of the field.
        value: Bytes,
    },
    /// A member of a set.
    Member(Bytes),
    /// A member of a sorted set.
    Scored {
        /// The member.
        member: Bytes,
        /// The score of the member.
        score: f64,
    },
    /// An element of a list.
    Element {
        /// The position of the element, 0 being the first.
        index: u64,
        /// The element.
        element: Bytes,
    },
}

impl Member {
    fn bytes(&self) -> usize {
        match self {
            Self::Field { field, value } => field.len() + value.len(),
            Self::Member(member) | Self::Scored { member, .. } => member.len(),
            Self::Element { element, .. } => element.len(),
        }
    }
}

/// The rows of one key.
#[derive(Debug)]
enum MemberRows {
    Members { walk: Walk, collection: Box<Collection>, kind: Type },
    Elements(ElementWalk),
}

/// An iterator over the members of a key, made by [`Db::members`].
///
/// As an [`Iterator`] it returns a failure once and then ends; [`MemberIter::next`] returns it on
/// every further call.
pub struct MemberIter {
    store: Arc<Store>,
    kind: Option<Type>,
    progress: Progress<MemberRows>,
    last: Option<Vec<u8>>,
}

impl std::fmt::Debug for MemberIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberIter").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Db {
    /// Iterates over the members of a hash, set, sorted set or list as they are now; over none if
    /// the key does not exist. Later changes are not seen. Sorted sets come in byte order, too:
    /// `zrange` goes by score.
    ///
    /// ```
    /// use lsmkv::types::{Member, MemberRange};
    /// use lsmkv::{Db, Options};
    ///
    /// let db = Db::open(":memory:", Options::default())?;
    /// db.rpush(b"queue", &[b"a", b"b", b"c"])?;
    /// let mut elements = db.members(b"queue", MemberRange::default())?;
    /// assert_eq!(elements.next_chunk(2, usize::MAX)?.len(), 2);
    ///
    /// // To go on later: only bytes need to be kept.
    /// let after = elements.resume_point().map(<[u8]>::to_vec);
    /// let mut rest = db.members(b"queue", MemberRange { after, ..MemberRange::default() })?;
    /// let c = Member::Element { index: 2, element: "c".into() };
    /// assert_eq!(rest.next_chunk(10, usize::MAX)?, [c]);
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn members(&self, key: &[u8], range: MemberRange) -> Result<MemberIter> {
        let store = Arc::clone(self.shared_store());
        self.read_for_long(|tx| {
            let kind = tx.kind(key)?;
            let rows = tx.with_cache_fill(range.cache_fill, |tx| match kind {
                None => Ok(None),
                Some(Type::String) => Err(wrong_type()),
                Some(Type::List) => tx.elements_behind(key, &range),
                Some(kind) => tx.members_behind(key, kind, &range),
            })?;
            Ok(MemberIter { store, kind, progress: Progress::new(rows), last: range.after })
        })
    }
}

impl Tx<'_> {
    fn members_behind(
        &self,
        key: &[u8],
        kind: Type,
        range: &MemberRange,
    ) -> Result<Option<MemberRows>> {
        let Some(collection) = self.collection(key, kind)? else { return Ok(None) };
        let walk = match range.after.as_deref() {
            None => collection.walk_from(self, b"", range.reverse)?,
            // Nothing comes before the empty member.
            Some(b"") if range.reverse => return Ok(None),
            Some(after) if range.reverse => collection.walk_from(self, after, true)?,
            // The smallest member that is greater.
            Some(after) => collection.walk_from(self, &[after, b"\0"].concat(), false)?,
        };
        Ok(Some(MemberRows::Members { walk, collection: Box::new(collection), kind }))
    }

    fn elements_behind(&self, key: &[u8], range: &MemberRange) -> Result<Option<MemberRows>> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let from = if range.reverse { Side::Right } else { Side::Left };
        let positions = match range.after.as_deref() {
            None => 0..list.len(),
            Some(mark) => {
                let mark = mark
                    .try_into()
                    .map_err(|_| Error::new(ErrorKind::Invalid, "this is no place in a list"))?;
                list.positions_behind(mark, from)
            }
        };
        Ok(Some(MemberRows::Elements(list.walk(self, positions, from)?)))
    }
}

impl MemberRows {
    fn next(&mut self, last: &mut Option<Vec<u8>>) -> Result<Option<Member>> {
        match self {
            Self::Elements(run) => {
                if !run.advance()? {
                    return Ok(None);
                }
                note(last, &run.mark());
                let (index, element) = (run.position(), run.element_bytes());
                Ok(Some(Member::Element { index, element }))
            }
            Self::Members { walk, collection, kind } => {
                if !walk.advance()? {
                    return Ok(None);
                }
                let member = collection.sub_key(walk.key());
                note(last, member);
                member_of(*kind, Bytes::copy_from_slice(member), walk).map(Some)
            }
        }
    }
}

fn note(last: &mut Option<Vec<u8>>, bytes: &[u8]) {
    let last = last.get_or_insert_default();
    last.clear();
    last.extend_from_slice(bytes);
}

fn member_of(kind: Type, member: Bytes, walk: &Walk) -> Result<Member> {
    Ok(match kind {
        Type::Hash => Member::Field { field: member, value: walk.value_bytes() },
        Type::ZSet => Member::Scored { score: stored_score(walk.value())?, member },
        Type::Set | Type::List | Type::String => Member::Member(member),
    })
}

impl MemberIter {
    /// The type of the key; `None` if it does not exist.
    pub fn kind(&self) -> Option<Type> {
        self.kind
    }

    /// What [`MemberRange::after`] needs to continue from here: the bytes of the last member; for a
    /// list the index of the last element, which does not change when others are added or removed
    /// at the ends; before the first member, what the iteration began with.
    pub fn resume_point(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// The next member; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it is there too; this one keeps failing")]
    pub fn next(&mut self) -> Result<Option<Member>> {
        self.store.engine().check_open()?;
        let last = &mut self.last;
        self.progress.step(|rows| rows.next(last))
    }

    /// Up to `max_items` members, at least one; ends early once they reach `max_bytes`. Empty at
    /// the end.
    pub fn next_chunk(&mut self, max_items: usize, max_bytes: usize) -> Result<Vec<Member>> {
        chunk(max_items, max_bytes, Member::bytes, || MemberIter::next(self))
    }
}

impl Iterator for MemberIter {
    type Item = Result<Member>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = MemberIter::next(self);
        self.progress.tell(step)
    }
}

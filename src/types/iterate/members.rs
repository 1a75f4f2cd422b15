//! Members of a hash, set or sorted set in the order of their bytes, elements of a list in the
//! order of the list.

use std::sync::Arc;

use bytes::Bytes;

use super::{Progress, chunk};
use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::types::Db;
use crate::types::collection::Collection;
use crate::types::list::{Run, Side};
use crate::types::store::Store;
use crate::types::txn::{Tx, Walk, wrong_type};
use crate::types::zset::rows::stored_score;

/// Where a walk over members begins. The default is all, in order.
#[derive(Clone, Debug, Default)]
pub struct MemberRange {
    /// Goes on behind this one, whether or not it is still there: the bytes of a member, or for
    /// any type what [`MemberIter::resume_point`] returned, perhaps in an earlier life of the store.
    pub after: Option<Vec<u8>>,
    /// From the last to the first.
    pub reverse: bool,
    /// Leave the block cache as it is: for a walk that will not come again.
    pub no_fill: bool,
}

/// A member, with what is stored beside it.
#[derive(Clone, Debug, PartialEq)]
pub enum Member {
    /// Of a hash.
    Field {
        /// The field.
        field: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// Of a set.
    Member(Bytes),
    /// Of a sorted set.
    Scored {
        /// The member.
        member: Bytes,
        /// Its score.
        score: f64,
    },
    /// Of a list.
    Element {
        /// Where it stands, 0 being the first.
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
enum Rows {
    Members { walk: Walk, collection: Box<Collection>, kind: Type },
    Elements(Run),
}

/// The members of a key, one after the other. See [`Db::members`].
///
/// As an [`Iterator`] it hands a failure out once and then ends; [`MemberIter::next`] returns it
/// at every further call.
pub struct MemberIter {
    store: Arc<Store>,
    kind: Option<Type>,
    progress: Progress<Rows>,
    last: Option<Vec<u8>>,
}

impl std::fmt::Debug for MemberIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemberIter").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Db {
    /// The members of a hash, set, sorted set or list as they are at this moment; none if the key
    /// does not exist. What happens later does not show. Sorted sets come in the order of their
    /// members' bytes too: for that of their scores see `zrange`.
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
        self.read(|tx| {
            let kind = tx.kind(key)?;
            let rows = tx.sparing_cache(range.no_fill, |tx| match kind {
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
    fn members_behind(&self, key: &[u8], kind: Type, range: &MemberRange) -> Result<Option<Rows>> {
        let Some(collection) = self.collection(key, kind)? else { return Ok(None) };
        let walk = match range.after.as_deref() {
            None => collection.walk_from(self, b"", range.reverse)?,
            // Nothing comes before the empty member.
            Some(b"") if range.reverse => return Ok(None),
            Some(after) if range.reverse => collection.walk_from(self, after, true)?,
            // The smallest that is greater.
            Some(after) => collection.walk_from(self, &[after, b"\0"].concat(), false)?,
        };
        Ok(Some(Rows::Members { walk, collection: Box::new(collection), kind }))
    }

    fn elements_behind(&self, key: &[u8], range: &MemberRange) -> Result<Option<Rows>> {
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
        Ok(Some(Rows::Elements(list.walk(self, positions, from)?)))
    }
}

impl Rows {
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
    /// The type of the key; nothing if it does not exist.
    pub fn kind(&self) -> Option<Type> {
        self.kind
    }

    /// What [`MemberRange::after`] needs to go on from here: the bytes of the member that came last
    /// (of an element of a list its place, which stays the same when others are added or taken away
    /// at the ends); before the first, what this began with.
    pub fn resume_point(&self) -> Option<&[u8]> {
        self.last.as_deref()
    }

    /// The next member; nothing at the end.
    #[expect(clippy::should_implement_trait, reason = "it is there too; this one keeps failing")]
    pub fn next(&mut self) -> Result<Option<Member>> {
        self.store.engine().check_open()?;
        let last = &mut self.last;
        self.progress.step(|rows| rows.next(last))
    }

    /// Up to `max_items` members, at least one; the one that makes `max_bytes` full is the last.
    /// None at the end.
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

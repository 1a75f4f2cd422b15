//! The bits of a numeric cursor.
//!
//! ```text
//! bit  52       1: numbers of earlier versions are below
//! bit  51       0: the place is a prefix    1: the place is near a landmark
//! bits 48 - 50  growth: the page has 8^growth times the elements asked for
//! bits  0 - 47  prefix: 6 bytes, big-endian, zeros added
//!               near:   id of the landmark (29) | bytes cut off its end (3) | bytes added (16)
//! ```
//!
//! A place is a byte string that does not end with a zero byte, or a whole landmark.

const VALID: u64 = 1 << 52;
const NEAR: u64 = 1 << 51;
const GROWTH_AT: u32 = 48;
const PLACE: u64 = (1 << GROWTH_AT) - 1;
const PREFIX_BYTES: usize = 6;
const ID_BITS: u32 = 29;
const MOST_CUT: usize = 7;
const TAIL_BYTES: usize = 2;

/// The most steps of growth.
pub(super) const MOST_GROWTH: u32 = 7;
/// All ids of landmarks.
pub(super) const ID_MASK: u64 = (1 << ID_BITS) - 1;

/// A decoded number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) growth: u32,
    pub(super) place: Place,
}

/// Where a scan continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At these bytes, without the zeros at their end.
    Prefix([u8; PREFIX_BYTES]),
    /// At the landmark without its last `cut` bytes, with `tail` instead, without zeros at the end.
    /// With neither, at the landmark itself.
    Near { id: u32, cut: u8, tail: [u8; TAIL_BYTES] },
}

impl Place {
    /// The place of these bytes, if they are few.
    pub(super) fn prefix(bytes: &[u8]) -> Option<Self> {
        (!ends_with_zero(bytes)).then(|| padded(bytes)).flatten().map(Self::Prefix)
    }

    /// The place of the landmark itself.
    pub(super) fn at(id: u32) -> Self {
        Self::Near { id, cut: 0, tail: [0; TAIL_BYTES] }
    }

    /// The place of these bytes as seen from a landmark, if it is near.
    pub(super) fn near(bytes: &[u8], id: u32, landmark: &[u8]) -> Option<Self> {
        let shared = common(bytes, landmark);
        let cut = landmark.len() - shared;
        let tail = bytes.get(shared..).filter(|tail| !ends_with_zero(tail)).and_then(padded)?;
        let cut = u8::try_from(cut).ok().filter(|cut| usize::from(*cut) <= MOST_CUT)?;
        // A cut alone would shorten the landmark to what may end with a zero.
        (tail != [0; TAIL_BYTES]).then_some(Self::Near { id, cut, tail })
    }

    /// The bytes at which the scan continues; `landmark` finds a landmark by its id.
    pub(super) fn bytes(self, landmark: impl FnOnce(u32) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            Self::Prefix(bytes) => Some(without_zeros(&bytes).to_vec()),
            Self::Near { id, cut, tail } => {
                let mut bytes = landmark(id)?;
                bytes.truncate(bytes.len().checked_sub(usize::from(cut))?);
                bytes.extend_from_slice(without_zeros(&tail));
                Some(bytes)
            }
        }
    }
}

impl Number {
    pub(super) fn to_u64(self) -> u64 {
        let place = match self.place {
            Place::Prefix([a, b, c, d, e, f]) => u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
            Place::Near { id, cut, tail } => {
                let near = u64::from(id) << 19 | u64::from(cut) << 16;
                NEAR | near | u64::from(u16::from_be_bytes(tail))
            }
        };
        VALID | u64::from(self.growth.min(MOST_GROWTH)) << GROWTH_AT | place
    }

    /// `None` for a number that was never given.
    pub(super) fn from_u64(number: u64) -> Option<Self> {
        if number >> 52 != 1 {
            return None;
        }
        let [_, growth, a, b, c, d, e, f] = number.to_be_bytes();
        let growth = u32::from(growth) & MOST_GROWTH;
        if number & NEAR == 0 {
            return Some(Self { growth, place: Place::Prefix([a, b, c, d, e, f]) });
        }
        let id = u32::try_from((number & PLACE) >> 19).ok()?;
        let cut = d & 7;
        Some(Self { growth, place: Place::Near { id, cut, tail: [e, f] } })
    }
}

/// The number of bytes that both begin with.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn ends_with_zero(bytes: &[u8]) -> bool {
    bytes.last() == Some(&0)
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

/// The bytes with zeros added, if they are not more than `N`.
fn padded<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut padded = [0; N];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_stands_as_drawn() {
        let prefix = Number { growth: 3, place: Place::prefix(b"ab").unwrap() };
        assert_eq!(prefix.to_u64(), 0x13_6162_0000_0000);
        let place = Place::near(b"user:1237", 5, b"user:123456").unwrap();
        assert_eq!(place, Place::Near { id: 5, cut: 3, tail: *b"7\0" });
        let near = Number { growth: 0, place };
        assert_eq!(near.to_u64(), 0x18_0000_0000_0000 | 5 << 19 | 3 << 16 | 0x3700);
        for number in [prefix, near] {
            assert_eq!(Number::from_u64(number.to_u64()), Some(number));
        }
        for forged in [0, 1, (1 << 52) - 1, 1 << 53, u64::MAX] {
            assert_eq!(Number::from_u64(forged), None);
        }
    }

    #[test]
    fn what_a_place_cannot_hold_has_none() {
        assert_eq!(Place::prefix(b"1234567"), None);
        assert_eq!(Place::prefix(b"a\0"), None, "read back it would be another string");
        assert_eq!(Place::near(b"abc", 1, b"a"), Some(Place::Near { id: 1, cut: 0, tail: *b"bc" }));
        assert_eq!(Place::near(b"abcd", 1, b"a"), None);
        assert_eq!(Place::near(b"ab", 1, b"a12345678"), None);
    }

    proptest! {
        #[test]
        fn every_number_below_its_bound_reads_back(bits in 0u64..1 << 52) {
            let number = bits | VALID;
            prop_assert_eq!(Number::from_u64(number).unwrap().to_u64(), number);
        }

        #[test]
        fn a_place_leads_back_to_its_bytes(
            bytes in prop::collection::vec(0u8..3, 0..12), landmark in prop::collection::vec(0u8..3, 0..12),
        ) {
            let find = |_| Some(landmark.clone());
            if let Some(place) = Place::prefix(&bytes) {
                prop_assert_eq!(place.bytes(find), Some(bytes.clone()));
            }
            if let Some(place) = Place::near(&bytes, 9, &landmark) {
                prop_assert_eq!(place.bytes(find), Some(bytes));
            }
            prop_assert_eq!(Place::at(9).bytes(find), Some(landmark));
        }
    }
}

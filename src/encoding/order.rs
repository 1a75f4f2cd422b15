//! Numbers as bytes that sort like the numbers.

/// Encodes a score as eight bytes that sort like scores: negative ones with all bits inverted,
/// others with the sign bit set. -0.0 is stored as +0.0, because they are one score.
pub fn score_bytes(score: f64) -> [u8; 8] {
    debug_assert!(!score.is_nan());
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    ordered.to_be_bytes()
}

/// Decodes a score that `score_bytes` encoded.
pub fn score_from_bytes(bytes: [u8; 8]) -> f64 {
    let ordered = u64::from_be_bytes(bytes);
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scores_sort_as_their_bytes(a in prop::num::f64::ANY, b in prop::num::f64::ANY) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            let expected = a.partial_cmp(&b).unwrap();
            prop_assert_eq!(score_bytes(a).cmp(&score_bytes(b)), expected);
            prop_assert_eq!(score_from_bytes(score_bytes(a)), a);
        }
    }

    #[test]
    fn both_zeros_are_one_score() {
        assert_eq!(score_bytes(-0.0), score_bytes(0.0));
        assert!(score_bytes(f64::NEG_INFINITY) < score_bytes(f64::MIN));
        assert!(score_bytes(f64::INFINITY) > score_bytes(f64::MAX));
    }
}

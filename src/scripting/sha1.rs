//! SHA-1, by which scripts are named.

/// The digest of `bytes` in hexadecimal digits.
pub(super) fn sha1_hex(bytes: &[u8]) -> String {
    let mut state = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
    let mut blocks = bytes.chunks_exact(64);
    for block in blocks.by_ref() {
        add_block(&mut state, block);
    }
    // The rest, a one bit, zeros, and the length in bits.
    let mut last = blocks.remainder().to_vec();
    last.push(0x80);
    while last.len() % 64 != 56 {
        last.push(0);
    }
    last.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_be_bytes());
    last.chunks_exact(64).for_each(|block| add_block(&mut state, block));
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn add_block(state: &mut [u32; 5], block: &[u8]) {
    let mut schedule = Vec::with_capacity(80);
    for word in block.chunks_exact(4) {
        schedule.push(word.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)));
    }
    while schedule.len() < 80 {
        let back = |distance: usize| schedule.iter().rev().nth(distance - 1).copied().unwrap_or(0);
        let word: u32 = back(3) ^ back(8) ^ back(14) ^ back(16);
        schedule.push(word.rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in schedule.iter().enumerate() {
        let (mixed, constant) = match round {
            0..20 => (b & c | !b & d, 0x5A82_7999),
            20..40 => (b ^ c ^ d, 0x6ED9_EBA1),
            40..60 => (b & c | b & d | c & d, 0x8F1B_BCDC),
            _ => (b ^ c ^ d, 0xCA62_C1D6_u32),
        };
        let sum = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e);
        let next = sum.wrapping_add(constant).wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of FIPS 180, and lengths around the ends of a block.
    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(sha1_hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        let long = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(sha1_hex(long.as_bytes()), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(sha1_hex(&[b'a'; 1_000_000]), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}

//! Keys that an unseeded hash maps to one value, and others of the same form that it does not.

/// XXH3-64 without a seed multiplies the last 16 bytes of these, of which the first half cancels a
/// constant of the hash: whatever the second half is, the product is zero.
pub(crate) fn colliding(i: u64) -> Vec<u8> {
    let cancels = [0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb];
    [b"twelve bytes".as_slice(), &cancels, &i.to_be_bytes()].concat()
}

pub(crate) fn harmless(i: u64) -> Vec<u8> {
    [b"twelve bytes".as_slice(), b"harmless", &i.to_be_bytes()].concat()
}

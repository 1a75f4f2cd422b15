//! The checksum of dump files: CRC-64 with the polynomial of Jones, reflected, no inversion.

/// The polynomial 0xad93d23594c935a9 with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

const TABLE: [u64; 256] = table();

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which checks it")]
const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// Continues the checksum `crc` with `bytes`.
pub fn update(mut crc: u64, bytes: &[u8]) -> u64 {
    for byte in bytes {
        let [low, ..] = crc.to_le_bytes();
        crc = TABLE.get(usize::from(low ^ byte)).copied().unwrap_or(0) ^ (crc >> 8);
    }
    crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_of_the_polynomial() {
        // As published for "CRC-64/REDIS".
        assert_eq!(super::update(0, b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}

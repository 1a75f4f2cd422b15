//! Entry points for fuzzing of the program's parsers. Each takes any bytes, and must neither panic
//! nor allocate more than a multiple of them. Compiled into tests and into tests/fuzz.

use crate::rdb::RdbSource;
use crate::transfer::Source as _;
use lsmkv::resp::{Limits, Parsed, RequestReader};

/// All requests in the bytes, which arrive at once and in pieces: both must be read alike.
#[allow(unreachable_pub, reason = "the fuzz targets use it from another package")]
pub fn resp_request(data: &[u8]) {
    for unauthenticated in [false, true] {
        let limits = Limits { bulk: 1 << 20, arguments: 1 << 16, unauthenticated };
        let at_once = requests(data, data.len().max(1), &limits);
        let first = data.first().map_or(1, |byte| usize::from(*byte % 7) + 1);
        assert_eq!(at_once, requests(data, first, &limits), "pieces do not matter");
    }
}

/// The arguments of every request, and whether an error followed.
fn requests(data: &[u8], piece: usize, limits: &Limits) -> (Vec<Vec<Vec<u8>>>, bool) {
    let (mut found, mut begin, mut arrived) = (Vec::new(), 0, 0);
    let mut reader = RequestReader::default();
    while arrived < data.len() {
        arrived = data.len().min(arrived + piece);
        while let Some(bytes) = data.get(begin..arrived).filter(|bytes| !bytes.is_empty()) {
            match reader.read(bytes, limits) {
                Ok(Parsed::Incomplete) => break,
                Ok(Parsed::Request(length)) => {
                    assert!(length > 0 && length <= bytes.len(), "a request is within the bytes");
                    found.push(reader.arguments(bytes).map(<[u8]>::to_vec).collect());
                    begin += length;
                }
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

/// A dump of Redis, read to its end or first error.
#[allow(unreachable_pub, reason = "the fuzz targets use it from another package")]
pub fn rdb_file(data: &[u8]) {
    let Ok(mut source) = RdbSource::new(data, 1_700_000_000_000) else { return };
    while let Ok(Some(_)) = source.next() {}
    let _ = source.skipped();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs every file of a corpus.
    fn replay(target: &str, run: fn(&[u8])) {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let dir = root.join("../tests/fuzz/corpus").join(target);
        let mut files = 0;
        for entry in std::fs::read_dir(&dir).unwrap() {
            run(&std::fs::read(entry.unwrap().path()).unwrap());
            files += 1;
        }
        assert!(files > 0, "{} is empty", dir.display());
    }

    #[test]
    fn every_corpus_of_the_program_runs() {
        replay("resp_request", resp_request);
        replay("rdb_file", rdb_file);
    }
}

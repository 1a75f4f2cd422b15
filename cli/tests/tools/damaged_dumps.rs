//! Damaged dump files of a real server: a clear error, and no memory for false lengths.

use std::process::{Command, Stdio};

use lsmkv::io::splitmix::SplitMix64;

use super::redis::Redis;
use super::support::{Run, Scratch, ok};

/// The address space of an import in KiB: enough for a sound dump, too little for a false length of
/// 4 GiB.
const ADDRESSES: u64 = 1 << 20;

/// Imports a dump with a limited address space.
fn import(store: &str, file: &str) -> Run {
    let limited = format!("ulimit -v {ADDRESSES}; exec \"$@\"");
    let options = ["--option", "memory_budget=16MiB", "--option", "background_threads=1"];
    let output = Command::new("sh")
        .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_lsmkv"), "import", store])
        .args(["--rdb", file, "--quiet"])
        .args(options)
        .stdin(Stdio::null())
        .output();
    output.unwrap().into()
}

/// Flips a bit, cuts, or inserts a length that is too large.
fn damage(bytes: &mut Vec<u8>, random: &mut SplitMix64) {
    const LENGTHS: [&[u8]; 4] = [
        &[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x81, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff],
        &[0x80, 0xff, 0xff, 0xff, 0xff],
        &[0x80, 0x1f, 0xff, 0xff, 0xff],
    ];
    // Behind the header of nine bytes.
    let place = 9 + random.below(bytes.len() as u64 - 9) as usize;
    match random.below(3) {
        0 => bytes[place] ^= 1 << random.below(8),
        1 => bytes.truncate(place),
        _ => {
            let length = LENGTHS[random.below(4) as usize];
            bytes.splice(place..=place, length.iter().copied());
        }
    }
}

#[test]
fn damage_in_a_real_dump_is_told_and_takes_no_memory() {
    let scratch = Scratch::new();
    let test = "tools::damaged_dumps";
    let Some(redis) = Redis::start(&scratch, "a", test) else { return };
    redis.feed(
        b"SET s value\nSET n 12345\nRPUSH l a 1 -1 70000\nSADD i 1 2 3\nSADD t a b c\n\
          HSET h f v g 2\nZADD z 1 a 2.5 b\nXADD x 1-1 f v\nPEXPIREAT s 4102444800123\n",
        false,
    );
    redis.text(&["SAVE"]);
    let (good, file) = (std::fs::read(redis.dir.join("dump.rdb")).unwrap(), scratch.arg("file"));
    std::fs::write(&file, &good).unwrap();
    let whole = import(&scratch.arg("whole"), &file);
    assert_eq!(whole.code, 0, "the limit is too low for a sound dump: {}", whole.err);
    for seed in 0..100 {
        let mut bytes = good.clone();
        damage(&mut bytes, &mut SplitMix64::new(seed));
        std::fs::write(&file, &bytes).unwrap();
        // The checksum of the file catches damage that the parts do not reveal.
        let run = import(&scratch.arg("store"), &file);
        assert_eq!(run.code, 1, "seed {seed}: {}{}", run.out, run.err);
        assert!(run.err.contains("damaged"), "seed {seed}: {}", run.err);
    }
    assert_eq!(ok(&["check", &scratch.arg("store"), "--quiet"]), "no problems\n");
}

//! Damaged stores: `check` finds the damage, and `repair` restores everything else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lsmkv::{Db, Options};

use super::support::{Scratch, contents, fill, ok, run};

/// The lines of a dump by key.
fn by_key(dump: &str) -> BTreeMap<String, Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in dump.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let key = format!("{} {}", value["db"], value["key"]);
        keys.entry(key).or_default().push(line.to_owned());
    }
    keys
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|path| path.to_str().unwrap().contains(ending));
    paths.sort();
    paths
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_store_is_repaired_into_an_equal_one() {
    let scratch = Scratch::new();
    fill(&scratch.path("store"));
    let (store, out) = (scratch.arg("store"), scratch.arg("out"));
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    let report = ok(&["repair", &store, &out, "--quiet"]);
    assert!(report.contains("nothing was lost"), "{report}");
    assert_eq!(contents(&out), contents(&store));
    assert!(!scratch.path("out.salvage").exists());
    assert_eq!(run(&["repair", &store, &out]).code, 2, "it wrote over a store");
}

#[test]
fn a_damaged_block_is_listed_and_costs_only_keys_near_it() {
    for place in [1000, 9000, 20_000] {
        let scratch = Scratch::new();
        fill(&scratch.path("store"));
        let (store, out) = (scratch.arg("store"), scratch.arg("out"));
        let expected = by_key(&contents(&store));
        // The largest table holds members of collections.
        let tables = files(&scratch.path("store"), ".table");
        let table =
            tables.iter().max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
        flip(table, place);
        let check = run(&["check", &store, "--quiet"]);
        assert_eq!(check.code, 1);
        assert!(check.out.contains(table.file_name().unwrap().to_str().unwrap()), "{}", check.out);
        let repair = run(&["repair", &store, &out, "--quiet"]);
        assert_eq!(repair.code, 1, "{}{}", repair.out, repair.err);
        assert!(repair.out.contains("members lost"), "{}", repair.out);
        assert_eq!(ok(&["check", &out, "--quiet"]), "no problems\n");
        let found = by_key(&contents(&out));
        let differ: Vec<_> =
            expected.iter().filter(|(key, lines)| found.get(*key) != Some(*lines)).collect();
        assert!(!differ.is_empty() && differ.len() <= 2, "{differ:?}");
        assert!(found.keys().all(|key| expected.contains_key(key)), "a key came from nowhere");
    }
}

#[test]
fn a_damaged_chunk_of_a_large_string_costs_that_chunk() {
    let scratch = Scratch::new();
    let value = vec![b'x'; 1 << 20];
    let db = Db::open(scratch.path("store"), Options::default()).unwrap();
    db.set(b"large", &value).unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    let (store, out) = (scratch.arg("store"), scratch.arg("out"));
    let tables = files(&scratch.path("store"), ".table");
    let table = tables.iter().max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    flip(table, 500_000);
    assert_eq!(run(&["check", &store, "--quiet"]).code, 1);
    let repair = run(&["repair", &store, &out, "--quiet"]);
    assert_eq!(repair.code, 1, "{}{}", repair.out, repair.err);
    let text = "key \"large\": 1 chunks lost, zeros are in their place";
    assert!(repair.out.contains(text), "{}", repair.out);
    assert_eq!(ok(&["check", &out, "--quiet"]), "no problems\n");
    let repaired = Db::open(scratch.path("out"), Options::default()).unwrap();
    let found = repaired.get(b"large").unwrap().unwrap();
    let zeros = found.iter().filter(|byte| **byte == 0).count();
    assert_eq!((found.len(), zeros), (value.len(), 8 << 10));
}

#[test]
fn a_store_without_its_manifest_comes_back() {
    let scratch = Scratch::new();
    fill(&scratch.path("store"));
    let (store, out) = (scratch.arg("store"), scratch.arg("out"));
    let expected = contents(&store);
    for path in files(&scratch.path("store"), "MANIFEST") {
        std::fs::remove_file(path).unwrap();
    }
    let check = run(&["check", &store, "--quiet"]);
    assert_eq!(check.code, 1);
    assert!(check.out.contains("MANIFEST"), "{}", check.out);
    assert_eq!(run(&["repair", &store, &out, "--quiet"]).code, 1);
    assert_eq!(contents(&out), expected);
    assert_eq!(ok(&["check", &out, "--quiet"]), "no problems\n");
}

#[test]
fn damage_in_the_log_of_a_store_that_was_not_closed_costs_what_it_hit() {
    let scratch = Scratch::new();
    let dir = scratch.path("store");
    let db = Db::open(&dir, Options::default()).unwrap();
    for n in 0..1000 {
        db.set(format!("key:{n:04}").as_bytes(), b"some value").unwrap();
    }
    db.sync().unwrap();
    drop(db);
    let log = files(&dir, ".log").into_iter().next().unwrap();
    let bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(8).position(|eight| eight == b"key:0500").unwrap();
    flip(&log, at);
    let (store, out) = (scratch.arg("store"), scratch.arg("out"));
    assert_eq!(run(&["check", &store, "--quiet"]).code, 1);
    let repair = run(&["repair", &store, &out, "--quiet"]);
    assert_eq!(repair.code, 1, "{}", repair.err);
    assert!(repair.out.contains(".log at"), "{}", repair.out);
    let found = contents(&out);
    assert_eq!(found.lines().count(), 999);
    assert!(!found.contains("key:0500"));
}

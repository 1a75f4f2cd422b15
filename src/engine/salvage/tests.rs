//! Stores are damaged in one place; all that was elsewhere must come back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::engine::batch::Batch;
use crate::engine::files::FileKind;
use crate::engine::iter::IterOptions;
use crate::engine::{Engine, MemFs, WriteOptions};
use crate::options::Options;

const DIR: &str = "/store";
const OUT: &str = "/out";

struct Quiet;

impl Observer for Quiet {
    fn tree_of(&self, properties: &Properties) -> TreeId {
        // The second tree's keys begin with a `b`.
        TreeId(u8::from(properties.smallest.starts_with(b"b")))
    }

    fn progress(&mut self, done: u64, total: u64) -> Result<()> {
        assert!(done <= total);
        Ok(())
    }
}

fn config() -> EngineConfig {
    let options = Options { table_bytes: 32 << 10, block_bytes: 1024, ..Options::default() };
    EngineConfig { options, trees: vec![TreeConfig::named("a"), TreeConfig::named("b")] }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(tree: u8, n: u32) -> Vec<u8> {
    format!("{}{n:05}", if tree == 0 { 'a' } else { 'b' }).into_bytes()
}

/// A store of two trees: tables in several levels with old versions and deletes, then the log.
fn store(fs: &Arc<dyn FileSystem>, closed: bool) -> [Model; 2] {
    let engine = Engine::open(Arc::clone(fs), Path::new(DIR), config()).unwrap();
    let mut models = [Model::new(), Model::new()];
    for round in 0..4u32 {
        for n in 0..1500 {
            let mut batch = Batch::new();
            for tree in 0..2u8 {
                let key = key(tree, (n * 7 + round) % 1600);
                if n % 11 == round {
                    batch.delete(TreeId(tree), &key);
                    models[tree as usize].remove(&key);
                } else {
                    let value = format!("value {n} of round {round}").into_bytes();
                    batch.put(TreeId(tree), &key, &value);
                    models[tree as usize].insert(key, value);
                }
            }
            engine.commit(&mut batch, WriteOptions::default()).unwrap();
        }
        match round {
            0 | 1 => engine.flush().unwrap(),
            2 => engine.compact().unwrap(),
            _ => {}
        }
    }
    engine.sync().unwrap();
    if closed {
        engine.close().unwrap();
    }
    models
}

fn rescue(fs: &Arc<dyn FileSystem>) -> (Salvaged, [Model; 2]) {
    let report = salvage(fs, Path::new(DIR), Path::new(OUT), &config(), &mut Quiet).unwrap();
    let engine = Engine::open(Arc::clone(fs), Path::new(OUT), config()).unwrap();
    engine.verify().unwrap();
    let mut models = [Model::new(), Model::new()];
    for tree in 0..2u8 {
        let mut iter = engine.reader().unwrap().iter(TreeId(tree), IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        while iter.valid() {
            models[tree as usize].insert(iter.key().to_vec(), iter.value().to_vec());
            iter.next().unwrap();
        }
    }
    engine.close().unwrap();
    (report, models)
}

fn files(fs: &Arc<dyn FileSystem>, wanted: impl Fn(FileKind) -> bool) -> Vec<PathBuf> {
    let mut names = fs.list(Path::new(DIR)).unwrap();
    names.retain(|name| FileKind::parse(name).is_some_and(&wanted));
    names.sort();
    names.into_iter().map(|name| Path::new(DIR).join(name)).collect()
}

fn flip(fs: &Arc<dyn FileSystem>, path: &Path, offset: u64, bytes: usize) {
    let file = fs.open_write(path).unwrap();
    let mut piece = vec![0; bytes];
    file.read_exact_at(&mut piece, offset).unwrap();
    piece.iter_mut().for_each(|byte| *byte ^= 0x5a);
    file.write_all_at(&piece, offset).unwrap();
}

fn fs() -> Arc<dyn FileSystem> {
    Arc::new(MemFs::new())
}

#[test]
fn a_sound_store_comes_back_whole_from_tables_and_from_the_log() {
    for closed in [true, false] {
        let fs = fs();
        let expected = store(&fs, closed);
        let (report, found) = rescue(&fs);
        assert_eq!(found, expected);
        assert_eq!(report.losses, []);
        assert_eq!(report.log_records > 0, !closed);
        assert_eq!(report.keys as usize, expected[0].len() + expected[1].len());
    }
}

#[test]
fn a_damaged_block_costs_only_keys_between_its_neighbours() {
    let fs = fs();
    let expected = store(&fs, true);
    let tables = files(&fs, |kind| matches!(kind, FileKind::Table(_)));
    // The newest one: what it hides in older ones may come back instead.
    let table = tables.last().unwrap();
    flip(&fs, table, 3000, 10);
    let (report, found) = rescue(&fs);
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    let loss = &report.losses[0];
    assert_eq!(loss.file, *table);
    assert!(loss.offset <= 3000 && loss.offset + loss.bytes > 3000, "{loss:?}");
    let tree = loss.tree.unwrap().index();
    assert_eq!(found[1 - tree], expected[1 - tree]);
    let (after, before) = (loss.between.0.clone().unwrap(), loss.between.1.clone().unwrap());
    let mut lost = 0;
    for (key, value) in &expected[tree] {
        if found[tree].get(key) != Some(value) {
            lost += 1;
            assert!(*key > after && *key <= before, "{key:?} is not between {after:?} {before:?}");
        }
    }
    assert!(lost > 0 && lost < 40, "{lost}");
}

#[test]
fn without_a_footer_or_an_index_blocks_are_found_by_their_checksums() {
    for from_end in [8, 400] {
        let fs = fs();
        let expected = store(&fs, true);
        for table in files(&fs, |kind| matches!(kind, FileKind::Table(_))) {
            let size = fs.open(&table).unwrap().len().unwrap();
            flip(&fs, &table, size - from_end, 4);
        }
        let (report, found) = rescue(&fs);
        assert_eq!(found, expected);
        assert!(!report.losses.is_empty());
    }
}

#[test]
fn without_current_or_manifest_the_tables_and_the_log_still_speak() {
    for victim in [FileKind::Current, FileKind::Manifest(0)] {
        for closed in [true, false] {
            let fs = fs();
            let expected = store(&fs, closed);
            let same =
                |kind: FileKind| std::mem::discriminant(&kind) == std::mem::discriminant(&victim);
            for path in files(&fs, same) {
                fs.remove(&path).unwrap();
            }
            let (report, found) = rescue(&fs);
            assert!(!report.losses.is_empty());
            for tree in 0..2 {
                for (key, value) in &expected[tree] {
                    assert_eq!(found[tree].get(key), Some(value), "{victim:?} {key:?}");
                }
            }
        }
    }
}

#[test]
fn damage_in_the_log_costs_the_records_it_hit() {
    let fs = fs();
    let expected = store(&fs, false);
    let segments = files(&fs, |kind| matches!(kind, FileKind::Log(_)));
    // Among the last records before the zeros at the end; all of it was synced.
    let mut bytes = vec![0; fs.open(&segments[0]).unwrap().len().unwrap() as usize];
    fs.open(&segments[0]).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    flip(&fs, &segments[0], end - 20_000, 4);
    let refused = Engine::open(Arc::clone(&fs), Path::new(DIR), config());
    assert!(refused.is_err());
    let (report, found) = rescue(&fs);
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert_eq!(report.losses[0].file, segments[0]);
    for tree in 0..2 {
        let keys = || expected[tree].keys().chain(found[tree].keys());
        let wrong = keys().filter(|key| found[tree].get(*key) != expected[tree].get(*key)).count();
        assert!(wrong <= 4, "{wrong} keys differ");
    }
}

#[test]
fn a_failed_salvage_leaves_no_directory_and_an_open_store_is_refused() {
    struct Impatient;
    impl Observer for Impatient {
        fn tree_of(&self, _: &Properties) -> TreeId {
            TreeId(0)
        }
        fn progress(&mut self, _: u64, _: u64) -> Result<()> {
            Err(Error::new(ErrorKind::Closed, "stopped"))
        }
    }
    let fs = fs();
    store(&fs, true);
    let stopped = salvage(&fs, Path::new(DIR), Path::new(OUT), &config(), &mut Impatient);
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Closed);
    assert!(!fs.exists(Path::new(OUT)).unwrap());
    let engine = Engine::open(Arc::clone(&fs), Path::new(DIR), config()).unwrap();
    let busy = salvage(&fs, Path::new(DIR), Path::new(OUT), &config(), &mut Quiet);
    assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy);
    engine.close().unwrap();
    rescue(&fs);
}

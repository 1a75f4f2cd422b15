//! Reads the log of a damaged store: every valid record that counts, also after damage.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;

use super::catalog::Catalog;
use super::{Loss, Salvaged};
use crate::engine::batch::{TreeId, decode};
use crate::engine::entry::{Tag, compare};
use crate::engine::files::{FileKind, FileNumber, log_path};
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::reader::RecordReader;
use crate::engine::wal::record::RecordKind;
use crate::engine::wal::scan;
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// A write found in the log.
#[derive(Clone, Debug)]
pub(super) struct LoggedWrite {
    pub(super) key: Bytes,
    pub(super) tag: Tag,
    pub(super) value: Bytes,
}

type Operations = HashMap<TreeId, Vec<LoggedWrite>>;

/// Reads the writes of the log, by tree, in internal order.
pub(super) fn read(
    fs: &dyn FileSystem,
    dir: &Path,
    catalog: &Catalog,
    report: &mut Salvaged,
) -> Result<Operations> {
    let names = fs.list(dir).map_err(|e| Error::io("list", dir, &e))?;
    let mut numbers: Vec<FileNumber> = names
        .iter()
        .filter_map(|name| match FileKind::parse(name) {
            Some(FileKind::Log(number)) if number >= catalog.log.start.segment => Some(number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    let mut operations = Operations::new();
    for number in numbers {
        if let Err(error) = read_segment(fs, dir, number, catalog, report, &mut operations) {
            report.losses.push(Loss::of_file(&log_path(dir, number), error.message()));
        }
    }
    for list in operations.values_mut() {
        // The sort is stable and later operations of a batch win, so the last of equals must come
        // first.
        list.reverse();
        list.sort_by(|a, b| compare(&a.key, a.tag, &b.key, b.tag));
    }
    Ok(operations)
}

/// The range of bytes of a segment that count.
fn bounds(catalog: &Catalog, number: FileNumber) -> (u64, u64) {
    let start = catalog.log.start;
    let from = if number == start.segment { start.offset } else { 0 };
    let cut = catalog.log.cuts.iter().find(|cut| cut.0 == number);
    // If the manifest is incomplete, a cut in it may be outdated.
    let until = cut.filter(|_| catalog.complete).map_or(u64::MAX, |cut| cut.1);
    (from.max(FILE_HEADER_BYTES), until)
}

fn read_segment(
    fs: &dyn FileSystem,
    dir: &Path,
    number: FileNumber,
    catalog: &Catalog,
    report: &mut Salvaged,
    operations: &mut Operations,
) -> Result<()> {
    let path = log_path(dir, number);
    let (from, until) = bounds(catalog, number);
    let mut reader = RecordReader::open(fs, path.clone(), number)?;
    let mut hole: Option<(u64, u64)> = None;
    let mut holes = Vec::new();
    scan::for_each_record(&mut reader, from, |reader, at, record| {
        if at >= until {
            return Ok(());
        }
        let Some(record) = record else {
            let start = hole.map_or(at, |hole| hole.0);
            hole = Some((start, at + 8));
            return Ok(());
        };
        holes.extend(hole.take());
        if record.kind == RecordKind::Data {
            take_batch(reader.payload(record)?, operations)?;
            report.log_records += 1;
        }
        Ok(())
    })?;
    holes.extend(hole);
    for (start, end) in holes {
        let detail = "records of the log do not match their checksums";
        let loss = Loss::of_file(&path, detail);
        report.losses.push(Loss { offset: start, bytes: end - start, ..loss });
    }
    Ok(())
}

fn take_batch(payload: &[u8], operations: &mut Operations) -> Result<()> {
    let Some((sequence, batch)) = decode(payload) else { return Ok(()) };
    for operation in batch {
        let operation = operation?;
        operations.entry(operation.tree).or_default().push(LoggedWrite {
            key: Bytes::copy_from_slice(operation.key),
            tag: Tag::new(sequence, operation.kind),
            value: Bytes::copy_from_slice(operation.value),
        });
    }
    Ok(())
}

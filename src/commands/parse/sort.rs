//! Parsers of SORT and SORT_RO.

use crate::commands::args::{Args, syntax_error};
use crate::commands::sink::ReplySink;
use crate::commands::write_to::WriteTo;
use crate::error::Result;
use crate::txn::Tx;
use crate::types::{SortBy, SortOptions};

/// Parses the options, and the destination if the command may store.
fn options<'a>(
    args: &mut Args<'a>,
    with_store: bool,
) -> Result<(SortOptions<'a>, Option<&'a [u8]>)> {
    let (mut options, mut to) = (SortOptions::default(), None);
    while !args.is_empty() {
        if args.take_word("ASC") {
            options.descending = false;
        } else if args.take_word("DESC") {
            options.descending = true;
        } else if args.take_word("ALPHA") {
            options.alpha = true;
        } else if args.len() > 2 && args.take_word("LIMIT") {
            options.limit = (args.integer()?, args.integer()?);
        } else if with_store && args.take_word("STORE") {
            to = Some(args.bytes()?);
        } else if args.take_word("BY") {
            let pattern = args.bytes()?;
            // A BY pattern without `*` skips sorting, and a later BY does not replace it.
            if !matches!(options.by, SortBy::Pattern(first) if !first.contains(&b'*')) {
                options.by = SortBy::Pattern(pattern);
            }
        } else if args.take_word("GET") {
            options.get.push(args.bytes()?);
        } else {
            return Err(syntax_error());
        }
    }
    Ok((options, to))
}

pub(crate) fn sort(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let key = args.bytes()?;
    let (options, to) = options(&mut args, true)?;
    match to {
        Some(to) => tx.sort_store(key, &options, to)?.write_to(sink),
        None => tx.sort(key, &options)?.write_to(sink),
    }
    Ok(())
}

pub(crate) fn sort_ro(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let key = args.bytes()?;
    let (options, _) = options(&mut args, false)?;
    tx.sort(key, &options)?.write_to(sink);
    Ok(())
}

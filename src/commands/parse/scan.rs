//! Parsers of the SCAN commands. Cursors are numbers here: see `keyspace::scan_cursors`.

use bytes::Bytes;

use super::key::type_name;
use crate::commands::args::{Args, syntax_error, until_zero};
use crate::commands::sink::{Head, ReplySink};
use crate::commands::write_to::WriteTo;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::format_double;
use crate::types::scores::stored_score;
use crate::types::{ScanOptions, Type};

/// Reads a cursor like C's `strtoul`, which accepts a sign and text without digits.
fn cursor_number(text: &[u8]) -> Result<u64> {
    let invalid = || Error::new(ErrorKind::Invalid, "ERR invalid cursor");
    let text = until_zero(text);
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    if text.is_empty() {
        return Ok(0);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
    if digits.starts_with('+') {
        return Err(invalid());
    }
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    Ok(if text.starts_with(b"-") { number.wrapping_neg() } else { number })
}

/// The type that SCAN filters by.
enum Wanted {
    Known(Option<Type>),
    /// A type that no key has.
    Unknown,
}

fn wanted(name: &[u8]) -> Wanted {
    let all = [Type::String, Type::Hash, Type::List, Type::Set, Type::ZSet];
    let is = |kind: &Type| name.eq_ignore_ascii_case(type_name(*kind).as_bytes());
    all.into_iter().find(is).map_or(Wanted::Unknown, |kind| Wanted::Known(Some(kind)))
}

/// Parses MATCH and COUNT, and TYPE if `with_type`.
fn options<'a>(args: &mut Args<'a>, with_type: bool) -> Result<(ScanOptions<'a>, Wanted)> {
    let (mut options, mut kind) = (ScanOptions::default(), Wanted::Known(None));
    while !args.is_empty() {
        if args.take_word("COUNT") {
            let count = args.integer()?;
            options.count =
                u64::try_from(count).ok().filter(|n| *n > 0).ok_or_else(syntax_error)?;
        } else if args.take_word("MATCH") {
            options.pattern = Some(args.bytes()?);
        } else if with_type && args.take_word("TYPE") {
            kind = wanted(args.bytes()?);
        } else {
            return Err(syntax_error());
        }
    }
    Ok((options, kind))
}

/// Writes the next cursor, which begins the reply and is known after what was found.
fn write_cursor(number: u64, sink: &mut dyn ReplySink) {
    sink.head(Head::Array, 2);
    sink.bulk(number.to_string().as_bytes());
}

fn write_nothing(sink: &mut dyn ReplySink) {
    write_cursor(0, sink);
    sink.head(Head::Array, 0);
}

pub(crate) fn scan(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let number = cursor_number(args.bytes()?)?;
    let (mut options, kind) = options(&mut args, true)?;
    let Wanted::Known(kind) = kind else {
        write_nothing(sink);
        return Ok(());
    };
    options.kind = kind;
    let (next, found) = tx.scan_numbered(number, &options)?;
    write_cursor(next, sink);
    found.write_to(sink);
    Ok(())
}

/// Scans a collection; `write` writes the `N` parts of a member and what is stored beside it.
/// Redis looks up the key first and does not read the options of a missing key.
fn scan_key<const N: usize>(
    tx: &Tx<'_>,
    mut args: Args<'_>,
    kind: Type,
    sink: &mut dyn ReplySink,
    write: impl Fn(&mut dyn ReplySink, Bytes, Bytes) -> Result<()>,
) -> Result<()> {
    let (key, number) = (args.bytes()?, cursor_number(args.bytes()?)?);
    if tx.typed(key, kind)?.is_none() {
        write_nothing(sink);
        return Ok(());
    }
    let (options, _) = options(&mut args, false)?;
    let (next, found) = tx.scan_members_numbered(key, kind, number, &options)?;
    write_cursor(next, sink);
    sink.head(Head::Array, N * found.len());
    found.into_iter().try_for_each(|(member, beside)| write(sink, member, beside))
}

pub(crate) fn hscan(tx: &mut Tx<'_>, args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    scan_key::<2>(tx, args, Type::Hash, sink, |sink, field, value| {
        sink.shared_bulk(field);
        sink.shared_bulk(value);
        Ok(())
    })
}

pub(crate) fn sscan(tx: &mut Tx<'_>, args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    scan_key::<1>(tx, args, Type::Set, sink, |sink, member, _| {
        sink.shared_bulk(member);
        Ok(())
    })
}

pub(crate) fn zscan(tx: &mut Tx<'_>, args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    scan_key::<2>(tx, args, Type::ZSet, sink, |sink, member, score| {
        sink.shared_bulk(member);
        sink.bulk(format_double(stored_score(&score)?).as_bytes());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use crate::commands::reply::Reply;
    use crate::options::Options;
    use crate::txn::Db;

    fn call(db: &Db, args: &[&str]) -> Reply {
        let argv: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        db.command(&argv).unwrap()
    }

    /// Returns the next cursor and the number of elements.
    fn scan(db: &Db, args: &[&str]) -> (String, usize) {
        match call(db, args) {
            Reply::Array(parts) => match &parts[..] {
                [Reply::Bulk(cursor), Reply::Array(found)] => {
                    (String::from_utf8(cursor.to_vec()).unwrap(), found.len())
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_number_leads_through_all_keys_and_a_forged_one_starts_again() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        for n in 0..25 {
            db.set(format!("k{n:02}").as_bytes(), b"v").unwrap();
        }
        let (cursor, found) = scan(&db, &["scan", "0"]);
        assert_eq!(found, 10);
        for _ in 0..2 {
            let (third, found) = scan(&db, &["SCAN", &cursor, "COUNT", "10"]);
            assert_eq!(found, 10);
            assert_eq!(scan(&db, &["SCAN", &third]), ("0".into(), 5));
        }
        for forged in ["1", "17", "18446744073709551615", "-1", "+0", ""] {
            let (_, found) = scan(&db, &["SCAN", forged, "COUNT", "100"]);
            assert_eq!(found, 25, "{forged}");
        }
    }

    #[test]
    fn errors_come_in_the_order_of_the_reference() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"k", b"v").unwrap();
        for (args, error) in [
            (&["SCAN", "x"][..], "ERR invalid cursor"),
            (&["SCAN", " 1"], "ERR invalid cursor"),
            (&["SCAN", "++1"], "ERR invalid cursor"),
            (&["SCAN", "99999999999999999999"], "ERR invalid cursor"),
            (&["SCAN", "0", "COUNT", "0"], "ERR syntax error"),
            (&["SCAN", "0", "COUNT", "x"], "ERR value is not an integer or out of range"),
            (&["SCAN", "0", "MATCH"], "ERR syntax error"),
            (&["HSCAN", "k", "x"], "ERR invalid cursor"),
            (
                &["HSCAN", "k", "0", "FOO"],
                "WRONGTYPE Operation against a key holding the wrong kind of value",
            ),
            (&["HSCAN", "h"], "ERR wrong number of arguments for 'hscan' command"),
        ] {
            assert_eq!(call(&db, args), Reply::Error(error.into()), "{args:?}");
        }
        assert_eq!(scan(&db, &["HSCAN", "none", "0", "FOO"]), ("0".into(), 0));
        assert_eq!(scan(&db, &["SCAN", "0", "TYPE", "foo"]), ("0".into(), 0));
        assert_eq!(scan(&db, &["SCAN", "0", "TYPE", "STRING"]), ("0".into(), 1));
    }
}

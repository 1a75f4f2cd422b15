//! CLIENT: the name and number of a session, and the list of sessions.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::connection::{Connection, invalid};
use crate::commands::args::{Args, quoted, syntax_error, wrong_number};
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::messages::clients::ClientCard;
use crate::types::number::parse_integer;

/// The subcommands of CLIENT with the least and the greatest number of words, both names included.
const SUBCOMMANDS: [(&str, usize, usize); 13] = [
    ("caching", 3, 3),
    ("getname", 2, 2),
    ("getredir", 2, 2),
    ("id", 2, 2),
    ("info", 2, 2),
    ("list", 2, usize::MAX),
    ("no-evict", 3, 3),
    ("no-touch", 3, 3),
    ("reply", 3, 3),
    ("setinfo", 4, 4),
    ("setname", 3, 3),
    ("tracking", 3, usize::MAX),
    ("trackinginfo", 2, 2),
];

/// Fails for a call of CLIENT that is refused before it runs or is queued.
pub(super) fn check(argv: &[&[u8]]) -> Result<()> {
    let word = argv.get(1).copied().unwrap_or_default();
    let found = SUBCOMMANDS.iter().find(|(name, ..)| word.eq_ignore_ascii_case(name.as_bytes()));
    match found {
        None => {
            let word = quoted(word);
            Err(invalid(format!("ERR unknown subcommand '{word}'. Try CLIENT HELP.")))
        }
        Some((name, least, most)) if !(*least..=*most).contains(&argv.len()) => {
            Err(wrong_number(&format!("client|{name}")))
        }
        Some(_) => Ok(()),
    }
}

impl Connection {
    /// Runs CLIENT after [`check`].
    pub(super) fn client(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let word = args.bytes()?.to_ascii_lowercase();
        match word.as_slice() {
            b"getname" => {
                let name = self.card().names.lock().name.clone();
                Ok(Reply::bulk(Some(name).filter(|name| !name.is_empty())))
            }
            b"id" => Ok(Reply::Int(self.id())),
            b"tracking" => self.track(args),
            b"caching" => self.caching(args),
            b"getredir" => Ok(self.redirection()),
            b"trackinginfo" => Ok(self.tracking_info()),
            b"info" => {
                let card = Arc::clone(self.card());
                Ok(Reply::Bulk(Bytes::from(self.line(&card))))
            }
            b"list" => self.client_list(args),
            b"no-evict" | b"no-touch" => {
                let on = args.take_word("on");
                if !on && !args.take_word("off") {
                    return Err(syntax_error());
                }
                if word == b"no-evict" {
                    self.card().no_evict.store(on, Relaxed);
                }
                Ok(Reply::OK)
            }
            b"reply" if args.take_word("on") => Ok(Reply::OK),
            b"reply" => {
                Err(invalid("ERR a session always replies: only CLIENT REPLY ON is accepted"))
            }
            b"setname" => {
                self.set_name(args.bytes()?)?;
                Ok(Reply::OK)
            }
            _ => self.client_setinfo(args),
        }
    }

    /// Names the session.
    pub(super) fn set_name(&mut self, name: &[u8]) -> Result<()> {
        if !is_plain(name) {
            let text = "ERR Client names cannot contain spaces, newlines or special characters.";
            return Err(invalid(text));
        }
        self.card().names.lock().name = Bytes::copy_from_slice(name);
        Ok(())
    }

    fn client_setinfo(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let (option, value) = (args.bytes()?, args.bytes()?);
        let lower = String::from_utf8_lossy(option).to_ascii_lowercase();
        if !matches!(lower.as_str(), "lib-name" | "lib-ver") {
            return Err(invalid(format!("ERR Unrecognized option '{}'", quoted(option))));
        }
        if !is_plain(value) {
            let text = "cannot contain spaces, newlines or special characters.";
            return Err(invalid(format!("ERR {lower} {text}")));
        }
        let mut names = self.card().names.lock();
        let value = Bytes::copy_from_slice(value);
        match lower.as_str() {
            "lib-name" => names.library = value,
            _ => names.library_version = value,
        }
        Ok(Reply::OK)
    }

    fn client_list(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let own = Arc::clone(self.card());
        let mut cards = self.home.store().hub().clients().list();
        if !cards.iter().any(|card| card.id == own.id) {
            cards.push(own);
        }
        if args.take_word("type") {
            let kind = args.bytes()?.to_ascii_lowercase();
            match kind.as_slice() {
                b"normal" => {}
                b"master" | b"slave" | b"replica" | b"pubsub" => cards.clear(),
                _ => return Err(invalid(format!("ERR Unknown client type '{}'", quoted(&kind)))),
            }
        } else if args.take_word("id") {
            let id =
                |text: &&[u8]| parse_integer(text).map_err(|_| invalid("ERR Invalid client ID"));
            let ids: Vec<i64> = args.all().iter().map(id).collect::<Result<_>>()?;
            if ids.is_empty() {
                return Err(syntax_error());
            }
            cards.retain(|card| ids.iter().any(|id| u64::try_from(*id) == Ok(card.id)));
            return Ok(self.lines(&cards));
        }
        args.end()?;
        Ok(self.lines(&cards))
    }

    fn lines(&self, cards: &[Arc<ClientCard>]) -> Reply {
        let lines: String = cards.iter().map(|card| self.line(card)).collect();
        Reply::Bulk(Bytes::from(lines))
    }

    /// The line of a session in CLIENT LIST. Of others only their card is known.
    fn line(&self, card: &ClientCard) -> String {
        let own = card.id == self.peer().id;
        let [channels, patterns, shards] = if own { self.subscription_counts() } else { [0; 3] };
        let names = card.names.lock();
        let text = |name: &Bytes| String::from_utf8_lossy(name).into_owned();
        let flags = if card.no_evict.load(Relaxed) { "e" } else { "N" };
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            line,
            "id={} addr=in-process:{pid} laddr=in-process:{pid} fd=-1 name={} age={} idle=0 \
             flags={flags} db={} sub={channels} psub={patterns} ssub={shards} multi=-1 qbuf=0 \
             qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r \
             cmd={} user=default redir=-1 resp={} lib-name={} lib-ver={}",
            card.id,
            text(&names.name),
            card.age().as_secs(),
            card.database.load(Relaxed),
            if own { "client" } else { "NULL" },
            if own { self.peer().protocol() } else { 2 },
            text(&names.library),
            text(&names.library_version),
            pid = std::process::id(),
        );
        line
    }
}

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

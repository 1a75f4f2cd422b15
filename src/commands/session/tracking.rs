//! CLIENT TRACKING and its kin, and commands of a session that tracks the keys it reads.

use std::sync::Arc;

use bytes::Bytes;

use super::Session;
use super::connection::{Connection, invalid};
use super::queue::{Queued, Step};
use crate::commands::args::{Args, quoted, syntax_error};
use crate::commands::dispatch::{keys_of, known, unknown};
use crate::commands::entry::Entry;
use crate::commands::reply::Reply;
use crate::commands::schema::spec::{Access, Flags};
use crate::error::{Error, ErrorKind, Result};
use crate::messages::{TrackedReads, TrackingMode};
use crate::txn::{Origin, Tx};

const SWITCHED_BROADCAST: &str = "ERR You can't switch BCAST mode on/off before disabling tracking \
     for this client, and then re-enabling it with a different mode.";
const SWITCHED_CHOICE: &str = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for \
     this client, and then re-enabling it with a different mode.";
const NO_CHOICE: &str = "ERR CLIENT CACHING can be called only when the client is in tracking mode \
     with OPTIN or OPTOUT mode enabled";
const NOT_OPT_IN: &str =
    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
const NOT_OPT_OUT: &str =
    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.";

/// What a session tracks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionTracking {
    pub(super) mode: TrackingMode,
    /// Whether CLIENT CACHING was called for the next command.
    pub(super) caching: bool,
}

/// The arguments of CLIENT TRACKING.
#[derive(Default)]
struct Wanted<'a> {
    on: bool,
    mode: TrackingMode,
    opts_in: bool,
    opts_out: bool,
    prefixes: Vec<&'a [u8]>,
}

impl Connection {
    /// Runs CLIENT TRACKING.
    pub(super) fn track(&mut self, args: Args<'_>) -> Result<Reply> {
        let mut wanted = self.parse_tracking(args)?;
        let db = self.home.clone();
        let hub = db.store().hub();
        if !wanted.on {
            self.end_tracking();
            return Ok(Reply::OK);
        }
        if !db.is_live() {
            let text = "only a session on the store itself tracks keys";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        self.check_modes(&wanted)?;
        if wanted.mode.broadcasts {
            check_prefixes(&hub.tracker_state(self.peer().id).0, &wanted.prefixes)?;
        }
        wanted.mode.reads = match (wanted.opts_in, wanted.opts_out) {
            (true, _) => TrackedReads::OptIn,
            (_, true) => TrackedReads::OptOut,
            _ => TrackedReads::All,
        };
        let caching = self.tracking.is_some_and(|tracking| tracking.caching);
        self.inbox().reopen();
        self.tracking = Some(SessionTracking { mode: wanted.mode, caching });
        hub.track(self.peer(), wanted.mode, &wanted.prefixes);
        db.store().keep_expired_if_wanted();
        Ok(Reply::OK)
    }

    /// Ends tracking.
    pub(super) fn end_tracking(&mut self) {
        if self.tracking.take().is_some() {
            self.home.store().hub().untrack(self.peer().id);
            self.home.store().keep_expired_if_wanted();
        }
    }

    fn parse_tracking<'a>(&self, mut args: Args<'a>) -> Result<Wanted<'a>> {
        let (switch, mut wanted) = (args.bytes()?, Wanted::default());
        while !args.is_empty() {
            let more = args.len() > 1;
            if more && args.take_word("redirect") {
                if wanted.mode.redirect != 0 {
                    return Err(invalid("ERR A client can only redirect to a single other client"));
                }
                let id = u64::try_from(args.integer()?).unwrap_or(0);
                if !self.home.store().hub().knows_peer(id) {
                    return Err(invalid("ERR The client ID you want redirect to does not exist"));
                }
                wanted.mode.redirect = id;
            } else if more && args.take_word("prefix") {
                wanted.prefixes.push(args.bytes()?);
            } else if args.take_word("bcast") {
                wanted.mode.broadcasts = true;
            } else if args.take_word("optin") {
                wanted.opts_in = true;
            } else if args.take_word("optout") {
                wanted.opts_out = true;
            } else if args.take_word("noloop") {
                wanted.mode.skips_own = true;
            } else {
                return Err(syntax_error());
            }
        }
        wanted.on = switch.eq_ignore_ascii_case(b"on");
        match wanted.on || switch.eq_ignore_ascii_case(b"off") {
            true => Ok(wanted),
            false => Err(syntax_error()),
        }
    }

    /// Checks that options fit each other and those that are in force.
    fn check_modes(&self, wanted: &Wanted<'_>) -> Result<()> {
        let refused = |text: &str| Err(invalid(text));
        if !wanted.mode.broadcasts && !wanted.prefixes.is_empty() {
            return refused("ERR PREFIX option requires BCAST mode to be enabled");
        }
        let now = self.tracking.map(|tracking| tracking.mode);
        if now.is_some_and(|now| now.broadcasts != wanted.mode.broadcasts) {
            return refused(SWITCHED_BROADCAST);
        }
        if wanted.mode.broadcasts && (wanted.opts_in || wanted.opts_out) {
            return refused("ERR OPTIN and OPTOUT are not compatible with BCAST");
        }
        if wanted.opts_in && wanted.opts_out {
            return refused("ERR You can't specify both OPTIN mode and OPTOUT mode");
        }
        let reads = now.map(|now| now.reads);
        if (wanted.opts_in && reads == Some(TrackedReads::OptOut))
            || (wanted.opts_out && reads == Some(TrackedReads::OptIn))
        {
            return refused(SWITCHED_CHOICE);
        }
        Ok(())
    }

    /// Runs CLIENT CACHING.
    pub(super) fn caching(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let Some(tracking) = &mut self.tracking else { return Err(invalid(NO_CHOICE)) };
        let (reads, text) = if args.take_word("yes") {
            (TrackedReads::OptIn, NOT_OPT_IN)
        } else if args.take_word("no") {
            (TrackedReads::OptOut, NOT_OPT_OUT)
        } else {
            return Err(syntax_error());
        };
        if tracking.mode.reads != reads {
            return Err(invalid(text));
        }
        tracking.caching = true;
        Ok(Reply::OK)
    }

    /// The reply of CLIENT GETREDIR.
    pub(super) fn redirection(&self) -> Reply {
        Reply::Int(
            self.tracking
                .map_or(-1, |tracking| i64::try_from(tracking.mode.redirect).unwrap_or(i64::MAX)),
        )
    }

    /// The reply of CLIENT TRACKINGINFO.
    pub(super) fn tracking_info(&self) -> Reply {
        let text = |text: &'static str| Reply::Bulk(Bytes::from_static(text.as_bytes()));
        let (prefixes, broken) = self.home.store().hub().tracker_state(self.peer().id);
        let mut flags = vec![if self.tracking.is_some() { "on" } else { "off" }];
        if let Some(SessionTracking { mode, caching }) = self.tracking {
            flags.extend(mode.broadcasts.then_some("bcast"));
            let (choice, called) = match mode.reads {
                TrackedReads::All => (None, None),
                TrackedReads::OptIn => (Some("optin"), caching.then_some("caching-yes")),
                TrackedReads::OptOut => (Some("optout"), caching.then_some("caching-no")),
            };
            flags.extend(choice.into_iter().chain(called));
            flags.extend(mode.skips_own.then_some("noloop"));
            flags.extend(broken.then_some("broken_redirect"));
        }
        let prefixes = prefixes.into_iter().map(|prefix| Reply::Bulk(prefix.into()));
        Reply::Map(vec![
            (text("flags"), Reply::Set(flags.into_iter().map(text).collect())),
            (text("redirect"), self.redirection()),
            (text("prefixes"), Reply::Array(prefixes.collect())),
        ])
    }

    /// How a command of this session is known to others, if the session tracks keys.
    pub(super) fn origin_of(&self, entry: &Entry, argv: &[&[u8]]) -> Option<Origin> {
        let SessionTracking { mode, caching } = self.tracking?;
        let remembers = !mode.broadcasts
            && match mode.reads {
                TrackedReads::All => true,
                TrackedReads::OptIn => caching,
                TrackedReads::OptOut => !caching,
            };
        let reads = matches!(entry.command.access, Access::Read | Access::Script);
        let keys = (remembers && reads).then(|| owned_keys(entry, argv).into());
        Some(Origin { client: self.peer().id, keys })
    }

    /// Runs `work`, which reads these keys, so that no change of them is missed.
    pub(super) fn reading<T>(
        &mut self,
        keys: Vec<Box<[u8]>>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if self.tracking.is_none() || keys.is_empty() {
            return work(self);
        }
        let (db, client) = (self.home.clone(), self.peer().id);
        db.store().hub().begin_read(client, keys);
        let result = work(self);
        db.store().hub().end_read(client);
        result
    }
}

fn owned_keys(entry: &Entry, argv: &[&[u8]]) -> Vec<Box<[u8]>> {
    keys_of(entry, argv).into_iter().map(Box::from).collect()
}

/// Checks that no prefix begins with another one: a client would be told twice of a key.
fn check_prefixes(known: &[Vec<u8>], prefixes: &[&[u8]]) -> Result<()> {
    let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    let refused = |prefix: &[u8], which: &str, other: &[u8]| {
        let (prefix, other) = (quoted(prefix), quoted(other));
        Err(invalid(format!(
            "ERR Prefix '{prefix}' overlaps with {which} prefix '{other}'. Prefixes for a single \
             client must not overlap."
        )))
    };
    for (at, prefix) in prefixes.iter().enumerate() {
        if let Some(other) = known.iter().find(|known| overlap(known, prefix)) {
            return refused(prefix, "an existing", other);
        }
        let later = prefixes.get(at + 1..).unwrap_or_default();
        if let Some(other) = later.iter().find(|other| overlap(other, prefix)) {
            return refused(prefix, "another provided", other);
        }
    }
    Ok(())
}

impl Session {
    /// Runs a command of the store for a session that tracks keys.
    pub(super) fn run_tracked(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        let Some(entry) = known(argv)? else { return Ok(unknown(argv)) };
        let db = self.db.clone();
        let origin = self.connection.origin_of(entry, argv);
        if entry.command.flags.has(Flags::BLOCKS) && db.is_live() {
            return db.run_blocking(entry, argv, origin);
        }
        let keys = origin.as_ref().and_then(|origin| origin.keys.as_deref());
        let keys = keys.map(<[_]>::to_vec).unwrap_or_default();
        self.connection.reading(keys, |_| {
            db.locked(entry, argv, |tx, args| {
                tx.set_origin(origin.clone());
                let reply = entry.run(tx, args);
                note_if_read(tx, entry);
                reply
            })
        })
    }
}

impl Step<'_> {
    /// The keys of the command, if a session might track them.
    pub(super) fn tracked_keys(&self) -> Vec<Box<[u8]>> {
        match self.what {
            Queued::Command(entry) => owned_keys(entry, &self.argv),
            Queued::Own(_) => Vec::new(),
        }
    }

    /// Tells which session runs the command, if it tracks keys.
    pub(super) fn begin_tracked(&self, tx: &mut Tx<'_>, connection: &Connection) {
        if let Queued::Command(entry) = self.what {
            tx.set_origin(connection.origin_of(entry, &self.argv));
        }
    }

    /// Notes what the command has read.
    pub(super) fn end_tracked(&self, tx: &mut Tx<'_>) {
        if let Queued::Command(entry) = self.what {
            note_if_read(tx, entry);
        }
    }
}

/// Notes that the command has read its keys. A script notes it itself.
fn note_if_read(tx: &mut Tx<'_>, entry: &Entry) {
    if entry.command.access == Access::Read {
        tx.note_read();
    }
}

/// The numbers that a server shows of a client that tracks keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTrackingState {
    /// Whether the session is told of all keys with its prefixes.
    pub broadcasts: bool,
    /// The session that gets its messages; zero for the session itself.
    pub redirect: u64,
    /// Whether that session is gone.
    pub broken: bool,
}

impl Session {
    /// How CLIENT TRACKING is set; `None` if it is off.
    pub fn tracking(&self) -> Option<SessionTrackingState> {
        let SessionTracking { mode, .. } = self.connection.tracking?;
        let (_, broken) = self.db.store().hub().tracker_state(self.connection.peer().id);
        Some(SessionTrackingState { broadcasts: mode.broadcasts, redirect: mode.redirect, broken })
    }

    /// Whether the session tracks keys.
    pub fn tracks(&self) -> bool {
        self.connection.tracking.is_some()
    }
}

/// Ends the effect of CLIENT CACHING after the command that it was meant for.
pub(super) fn end_caching(tracking: &mut Option<SessionTracking>) {
    if let Some(tracking) = tracking {
        tracking.caching = false;
    }
}

/// Makes a session known to others until it is dropped.
#[derive(Debug)]
pub(super) struct KnownPeer {
    pub(super) db: crate::txn::Db,
    pub(super) peer: Arc<crate::messages::Peer>,
}

impl Drop for KnownPeer {
    fn drop(&mut self) {
        self.db.store().hub().part(self.peer.id);
        self.db.store().keep_expired_if_wanted();
    }
}

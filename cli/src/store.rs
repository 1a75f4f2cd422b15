//! The arguments with which subcommands open a store.

use std::path::{Path, PathBuf};

use clap::Args;
use lsmkv::{Db, Error, ErrorKind, Options, Reply, SharedStore};

use crate::failure::Failure;

/// Arguments shared by the subcommands that open a store.
#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// Directory of the store, or :memory:
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

/// Options of the store by name.
#[derive(Args, Debug, Default)]
pub(crate) struct OptionArgs {
    /// An option of the store, e.g. memory_budget=64MiB; may be given several times
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
}

impl OptionArgs {
    /// The default options with the given changes.
    pub(crate) fn to_options(&self) -> Result<Options, Failure> {
        self.applied_to(Options::default())
    }

    /// These options with the given changes.
    pub(crate) fn applied_to(&self, mut options: Options) -> Result<Options, Failure> {
        for text in &self.options {
            let Some((name, value)) = text.split_once('=') else {
                return Err(Failure::usage(format!("--option {text}: use NAME=VALUE")));
            };
            options.set(name, value).map_err(|error| Failure::usage(error.message()))?;
        }
        options.validate().map_err(|error| Failure::usage(error.message()))?;
        Ok(options)
    }
}

impl StoreArgs {
    /// Opens the store to write commands to it, or creates it.
    pub(crate) fn open(&self) -> Result<WritableStore, Failure> {
        WritableStore::open(&self.dir, self.options.to_options()?).map_err(Failure::from)
    }

    /// Opens a store that must already exist, for this process alone.
    pub(crate) fn open_existing(&self) -> Result<Db, Failure> {
        let options = refuse_shared(self.options.to_options()?)?;
        let options = Options { create_if_missing: false, ..options };
        Db::open(&self.dir, options).map_err(|error| explain_open(error, &self.dir))
    }
}

/// Options for a tool that needs the store for itself.
pub(crate) fn refuse_shared(options: Options) -> Result<Options, Failure> {
    if !options.shared {
        return Ok(options);
    }
    let text = "this needs the store for itself: with shared=on the shell, load and import write, and dump, \
                export, stats, levels, check and watch read";
    Err(Failure::usage(text))
}

/// A store that commands are written to: of this process alone, or one that processes share.
#[derive(Clone, Debug)]
pub(crate) enum WritableStore {
    Own(Db),
    Shared(SharedStore),
}

/// Runs a command.
pub(crate) type Run = Box<dyn FnMut(&[&[u8]]) -> lsmkv::Result<Reply>>;

impl WritableStore {
    /// Opens a store, or creates it. With the option `shared`, another process may hold it.
    pub(crate) fn open(dir: &Path, options: Options) -> lsmkv::Result<Self> {
        Ok(match options.shared {
            true => Self::Shared(SharedStore::open(dir, &options)?),
            false => Self::Own(Db::open(dir, options)?),
        })
    }

    /// Another database of the store.
    pub(crate) fn select(&self, number: u32) -> lsmkv::Result<Self> {
        Ok(match self {
            Self::Own(db) => Self::Own(db.select(number)?),
            Self::Shared(store) => Self::Shared(store.select(number)?),
        })
    }

    pub(crate) fn command(&self, argv: &[&[u8]]) -> lsmkv::Result<Reply> {
        match self {
            Self::Own(db) => db.command(argv),
            Self::Shared(store) => store.command(argv),
        }
    }

    /// Runs commands in a session.
    pub(crate) fn session(&self) -> Run {
        match self {
            Self::Own(db) => {
                let mut session = db.session();
                Box::new(move |argv| session.command(argv))
            }
            Self::Shared(store) => {
                let mut session = store.session();
                Box::new(move |argv| session.command(argv))
            }
        }
    }

    pub(crate) fn sync(&self) -> lsmkv::Result<()> {
        match self {
            Self::Own(db) => db.sync(),
            Self::Shared(store) => store.sync(),
        }
    }

    pub(crate) fn close(&self) -> lsmkv::Result<()> {
        match self {
            Self::Own(db) => db.close(),
            Self::Shared(store) => store.close(),
        }
    }
}

/// Whether there is a store in `dir`.
pub(crate) fn has_store(dir: &Path) -> bool {
    dir.join("CURRENT").symlink_metadata().is_ok()
}

/// Whether an error says that there is no store in `dir`, where one could be created.
pub(crate) fn is_absent(error: &Error, dir: &Path) -> bool {
    error.kind() == ErrorKind::Invalid && !has_store(dir)
}

/// Says that there is no store, and how to go on.
pub(crate) fn no_store(dir: &Path) -> String {
    let way_out = "check the name, or create one: lsmkv";
    format!("{0}: there is no store; {way_out} {0} SET key value", dir.display())
}

/// The failure of an open. If there is no store, it tells the way out.
pub(crate) fn explain_open(error: Error, dir: &Path) -> Failure {
    match is_absent(&error, dir) {
        true => Failure::new(no_store(dir)),
        false => error.into(),
    }
}

/// Arguments shared by the subcommands that only read a store.
#[derive(Args, Debug)]
pub(crate) struct ReadOnlyStoreArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Take no lock, so that another process can open the store to write meanwhile. A store that is
    /// open elsewhere is read without it in any case
    #[arg(long)]
    live: bool,
}

impl ReadOnlyStoreArgs {
    /// Opens the store read-only.
    pub(crate) fn open_to_read(&self) -> Result<Db, Failure> {
        let options = self.store.options.to_options()?;
        // A reader beside the processes that share a store must take its lock from none of them.
        let live = self.live || options.shared;
        let options =
            Options { read_only: true, create_if_missing: false, shared: false, ..options };
        let dir = &self.store.dir;
        let opened = if live { open_beside(dir, options) } else { Db::open(dir, options) };
        opened.map_err(|error| explain_open(error, dir))
    }
}

/// Opens a store without its lock, and does no work beside what is asked for.
pub(crate) fn open_beside(dir: &Path, options: Options) -> Result<Db, Error> {
    Db::open_beside(dir, &Options { ttl_cleaner_interval_s: 0, ..options })
}

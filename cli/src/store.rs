//! The arguments with which subcommands open a store.

use std::path::{Path, PathBuf};

use clap::Args;
use lsmkv::{Db, Error, ErrorKind, Options};

use crate::failure::Failure;
use crate::tools::live;

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
    /// Opens the store, or creates it.
    pub(crate) fn open(&self) -> Result<Db, Failure> {
        Ok(Db::open(&self.dir, self.options.to_options()?)?)
    }

    /// Opens a store that must already exist.
    pub(crate) fn open_existing(&self) -> Result<Db, Failure> {
        let options = Options { create_if_missing: false, ..self.options.to_options()? };
        Db::open(&self.dir, options).map_err(|error| explain_open(error, &self.dir))
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
    /// Read the store even if another process has it open; that process is not disturbed
    #[arg(long)]
    live: bool,
}

impl ReadOnlyStoreArgs {
    /// Opens the store read-only.
    pub(crate) fn open_to_read(&self) -> Result<Db, Failure> {
        let options = self.store.options.to_options()?;
        if self.live {
            return live::open(&self.store.dir, options);
        }
        let options = Options { read_only: true, create_if_missing: false, ..options };
        Db::open(&self.store.dir, options).map_err(|error| match error.kind() {
            ErrorKind::Busy => Failure::new(format!("{error}; --live looks at it all the same")),
            _ => explain_open(error, &self.store.dir),
        })
    }
}

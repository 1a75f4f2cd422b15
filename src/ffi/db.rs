//! Exported functions that open and close a store.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use crate::error::{Error, ErrorKind, Result};
#[cfg(all(feature = "remote", feature = "server"))]
use crate::ffi::away::AwayHandle;
use crate::ffi::boundary::free_call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::fork::{self, Transit};
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::handle_kind::HandleKind;
use crate::ffi::options::lsmkv_options;
#[cfg(feature = "remote")]
use crate::ffi::remote::RemoteHandle;
#[cfg(all(feature = "remote", feature = "server"))]
use crate::ffi::shared::SharedHandle;
use crate::ffi::slice::{Out, c_string};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
#[cfg(feature = "remote")]
use crate::options::Options;
#[cfg(all(feature = "remote", feature = "server"))]
use crate::places::SharedStore;
#[cfg(feature = "remote")]
use crate::remote::Remote;
use crate::txn::Db;

/// Opens the store in directory `path`, and creates it if the options allow. ":memory:" opens an
/// empty store in memory. `options` may be NULL for the defaults, and may be freed or reused
/// afterwards. *out receives the handle; close it with lsmkv_close.
///
/// With the option "shared" several processes may have the directory open at once. The first one
/// holds the store, calls of the others run there, and when it ends another one takes over.
///
/// The path may also be the address of a store in another process, or on another machine:
/// "unix:///path/to/socket", "redis://host:port", or "redis-cluster://host,host" for a cluster.
/// Commands are then sent there. What a server cannot do, such as a snapshot, is UNSUPPORTED.
///
/// OK; MISUSE: path or out is NULL; INVALID: options contradict each other, or there is no store
/// and create_if_missing is off, or there is one and error_if_exists is on; BUSY: another handle
/// or process has it open, which with read_only is no reason to fail: the store is read beside it,
/// and lsmkv_refresh moves on; INCOMPATIBLE: not a store, or one of a newer version; FORKED: the
/// process was forked while a store was open; CORRUPT, IO, FULL; of a remote store also TIMEOUT, and
/// INVALID: the server refuses the login; of a shared store also TIMEOUT: the process that holds it is
/// silent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_open(
    path: *const c_char,
    options: *const lsmkv_options,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a place for a pointer.
    let out = unsafe { Out::emptied(out, null_mut()) };
    let body = || {
        let out = out.required("out")?;
        // SAFETY: the caller promises a terminated string or NULL, and live options or NULL.
        let (path, options) = unsafe { (c_string("path", path)?, options.as_ref()) };
        if let Some(remote) = remote_store(path, options)? {
            out.set(handle::open(remote));
            return Ok(LSMKV_OK);
        }
        if let Some(shared) = shared_store(path, options)? {
            out.set(handle::open(shared));
            return Ok(LSMKV_OK);
        }
        fork::watch()?;
        let _transit = Transit::begin();
        let options = options.map(|given| given.options.clone()).unwrap_or_default();
        out.set(handle::open(HandleKind::Root(Db::open(directory("path", path)?, options)?)));
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promise about err.
    unsafe { free_call(err, body) }
}

/// Closes a handle. It rejects new calls and waits for running ones, even long ones like
/// lsmkv_compact; only lsmkv_wait ends early. Closing the handle of lsmkv_open closes the store: it
/// stops background work, flushes, and unlocks the directory. Handles made from it then return
/// CLOSED; each must still be closed, in any order. Closing a transaction that was not committed
/// rolls it back. The handle is gone whatever the status. Buffers and replies stay valid. NULL is
/// allowed.
///
/// OK; MISUSE: closed already; IO, FULL, DEGRADED: what the last flush met; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_close(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    let body = || {
        let _transit = Transit::begin();
        if !db.is_null() {
            // SAFETY: the caller promises a handle of this library.
            unsafe { handle::close(db) }?.close()?;
        }
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promise about err.
    unsafe { free_call(err, body) }
}

/// Opens a remote store, if the path is the address of one.
fn remote_store(path: &CStr, options: Option<&lsmkv_options>) -> Result<Option<HandleKind>> {
    let Some(address) = path.to_str().ok().filter(|path| is_address(path)) else {
        return Ok(None);
    };
    #[cfg(feature = "remote")]
    {
        let usual = Options::default();
        let options = options.map_or(&usual, |given| &given.options);
        fork::register()?;
        let store = Remote::open(address, options)?;
        Ok(Some(HandleKind::Remote(RemoteHandle::Root(store))))
    }
    #[cfg(not(feature = "remote"))]
    {
        let _ = (address, options);
        let message =
            "the path is an address, and this library was built without the feature remote";
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

/// Opens a store that processes share, if the options say so.
fn shared_store(path: &CStr, options: Option<&lsmkv_options>) -> Result<Option<HandleKind>> {
    let Some(options) = options.map(|given| &given.options).filter(|options| options.shared) else {
        return Ok(None);
    };
    let directory = directory("path", path)?;
    #[cfg(all(feature = "remote", feature = "server"))]
    {
        fork::register()?;
        let store = match fork::inherited_open_store() {
            true => SharedStore::open_as_client(directory, options)?,
            false => SharedStore::open(directory, options)?,
        };
        Ok(Some(HandleKind::Shared(SharedHandle::Store(AwayHandle::Root(store)))))
    }
    #[cfg(not(all(feature = "remote", feature = "server")))]
    {
        let _ = (directory, options);
        let message =
            "shared needs the features remote and server, and this library was built without";
        Err(Error::new(ErrorKind::Unsupported, message))
    }
}

/// Whether a path is the address of a remote store: it begins with a scheme that one has.
fn is_address(path: &str) -> bool {
    let schemes = ["unix", "redis", "rediss", "redis-cluster", "rediss-cluster"];
    path.split_once("://").is_some_and(|(scheme, _)| schemes.contains(&scheme))
}

/// Makes a C handle of a store that Rust opened, for example on a file system that only Rust can
/// name. Close it with lsmkv_close.
pub(crate) fn handle_of(db: Db) -> Result<*mut lsmkv_db> {
    fork::watch()?;
    Ok(handle::open(HandleKind::Root(db)))
}

/// Turns a path of any bytes into a [`Path`].
pub(super) fn directory<'a>(name: &str, path: &'a CStr) -> Result<&'a Path> {
    if path.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, format!("{name} is empty: name a directory")));
    }
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}

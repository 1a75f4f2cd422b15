//! Exported functions that serve a store to other processes.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::ffi::boundary::{free_call, handle_call};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::options::{lsmkv_options, text};
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};

/// A server that lsmkv_serve has started. lsmkv_server_stop stops and frees it. Any thread may use
/// it.
pub struct lsmkv_server {
    _opaque: (),
}

/// Serves the store to other processes by the Redis protocol, on threads of this process, until
/// lsmkv_server_stop. `address` is "unix:PATH", "tcp:HOST:PORT" or "tls:HOST:PORT"; port 0 takes a
/// free one. Of the options, which may be NULL, those that begin with server_ apply. Clients and the callers in this
/// process see the same keys, messages and blocking pops. Closing the store stops its servers; they
/// must still be freed. A process that is forked from this one serves nobody.
///
/// OK; MISUSE: db, address or out is NULL; INVALID: an address that is not understood, a path that is
/// too long, a port beyond this machine without server_password, or files of server_tls_* that are
/// missing or do not fit; BUSY: another server listens
/// there; IO: the system refuses, for example because the directory may not be written;
/// UNSUPPORTED: on a snapshot, a transaction, a batch or a remote store, or built without the feature
/// server; CLOSED, FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_serve(
    db: *mut lsmkv_db,
    address: *const c_char,
    options: *const lsmkv_options,
    out: *mut *mut lsmkv_server,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        handle_call(db, err, |handle| {
            let out = out.required("out")?;
            out.set(build::start(handle, text("address", address)?, options.as_ref())?);
            Ok(LSMKV_OK)
        })
    }
}

/// Returns where the server listens, as an address that lsmkv_open takes in another process:
/// "redis://HOST:PORT" or "unix:///PATH". Release *out with lsmkv_buf_release.
///
/// OK; MISUSE: server or out is NULL, or the server was stopped; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_server_address(
    server: *mut lsmkv_server,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        handle_call(server.cast(), err, |handle| {
            let out = out.required("out")?;
            out.set(lsmkv_buf::pinning(build::address(handle)?.into()));
            Ok(LSMKV_OK)
        })
    }
}

/// Returns the TCP port on which the server listens; 0 if it listens on a Unix socket.
///
/// OK; MISUSE: server or port is NULL, or the server was stopped; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_server_port(
    server: *mut lsmkv_server,
    port: *mut i32,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let port = Out::emptied(port, 0);
        handle_call(server.cast(), err, |handle| {
            let port = port.required("port")?;
            port.set(build::port(handle)?);
            Ok(LSMKV_OK)
        })
    }
}

/// Stops a server and frees it. Its clients are disconnected; the store stays open. NULL is allowed.
///
/// OK; MISUSE: it was stopped already; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_server_stop(
    server: *mut lsmkv_server,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a server of this library.
    unsafe {
        free_call(err, || {
            if !server.is_null() {
                build::stop(server)?;
            }
            Ok(LSMKV_OK)
        })
    }
}

/// What the functions do in a build with servers.
#[cfg(feature = "server")]
mod build {
    use super::lsmkv_server;
    use crate::error::Result;
    use crate::ffi::fork::Transit;
    use crate::ffi::handle;
    use crate::ffi::handle_kind::HandleKind;
    use crate::ffi::options::lsmkv_options;
    use crate::ffi::slice::misuse;
    use crate::server::RunningServer;

    pub(super) fn start(
        handle: &HandleKind,
        address: &str,
        options: Option<&lsmkv_options>,
    ) -> Result<*mut lsmkv_server> {
        let options = options.map(|given| given.options.clone()).unwrap_or_default();
        let server = handle.with_database(|db| RunningServer::start(db, address, &options))?;
        Ok(handle::open(HandleKind::Server(server)).cast())
    }

    pub(super) fn address(handle: &HandleKind) -> Result<String> {
        Ok(running(handle)?.addresses().first().cloned().unwrap_or_default())
    }

    pub(super) fn port(handle: &HandleKind) -> Result<i32> {
        Ok(running(handle)?.port().map_or(0, i32::from))
    }

    /// # Safety
    /// `server` was returned by `start`.
    pub(super) unsafe fn stop(server: *mut lsmkv_server) -> Result<()> {
        let _transit = Transit::begin();
        // SAFETY: the caller's promise. The check has left the handle before the close waits.
        unsafe {
            running(handle::enter(server.cast())?.kind())?;
            handle::close(server.cast())?.close()
        }
    }

    fn running(handle: &HandleKind) -> Result<&RunningServer> {
        match handle {
            HandleKind::Server(server) => Ok(server),
            _ => Err(misuse("this is no server: pass a pointer made by lsmkv_serve")),
        }
    }
}

/// What the functions do in a build without servers.
#[cfg(not(feature = "server"))]
mod build {
    use super::lsmkv_server;
    use crate::error::{Error, ErrorKind, Result};
    use crate::ffi::handle_kind::HandleKind;
    use crate::ffi::options::lsmkv_options;

    pub(super) fn start(
        _: &HandleKind,
        _: &str,
        _: Option<&lsmkv_options>,
    ) -> Result<*mut lsmkv_server> {
        Err(absent())
    }

    pub(super) fn address(_: &HandleKind) -> Result<String> {
        Err(absent())
    }

    pub(super) fn port(_: &HandleKind) -> Result<i32> {
        Err(absent())
    }

    /// # Safety
    /// None: the pointer is not used.
    pub(super) unsafe fn stop(_: *mut lsmkv_server) -> Result<()> {
        Err(absent())
    }

    fn absent() -> Error {
        let message = "this library was built without the feature server";
        Error::new(ErrorKind::Unsupported, message)
    }
}

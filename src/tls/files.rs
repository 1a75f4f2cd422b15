//! Certificates and keys in PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, ErrorKind, Result};

fn refused(option: &str, file: &str, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{option}: {file}: {why}"))
}

fn explain(option: &str, file: &str, error: &PemError) -> Error {
    match error {
        PemError::Io(error) => Error::io(&format!("{option}: read"), Path::new(file), error),
        error => refused(option, file, &format!("is no file in PEM form ({error})")),
    }
}

/// The certificates in a file, of which there is at least one.
pub(super) fn certificates(option: &str, file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| explain(option, file, &error))?;
    if found.is_empty() {
        return Err(refused(option, file, "has no certificate (BEGIN CERTIFICATE)"));
    }
    Ok(found)
}

/// The first private key in a file.
pub(super) fn private_key(option: &str, file: &str) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        PemError::NoItemsFound => refused(
            option,
            file,
            "has no private key that can be read (BEGIN PRIVATE KEY); one with a pass phrase is \
             written without it by: openssl pkey -in FILE -out PLAIN",
        ),
        error => explain(option, file, &error),
    })
}

/// The certificates of authorities in a file.
pub(super) fn authorities(option: &str, file: &str) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(option, file)? {
        roots.add(certificate).map_err(|error| {
            refused(option, file, &format!("has a certificate that cannot be used: {error}"))
        })?;
    }
    Ok(roots)
}

/// A certificate chain with its key, of two options that belong together; `None` if both are empty.
pub(super) fn identity(
    (cert_option, cert): (&str, &str),
    (key_option, key): (&str, &str),
) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>> {
    match (cert.is_empty(), key.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => {
            Ok(Some((certificates(cert_option, cert)?, private_key(key_option, key)?)))
        }
        _ => {
            let text = format!("{cert_option} and {key_option} belong together: set both");
            Err(Error::new(ErrorKind::Invalid, text))
        }
    }
}

/// The error of a key that does not fit its certificate.
pub(super) fn no_pair(key_option: &str, key: &str, error: &rustls::Error) -> Error {
    refused(key_option, key, &format!("is not the key of the certificate, or not usable: {error}"))
}

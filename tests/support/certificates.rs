//! Certificates for tests: an authority of its own, and what it signs, as PEM files in a scratch
//! directory.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

/// An authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    name: String,
    dir: TempDir,
}

/// The paths of a certificate and of its key.
pub(crate) struct Identity {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Authority {
    /// An authority with a name that no other has.
    pub(crate) fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        Self::named(&format!("authority {}", MADE.fetch_add(1, Ordering::Relaxed)))
    }

    /// An authority of this name.
    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let authority = Self { issuer, name: name.to_owned(), dir };
        std::fs::write(authority.path("ca.pem"), authority.issuer.pem()).unwrap();
        authority
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The file with its own certificate.
    pub(crate) fn ca_file(&self) -> String {
        self.path("ca.pem").to_str().unwrap().to_owned()
    }

    /// Signs a certificate for names and addresses.
    pub(crate) fn sign(&self, file: &str, names: &[&str]) -> Identity {
        self.sign_changed(file, names, |_| ())
    }

    /// Signs a certificate that has expired.
    pub(crate) fn sign_expired(&self, file: &str, names: &[&str]) -> Identity {
        self.sign_changed(file, names, |params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        })
    }

    fn sign_changed(
        &self,
        file: &str,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, file);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |ending: &str, text: String| {
            let path = self.path(&format!("{file}.{ending}"));
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        Identity { cert: write("crt", certificate.pem()), key: write("key", key.serialize_pem()) }
    }
}

//! What a client trusts, and what it shows to servers that ask.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::files;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// What connections to a remote store trust and show. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ClientTls {
    config: Arc<ClientConfig>,
    /// The name that certificates must be for, if it is not the host.
    server_name: Option<ServerName<'static>>,
}

impl ClientTls {
    /// Reads the files that the options name.
    pub(crate) fn from_options(options: &Options) -> Result<Self> {
        let wrong = |text: String| Error::new(ErrorKind::Invalid, text);
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?;
        let builder = if options.tls_insecure {
            let anyone = Arc::new(AnyCertificate { provider });
            builder.dangerous().with_custom_certificate_verifier(anyone)
        } else {
            builder.with_root_certificates(roots(&options.tls_ca_file)?)
        };
        let (cert, key) = (&options.tls_cert_file, &options.tls_key_file);
        let config = match files::identity(("tls_cert_file", cert), ("tls_key_file", key))? {
            None => builder.with_no_client_auth(),
            Some((chain, private_key)) => builder
                .with_client_auth_cert(chain, private_key)
                .map_err(|error| files::no_pair("tls_key_file", key, &error))?,
        };
        let server_name = match options.tls_server_name.as_str() {
            "" => None,
            name => Some(ServerName::try_from(name.to_owned()).map_err(|_| {
                wrong(format!("tls_server_name: '{name}' is neither a host name nor an address"))
            })?),
        };
        Ok(Self { config: Arc::new(config), server_name })
    }

    /// Runs the handshake on a connected socket. `wait` waits for bytes of the peer, and returns
    /// false when the time is up.
    pub(crate) fn connect<S: Read + Write>(
        &self,
        host: &str,
        socket: &mut S,
        mut wait: impl FnMut(&S) -> io::Result<bool>,
    ) -> io::Result<Session> {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
        };
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        let mut session = Session::new(connection.map_err(io::Error::other)?.into(), false);
        session.flush(socket)?;
        while session.is_handshaking() {
            if !wait(socket)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
            session.receive(socket)?;
            session.check_end()?;
        }
        session.flush(socket)?;
        Ok(session)
    }
}

/// The authorities of a file, or those that the system trusts.
fn roots(file: &str) -> Result<RootCertStore> {
    if !file.is_empty() {
        return files::authorities("tls_ca_file", file);
    }
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        let text = "this system has no certificates that it trusts: name a file of them in \
                    tls_ca_file";
        return Err(Error::new(ErrorKind::Invalid, text));
    }
    Ok(roots)
}

/// Accepts every certificate, for `tls_insecure`. The signatures of the handshake are still
/// checked, so that the peer has the key of the certificate that it shows.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

//! What a server shows its clients, and what it asks of them.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, ServerConnection};

use super::files;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ClientCertificates, Options};

const CERT: &str = "server_tls_cert_file";
const KEY: &str = "server_tls_key_file";
const CA: &str = "server_tls_ca_file";

/// The certificate of a server, and the authorities of its clients. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ServerTls {
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the files that the options name.
    pub(crate) fn from_options(options: &Options) -> Result<Self> {
        let missing = |text: &str| Error::new(ErrorKind::Invalid, text);
        let (cert, key) = (&options.server_tls_cert_file, &options.server_tls_key_file);
        let identity = files::identity((CERT, cert), (KEY, key))?;
        let (chain, private_key) = identity.ok_or_else(|| {
            missing("TLS needs a certificate: set server_tls_cert_file and server_tls_key_file")
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| missing(&error.to_string()))?;
        let builder = if options.server_tls_auth_clients == ClientCertificates::Ignored {
            builder.with_no_client_auth()
        } else {
            let file = &options.server_tls_ca_file;
            if file.is_empty() {
                return Err(missing(
                    "clients need a certificate and nothing says from whom: set \
                     server_tls_ca_file, or server_tls_auth_clients=no if they need none",
                ));
            }
            let roots = Arc::new(files::authorities(CA, file)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match options.server_tls_auth_clients {
                ClientCertificates::Optional => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            let verifier =
                verifier.build().map_err(|error| missing(&format!("{CA}: {file}: {error}")))?;
            builder.with_client_cert_verifier(verifier)
        };
        let config = builder
            .with_single_cert(chain, private_key)
            .map_err(|error| files::no_pair(KEY, key, &error))?;
        Ok(Self { config: Arc::new(config) })
    }

    /// The session of a connection that was accepted now.
    pub(crate) fn session(&self) -> io::Result<Session> {
        let connection =
            ServerConnection::new(Arc::clone(&self.config)).map_err(io::Error::other)?;
        Ok(Session::new(connection.into(), true))
    }
}

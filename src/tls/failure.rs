//! Why TLS refused a connection, in words that name the way out.

#[cfg(feature = "remote")]
use std::io;

use rustls::{AlertDescription, CertificateError, Error as TlsError};

#[cfg(feature = "server")]
use super::ClientFault;
#[cfg(feature = "remote")]
use crate::error::{Error, ErrorKind};

/// What a client did wrong, for the log of the server.
#[cfg(feature = "server")]
pub(super) fn of_client(error: &TlsError) -> (ClientFault, String) {
    match error {
        TlsError::InvalidMessage(_) | TlsError::InappropriateMessage { .. } => {
            (ClientFault::NoTls, "it sends no TLS on a port for TLS".to_owned())
        }
        TlsError::NoCertificatesPresented => (
            ClientFault::Certificate,
            "it shows no certificate, and tls-auth-clients asks for one".to_owned(),
        ),
        TlsError::InvalidCertificate(why) => {
            (ClientFault::Certificate, format!("its certificate is refused: {}", reason(why)))
        }
        TlsError::AlertReceived(alert) => {
            (ClientFault::Other, format!("it ended the handshake: {}", alert_text(*alert)))
        }
        error => (ClientFault::Other, error.to_string()),
    }
}

/// The error of a connection to a server, if TLS has one to explain.
#[cfg(feature = "remote")]
pub(crate) fn explain_server(peer: &str, error: &io::Error) -> Option<Error> {
    let inner = error.get_ref()?;
    let Some(cause) = inner.downcast_ref::<TlsError>() else {
        inner.downcast_ref::<rustls::pki_types::InvalidDnsNameError>()?;
        let text = format!("{peer}: a certificate cannot be for this host: set tls_server_name");
        return Some(Error::new(ErrorKind::Invalid, text));
    };
    let (kind, text) = match cause {
        TlsError::InvalidCertificate(why) => {
            (ErrorKind::Invalid, format!("the certificate of {peer} is refused: {}", way_out(why)))
        }
        TlsError::AlertReceived(
            alert @ (AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::HandshakeFailure
            | AlertDescription::AccessDenied),
        ) => (
            ErrorKind::Invalid,
            format!(
                "{peer} refuses this client ({}): it may ask for a certificate of an authority \
                 that it knows, which tls_cert_file and tls_key_file name",
                alert_text(*alert)
            ),
        ),
        TlsError::AlertReceived(alert) => {
            (ErrorKind::Io, format!("{peer} ended the connection: {}", alert_text(*alert)))
        }
        TlsError::InvalidMessage(_) | TlsError::InappropriateMessage { .. } => (
            ErrorKind::Incompatible,
            format!("{peer} does not speak TLS: use redis:// for it, or the port that does"),
        ),
        TlsError::PeerIncompatible(why) => (
            ErrorKind::Incompatible,
            format!("{peer} has no version or cipher of TLS in common with this client ({why:?})"),
        ),
        error => (ErrorKind::Io, format!("TLS with {peer}: {error}")),
    };
    Some(Error::new(kind, text))
}

/// Why a certificate is refused.
fn reason(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "it comes from an unknown authority".to_owned(),
        CertificateError::BadSignature => "it is not signed by the authority that it names".into(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName => "it is for another name".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<_> = presented.iter().map(|name| bare_name(name)).collect();
            format!("it is for other names ({})", names.join(", "))
        }
        why => why.to_string(),
    }
}

/// A name of a certificate without its kind: rustls shows `DnsName("host")`.
fn bare_name(name: &str) -> &str {
    let inside = name.split_once('(').map_or(name, |(_, inside)| inside);
    inside.trim_end_matches(')').trim_matches('"')
}

/// Why the certificate of a server is refused, and what to do.
#[cfg(feature = "remote")]
fn way_out(why: &CertificateError) -> String {
    let advice = match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "; if you trust it, name the file of its authority in tls_ca_file"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "; the server needs a new one, or this machine the right time"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "; check the time of this machine"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "; use one of them in the address, or set tls_server_name"
        }
        _ => "",
    };
    format!("{}{advice}", reason(why))
}

/// An alert in words.
fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "it does not know the authority of our certificate".into(),
        AlertDescription::CertificateRequired => "it needs a certificate".into(),
        AlertDescription::CertificateExpired => "our certificate has expired".into(),
        alert => format!("TLS alert {alert:?}"),
    }
}

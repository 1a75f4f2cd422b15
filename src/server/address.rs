//! The address on which a store is served: `unix:PATH`, `tcp:HOST:PORT` or `tls:HOST:PORT`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use super::stream::Listener;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ClientCertificates, Options};

/// An address that was understood. A host may have several addresses: the first one that this
/// machine has is used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    /// `unix:PATH`: a Unix socket at a path.
    Unix(PathBuf),
    /// `tcp:HOST:PORT`: the addresses that the host has, for connections in clear.
    Tcp(Vec<SocketAddr>),
    /// `tls:HOST:PORT`: the addresses that the host has, for connections that TLS encrypts.
    Tls(Vec<SocketAddr>),
}

impl ServerAddress {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refused = |why: &str| {
            let message = format!(
                "cannot listen on '{text}': {why}; use unix:PATH, tcp:HOST:PORT or tls:HOST:PORT"
            );
            Error::new(ErrorKind::Invalid, message)
        };
        match text.split_once(':') {
            Some(("unix", "")) => Err(refused("there is no path")),
            Some(("unix", path)) => Ok(Self::Unix(path.into())),
            Some((kind @ ("tcp" | "tls"), place)) => {
                let port = place.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
                match port {
                    None => return Err(refused("there is no port")),
                    Some((_, Err(_))) => return Err(refused("the port is no number up to 65535")),
                    Some(("", _)) => return Err(refused("there is no host")),
                    Some((_, Ok(_))) => {}
                }
                let found = place.to_socket_addrs().map_err(|error| refused(&error.to_string()))?;
                let found: Vec<_> = found.collect();
                match kind {
                    _ if found.is_empty() => Err(refused("the host has no address")),
                    "tls" => Ok(Self::Tls(found)),
                    _ => Ok(Self::Tcp(found)),
                }
            }
            _ => Err(refused("it names no kind of socket")),
        }
    }

    /// Fails if others than this machine's users could reach the store without a password, unless
    /// the options allow it.
    pub(crate) fn check_exposure(&self, options: &Options) -> Result<()> {
        let certified = options.server_tls_auth_clients == ClientCertificates::Required;
        let addresses = match self {
            Self::Tcp(addresses) => addresses,
            Self::Tls(addresses) if !certified => addresses,
            _ => return Ok(()),
        };
        let beyond = addresses.iter().any(|address| !address.ip().is_loopback());
        if beyond && options.server_password.is_empty() && !options.server_unprotected {
            return Err(Error::new(
                ErrorKind::Invalid,
                "anyone who reaches this address could read and write everything: set \
                 server_password, or server_unprotected if that is meant, or listen on 127.0.0.1",
            ));
        }
        Ok(())
    }

    /// Begins to listen.
    pub(crate) fn listen(&self, options: &Options) -> Result<Listener> {
        match self {
            Self::Unix(path) => Listener::unix(path),
            Self::Tcp(addresses) => listen_on_first(addresses),
            Self::Tls(addresses) => listen_on_first(addresses)?.with_tls(options),
        }
    }
}

/// Listens on the first of these addresses that this machine has.
fn listen_on_first(addresses: &[SocketAddr]) -> Result<Listener> {
    let mut failure = None;
    for address in addresses {
        match Listener::tcp(*address, false) {
            Ok(Some(listener)) => return Ok(listener),
            Ok(None) => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let none = || Error::new(ErrorKind::Invalid, "there is no address to listen on");
    Err(failure.unwrap_or_else(none))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_or_refused_with_the_reason() {
        let tcp = |text: &str| ServerAddress::Tcp(vec![text.parse().unwrap()]);
        let parse = |text: &str| ServerAddress::parse(text);
        assert_eq!(parse("unix:/a b/c").unwrap(), ServerAddress::Unix("/a b/c".into()));
        assert_eq!(parse("tcp:127.0.0.1:0").unwrap(), tcp("127.0.0.1:0"));
        assert_eq!(parse("tcp:[::1]:6380").unwrap(), tcp("[::1]:6380"));
        let tls = ServerAddress::Tls(vec!["127.0.0.1:6380".parse().unwrap()]);
        assert_eq!(parse("tls:127.0.0.1:6380").unwrap(), tls);
        for (text, why) in [
            ("", "no kind of socket"),
            ("/a/path", "no kind of socket"),
            ("udp:127.0.0.1:1", "no kind of socket"),
            ("unix:", "no path"),
            ("tcp:127.0.0.1", "no port"),
            ("tls:127.0.0.1", "no port"),
            ("tcp:127.0.0.1:", "no number"),
            ("tcp:127.0.0.1:70000", "no number"),
            ("tcp::6380", "no host"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(error.message().contains(why), "{text}: {error}");
            assert!(
                error.message().contains("use unix:PATH, tcp:HOST:PORT or tls:HOST:PORT"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_port_beyond_this_machine_needs_a_password_or_a_clear_word() {
        let (here, beyond) = (["tcp:127.0.0.1:1", "unix:/x"], ["tcp:0.0.0.0:1", "tcp:[::]:1"]);
        let exposure = |text: &str, options: &Options| {
            ServerAddress::parse(text).unwrap().check_exposure(options).is_ok()
        };
        let plain = Options::default();
        assert!(here.iter().all(|text| exposure(text, &plain)));
        assert!(!beyond.iter().any(|text| exposure(text, &plain)));
        let password = Options { server_password: "x".to_owned(), ..Options::default() };
        assert!(beyond.iter().all(|text| exposure(text, &password)));
        let allowed = Options { server_unprotected: true, ..Options::default() };
        assert!(beyond.iter().all(|text| exposure(text, &allowed)));
        // A certificate of every client is as good as a password; encryption alone is not.
        assert!(exposure("tls:0.0.0.0:1", &plain));
        for clients in [ClientCertificates::Ignored, ClientCertificates::Optional] {
            let options = Options { server_tls_auth_clients: clients, ..Options::default() };
            assert!(!exposure("tls:0.0.0.0:1", &options));
        }
    }
}

//! Addresses of remote stores: one server, or the nodes of a cluster.
//!
//! `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS,
//! `unix:///path/to/socket[?db=N]`, and `redis-cluster://` or `rediss-cluster://` with several hosts
//! between commas.

use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// The port of a server whose address names none.
const USUAL_PORT: u16 = 6379;

/// The parsed address of a remote store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Where the store is.
    pub place: Place,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// The user, if not the usual one.
    pub user: Option<String>,
    /// The password, if one is needed.
    pub password: Option<String>,
    /// The number of the database, if one is named.
    pub database: Option<u32>,
}

/// Where a remote store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One server.
    Server(Endpoint),
    /// A cluster, with some of its nodes.
    Cluster(Vec<Endpoint>),
}

/// The socket of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// A host and a port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(String),
}

/// How the addresses of remote stores begin: the scheme, whether it is encrypted, whether it is a
/// cluster.
const SCHEMES: [(&str, bool, bool); 4] = [
    ("redis://", false, false),
    ("rediss://", true, false),
    ("redis-cluster://", false, true),
    ("rediss-cluster://", true, true),
];

impl Address {
    /// Whether a path is the address of a remote store rather than a directory.
    pub fn is_remote(path: &str) -> bool {
        path.starts_with("unix://") || SCHEMES.iter().any(|(scheme, ..)| path.starts_with(scheme))
    }

    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            let message = format!("the address {}: {why}", without_password(text));
            Error::new(ErrorKind::Invalid, message)
        };
        if let Some(rest) = text.strip_prefix("unix://") {
            let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
            if path.is_empty() {
                return Err(bad("name the path of a socket: unix:///path/to/socket"));
            }
            let database = match query.strip_prefix("db=") {
                Some(number) => Some(number.parse().map_err(|_| bad("the database is no number"))?),
                None if query.is_empty() => None,
                None => return Err(bad("after the path only ?db=N is known")),
            };
            let place = Place::Server(Endpoint::Unix(path.to_owned()));
            return Ok(Self { place, tls: false, user: None, password: None, database });
        }
        let found = SCHEMES.iter().find(|(scheme, ..)| text.starts_with(scheme));
        let (scheme, tls, cluster) = *found.ok_or_else(|| {
            bad("use redis://host:port, rediss://, unix:///path or redis-cluster://host,host")
        })?;
        let rest = text.get(scheme.len()..).unwrap_or_default();
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match database {
            "" => None,
            number => Some(number.parse().map_err(|_| bad("the database is no number"))?),
        };
        let endpoint = |host: &str| {
            host_and_port(host).map(|(host, port)| Endpoint::Tcp(host, port)).ok_or_else(|| {
                bad("the port is no number; a host of IPv6 stands in brackets: [::1]:6379")
            })
        };
        let place = if cluster {
            Place::Cluster(hosts.split(',').map(endpoint).collect::<Result<_>>()?)
        } else {
            Place::Server(endpoint(hosts)?)
        };
        let (user, password) = match login {
            None => (None, None),
            Some(login) => {
                let (user, password) = login.split_once(':').unwrap_or(("", login));
                let plain = |text: &str| {
                    let decoded = percent_decoded(text);
                    decoded.ok_or_else(|| bad("a % in user or password needs two hex digits"))
                };
                (non_empty(plain(user)?), non_empty(plain(password)?))
            }
        };
        Ok(Self { place, tls, user, password, database })
    }
}

impl fmt::Display for Address {
    /// The address without user and password, for messages and files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.tls { "s" } else { "" };
        match &self.place {
            Place::Server(Endpoint::Unix(path)) => {
                write!(f, "unix://{path}")?;
                return self.database.map_or(Ok(()), |number| write!(f, "?db={number}"));
            }
            Place::Server(endpoint) => write!(f, "redis{secure}://{endpoint}")?,
            Place::Cluster(nodes) => {
                let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
                write!(f, "redis{secure}-cluster://{}", nodes.join(","))?;
            }
        }
        self.database.map_or(Ok(()), |number| write!(f, "/{number}"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => f.write_str(path),
        }
    }
}

/// An address as it may stand in a message.
fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            let (scheme, rest) = (text.get(..scheme + 3), text.get(at..));
            format!("{}***{}", scheme.unwrap_or_default(), rest.unwrap_or_default())
        }
        _ => text.to_owned(),
    }
}

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A text whose `%41` stand for bytes; `None` if one is malformed or the bytes are no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Splits a host and a port; an IPv6 address is in brackets.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return None,
            }
        }
        None => match address.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => return None,
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = port.map_or(Some(USUAL_PORT), |port| port.parse().ok())?;
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Address {
        let place = Place::Server(Endpoint::Tcp(host.to_owned(), port));
        Address { place, tls: false, user: None, password: None, database: None }
    }

    fn parse(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    #[test]
    fn every_part_but_the_scheme_may_be_missing() {
        assert_eq!(parse("redis://"), tcp("127.0.0.1", 6379));
        assert_eq!(parse("redis://h:7/3"), Address { database: Some(3), ..tcp("h", 7) });
        assert_eq!(parse("rediss://h"), Address { tls: true, ..tcp("h", 6379) });
        let with_password = Address { password: Some("p:@w".into()), ..tcp("h", 6379) };
        assert_eq!(parse("redis://:p:@w@h"), with_password);
        assert_eq!(parse("redis://:p%3a%40w@h"), with_password);
        let with_user =
            Address { user: Some("u".into()), password: Some("p".into()), ..tcp("::1", 1) };
        assert_eq!(parse("redis://u:p@[::1]:1"), with_user);
        assert_eq!(with_user.to_string(), "redis://[::1]:1");
        let socket = parse("unix:///run/r.sock?db=2");
        assert_eq!(socket.place, Place::Server(Endpoint::Unix("/run/r.sock".into())));
        assert_eq!(
            (socket.database, socket.to_string()),
            (Some(2), "unix:///run/r.sock?db=2".into())
        );
    }

    #[test]
    fn a_cluster_has_several_nodes() {
        let cluster = parse("redis-cluster://:p@a:1,b,[::1]:3");
        let node = |host: &str, port| Endpoint::Tcp(host.into(), port);
        assert_eq!(
            cluster.place,
            Place::Cluster(vec![node("a", 1), node("b", 6379), node("::1", 3)])
        );
        assert_eq!(cluster.to_string(), "redis-cluster://a:1,b:6379,[::1]:3");
    }

    #[test]
    fn what_is_no_address_is_refused_without_its_password() {
        for text in [
            "",
            "http://h",
            "redis://h:x",
            "redis://h/x",
            "unix:///s?x=1",
            "unix://",
            "redis://::1",
            "redis://u:secret%2@h",
            "redis://u:secret@h:x",
            "redis-cluster://a,b:x",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(!error.message().contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_addresses_are_remote() {
        assert!(Address::is_remote("redis-cluster://a") && Address::is_remote("unix:///s"));
        assert!(!Address::is_remote("data") && !Address::is_remote(":memory:"));
        assert!(!Address::is_remote("./redis://x"));
    }
}

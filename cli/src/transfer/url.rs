//! Addresses of Redis servers: `redis://[[user]:password@]host[:port][/database]` or
//! `unix:///path/to/socket[?db=N]`.

use crate::failure::Failure;

/// The parsed address of a Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    pub(crate) endpoint: Endpoint,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// `None` stands for all databases.
    pub(crate) database: Option<u32>,
}

/// The socket of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(String, u16),
    Unix(String),
}

impl RedisUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| Failure::usage(format!("{text}: {why}"));
        if let Some(rest) = text.strip_prefix("unix://") {
            let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
            let database = match query.strip_prefix("db=") {
                Some(number) => Some(number.parse().map_err(|_| bad("the database is no number"))?),
                None if query.is_empty() => None,
                None => return Err(bad("only ?db=N is known")),
            };
            let endpoint = Endpoint::Unix(path.to_owned());
            return Ok(Self { endpoint, user: None, password: None, database });
        }
        let rest = text
            .strip_prefix("redis://")
            .ok_or_else(|| bad("use redis://host:port/database or unix:///path"))?;
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (address, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match database {
            "" => None,
            number => Some(number.parse().map_err(|_| bad("the database is no number"))?),
        };
        let (host, port) = host_and_port(address).ok_or_else(|| bad("the port is no number"))?;
        let (user, password) = login.map_or((None, None), |login| match login.split_once(':') {
            Some((user, password)) => (non_empty(user), non_empty(password)),
            None => (None, non_empty(login)),
        });
        Ok(Self { endpoint: Endpoint::Tcp(host, port), user, password, database })
    }

    /// The address without the password, for messages and files.
    pub(crate) fn shown(&self) -> String {
        let database = self.database.map_or_else(String::new, |number| format!("/{number}"));
        match &self.endpoint {
            Endpoint::Tcp(host, port) => format!("redis://{host}:{port}{database}"),
            Endpoint::Unix(path) => format!("unix://{path}{database}"),
        }
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Splits a host and a port; an IPv6 address is in brackets.
fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match address.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = port.map_or(Some(6379), |port| port.parse().ok())?;
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> RedisUrl {
        let endpoint = Endpoint::Tcp(host.to_owned(), port);
        RedisUrl { endpoint, user: None, password: None, database: None }
    }

    #[test]
    fn every_part_but_the_scheme_may_be_missing() {
        let parse = |text| RedisUrl::parse(text).unwrap();
        assert_eq!(parse("redis://"), tcp("127.0.0.1", 6379));
        assert_eq!(parse("redis://h:7/3"), RedisUrl { database: Some(3), ..tcp("h", 7) });
        let with_password = RedisUrl { password: Some("p:@w".into()), ..tcp("h", 6379) };
        assert_eq!(parse("redis://:p:@w@h"), with_password);
        let with_user =
            RedisUrl { user: Some("u".into()), password: Some("p".into()), ..tcp("::1", 1) };
        assert_eq!(parse("redis://u:p@[::1]:1"), with_user);
        assert_eq!(with_user.shown(), "redis://::1:1");
        let socket = parse("unix:///run/r.sock?db=2");
        assert_eq!(
            (socket.endpoint, socket.database),
            (Endpoint::Unix("/run/r.sock".into()), Some(2))
        );
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "http://h", "redis://h:x", "redis://h/x", "unix:///s?x=1"] {
            assert!(RedisUrl::parse(text).is_err(), "{text}");
        }
    }
}

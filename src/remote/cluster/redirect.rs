//! What a node replies when it did not run a command, and what to do then.

use super::slots::host_of;
use crate::remote::address::Endpoint;

/// A reply by which a node says that it did not run a command, though another one, or it later, can.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The slot is served by this node from now on.
    Moved(Endpoint),
    /// The slot is on its way to this node: ask it this once.
    Ask(Endpoint),
    /// Nobody can run it at this moment.
    Later,
}

/// The first words of replies that mean [`Redirect::Later`].
const LATER: [&str; 5] = ["TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY"];

/// Whether an error reply says that a node did not run what another one, or it later, can.
pub(in crate::remote) fn is_redirect(text: &str) -> bool {
    let word = text.split(' ').next().unwrap_or_default();
    LATER.contains(&word) || matches!(word, "MOVED" | "ASK")
}

impl Redirect {
    /// Reads an error reply of the node `asked`. `None` if it is an error of the command itself.
    pub(super) fn of(text: &str, asked: &Endpoint) -> Option<Self> {
        let mut words = text.split(' ');
        match words.next()? {
            "MOVED" => endpoint(words.nth(1)?, asked).map(Self::Moved),
            "ASK" => endpoint(words.nth(1)?, asked).map(Self::Ask),
            word => LATER.contains(&word).then_some(Self::Later),
        }
    }
}

/// An endpoint as `host:port`. Without a host, or with `?`, it is that of the node that was asked.
fn endpoint(text: &str, asked: &Endpoint) -> Option<Endpoint> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if matches!(host, "" | "?") { host_of(asked) } else { host.to_owned() };
    Some(Endpoint::Tcp(host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_told_from_errors() {
        let asked = Endpoint::Tcp("asked".into(), 1);
        let of = |text| Redirect::of(text, &asked);
        let to = |host: &str, port| Endpoint::Tcp(host.into(), port);
        assert_eq!(of("MOVED 3999 127.0.0.1:6381"), Some(Redirect::Moved(to("127.0.0.1", 6381))));
        assert_eq!(of("MOVED 3999 :6381"), Some(Redirect::Moved(to("asked", 6381))));
        assert_eq!(of("MOVED 3999 ?:6381"), Some(Redirect::Moved(to("asked", 6381))));
        assert_eq!(of("ASK 3999 ::1:6381"), Some(Redirect::Ask(to("::1", 6381))));
        assert_eq!(of("TRYAGAIN Multiple keys request during rehashing"), Some(Redirect::Later));
        assert_eq!(of("CLUSTERDOWN The cluster is down"), Some(Redirect::Later));
        for text in ["ERR MOVED", "MOVED", "MOVED 1", "MOVED 1 nowhere", "ASK 1 h:x", ""] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}

//! The first line of a script or library: `#!lua name=mylib flags=no-writes,allow-stale`.

use crate::commands::quoted_words;
use crate::error::{Error, ErrorKind, Result};

/// The flags that a script can have. Only `no-writes` makes a difference here.
pub(super) const FLAGS: [&str; 5] =
    ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// What the first line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shebang {
    /// Whether there is such a line.
    pub(super) given: bool,
    /// The name of the engine, such as `lua`.
    pub(super) engine: String,
    /// The name of the library.
    pub(super) name: Option<Vec<u8>>,
    /// Whether the script promises not to write.
    pub(super) no_writes: bool,
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, text)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Shebang {
    /// Parses the first line of a script. Returns it and the rest, which keeps the line's end so
    /// that line numbers stay right.
    pub(super) fn of_script(source: &[u8]) -> Result<(Self, &[u8])> {
        if !source.starts_with(b"#!") {
            return Ok((Self::default(), source));
        }
        let end = source.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| invalid("ERR Invalid script shebang"))?;
        let (line, rest) = source.split_at(end);
        let words = quoted_words::split(line)
            .ok_or_else(|| invalid("ERR Invalid engine in script shebang"))?;
        let (engine, words) =
            words.split_first().map_or(("".into(), &[][..]), |(first, rest)| (shown(first), rest));
        if engine != "#!lua" {
            return Err(invalid(format!("ERR Unexpected engine in script shebang: {engine}")));
        }
        let mut shebang = Self { given: true, engine, ..Self::default() };
        for word in words {
            let Some(flags) = word.strip_prefix(b"flags=") else {
                return Err(invalid(format!("ERR Unknown lua shebang option: {}", shown(word))));
            };
            for flag in flags.split(|byte| *byte == b',').filter(|_| !flags.is_empty()) {
                if !FLAGS.iter().any(|known| known.as_bytes() == flag) {
                    let text = format!("ERR Unexpected flag in script shebang: {}", shown(flag));
                    return Err(invalid(text));
                }
                shebang.no_writes |= flag == b"no-writes";
            }
        }
        Ok((shebang, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(source: &str) -> String {
        Shebang::of_script(source.as_bytes()).unwrap_err().message().to_owned()
    }

    #[test]
    fn the_first_line_is_read_and_the_others_keep_their_numbers() {
        let (shebang, rest) = Shebang::of_script(b"#!lua flags=no-writes,allow-oom\nx").unwrap();
        assert!(shebang.given && shebang.no_writes);
        assert_eq!(rest, b"\nx");
        let (shebang, rest) = Shebang::of_script(b"return 1").unwrap();
        assert_eq!((shebang, rest), (Shebang::default(), &b"return 1"[..]));
    }

    #[test]
    fn what_is_wrong_with_it_is_named() {
        assert_eq!(refusal("#!lua"), "ERR Invalid script shebang");
        assert_eq!(refusal("#!js\n"), "ERR Unexpected engine in script shebang: #!js");
        assert_eq!(refusal("#!lua a=b\n"), "ERR Unknown lua shebang option: a=b");
        assert_eq!(refusal("#!lua flags=x\n"), "ERR Unexpected flag in script shebang: x");
    }
}

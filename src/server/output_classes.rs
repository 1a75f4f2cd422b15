//! The value of `client-output-buffer-limit`: for each class of clients a hard limit, a soft limit,
//! and the seconds that the soft one may be exceeded. A number alone is the hard limit of normal
//! clients, which is the only limit that they have.

use crate::messages::OutputLimits;

use super::settings::parse_bytes;

const WRONG: &str = "wrong number of arguments in buffer limit configuration";

/// The limits of each class, in the order in which CONFIG GET shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputClasses([OutputLimits; 3]);

const NAMES: [&str; 3] = ["normal", "slave", "pubsub"];

impl Default for OutputClasses {
    fn default() -> Self {
        let normal = OutputLimits { hard_bytes: 1 << 30, soft_bytes: 0, soft_seconds: 0 };
        let slave = OutputLimits { hard_bytes: 256 << 20, soft_bytes: 64 << 20, soft_seconds: 60 };
        Self([normal, slave, OutputLimits::default()])
    }
}

impl OutputClasses {
    /// Applies a value of CONFIG SET; classes that it does not name stay as they are.
    pub(crate) fn with(self, value: &str) -> Result<Self, &'static str> {
        let (mut classes, words) = (self, value.split_whitespace().collect::<Vec<_>>());
        if let [only] = words.as_slice() {
            let hard_bytes = parse_bytes(only)?;
            classes.of("normal")?.hard_bytes = hard_bytes;
            return Ok(classes);
        }
        if words.is_empty() {
            return Err(WRONG);
        }
        for part in words.chunks(4) {
            let [name, hard, soft, seconds] = part else { return Err(WRONG) };
            *classes.of(name)? = OutputLimits {
                hard_bytes: parse_bytes(hard)?,
                soft_bytes: parse_bytes(soft)?,
                soft_seconds: seconds.parse().map_err(|_| {
                    "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                })?,
            };
        }
        Ok(classes)
    }

    fn of(&mut self, name: &str) -> Result<&mut OutputLimits, &'static str> {
        let name = name.to_ascii_lowercase();
        let name = if name == "replica" { "slave" } else { name.as_str() };
        let at = NAMES.iter().position(|known| *known == name);
        let found = at.and_then(|at| self.0.get_mut(at));
        found.ok_or("Unrecognized client limit class specified in buffer limit configuration.")
    }

    /// The hard limit of normal clients; zero is none.
    pub(crate) fn normal_bytes(&self) -> usize {
        self.0.first().map_or(0, |limits| limits.hard_bytes)
    }

    /// The hard limit of clients that monitor, which is that of replicas; zero is none.
    pub(crate) fn monitor_bytes(&self) -> usize {
        self.0.get(1).map_or(0, |limits| limits.hard_bytes)
    }

    /// The limits of clients that are subscribed.
    pub(crate) fn subscribers(&self) -> OutputLimits {
        self.0.last().copied().unwrap_or_default()
    }

    /// The value as CONFIG GET shows it.
    pub(crate) fn text(&self) -> String {
        let class = |(name, limits): (&str, &OutputLimits)| {
            let OutputLimits { hard_bytes, soft_bytes, soft_seconds } = limits;
            format!("{name} {hard_bytes} {soft_bytes} {soft_seconds}")
        };
        NAMES.into_iter().zip(&self.0).map(class).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_set_one_by_one_or_together() {
        let classes = OutputClasses::default();
        let shown = "normal 1073741824 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";
        assert_eq!(classes.text(), shown);
        assert_eq!(classes.with(shown), Ok(classes));
        let changed = classes.with("pubsub 1mb 2k 5 normal 0 0 0").unwrap();
        let limits = OutputLimits { hard_bytes: 1 << 20, soft_bytes: 2000, soft_seconds: 5 };
        assert_eq!((changed.subscribers(), changed.normal_bytes()), (limits, 0));
        assert_eq!(classes.with("4mb").unwrap().normal_bytes(), 4 << 20);
        for wrong in ["", "pubsub 1 2", "others 1 2 3", "pubsub x 2 3", "pubsub 1 2 x", "x"] {
            assert!(classes.with(wrong).is_err(), "{wrong}");
        }
    }
}

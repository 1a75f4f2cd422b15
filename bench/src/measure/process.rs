//! What the kernel knows of this process: bytes it sent to the device, memory it holds.

use std::fs;

/// Bytes of pages this process dirtied on their way to the device, or nothing where the kernel
/// does not count them. Short-lived files that are deleted before they are written back count too.
pub(crate) fn written_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    field(&text, "write_bytes:")
}

/// Resident memory now and at its highest, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) resident: u64,
    pub(crate) peak: u64,
}

pub(crate) fn memory() -> Option<Memory> {
    parse_memory(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_memory(status: &str) -> Option<Memory> {
    Some(Memory {
        resident: field(status, "VmRSS:")? * 1024,
        peak: field(status, "VmHWM:")? * 1024,
    })
}

/// The number after `name`, which begins a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_status_file_in_kib() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_memory(status), Some(Memory { resident: 1 << 20, peak: 2 << 20 }));
        assert_eq!(parse_memory("Name:\tx\n"), None);
    }

    #[test]
    fn written_bytes_are_not_the_cancelled_ones() {
        let io = "wchar: 9\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!(field(io, "write_bytes:"), Some(4096));
    }

    #[test]
    fn this_process_holds_memory() {
        let memory = memory().unwrap();
        assert!(memory.resident > 0 && memory.peak >= memory.resident);
    }
}

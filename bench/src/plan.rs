//! What a child is to run: sizes, rows and the settings of every peer.

use serde::{Deserialize, Serialize};

use crate::keys::KEY_BYTES;
use crate::rows::Row;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) num: u64,
    pub(crate) value_bytes: usize,
    pub(crate) reads: u64,
    pub(crate) seeks: u64,
    pub(crate) scan_length: u64,
    pub(crate) sync_num: u64,
    pub(crate) mixed_seconds: f64,
    pub(crate) seed: u64,
    pub(crate) rows: Vec<Row>,
    pub(crate) settings: Settings,
}

impl Plan {
    pub(crate) fn wants(&self, row: Row) -> bool {
        self.rows.contains(&row)
    }

    pub(crate) fn wants_any(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| self.wants(*row))
    }

    /// Bytes of keys and values in the store.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.num.saturating_mul((KEY_BYTES + self.value_bytes) as u64)
    }
}

/// How a peer is opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) write_buffer: u64,
    pub(crate) cache: u64,
    /// One limit for all memory, for a peer that supports one; it replaces the two above.
    pub(crate) memory_budget: Option<u64>,
    pub(crate) bloom_bits: u32,
    /// Threads for flushes and compactions together.
    pub(crate) background_jobs: u32,
    pub(crate) compression: Compression,
    /// Whether a write returns only once it is on the device.
    pub(crate) synced: bool,
}

/// The settings of the published figures.
impl Default for Settings {
    fn default() -> Self {
        Self {
            write_buffer: 64 << 20,
            cache: 256 << 20,
            memory_budget: None,
            bloom_bits: 10,
            background_jobs: 2,
            compression: Compression::None,
            synced: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    None,
    Lz4,
}

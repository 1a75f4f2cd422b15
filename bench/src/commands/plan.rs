//! What a child is to run: sizes, rows and the settings of the stores.

use serde::{Deserialize, Serialize};

use super::rows::Row;
use crate::plan::Settings;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Keys, members of each large collection, and small hashes.
    pub(crate) num: u64,
    /// Where a row stops if it has not run all its commands.
    pub(crate) row_seconds: f64,
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
}

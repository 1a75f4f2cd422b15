//! The input of `load` and `import`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crate::failure::Failure;
use crate::tools::atomic_file::file_failure;
use crate::transfer::{Interrupt, InterruptibleReader};

/// Opens a file, or standard input, and reads its first bytes. An unreadable input fails here,
/// before a store is created for it.
pub(crate) fn open_input(
    path: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<BufReader<InterruptibleReader>, Failure> {
    let input = match path {
        Some(path) => {
            let file = File::open(path).map_err(|error| file_failure(path, &error))?;
            InterruptibleReader::new(|| file, interrupt)
        }
        None => InterruptibleReader::new(std::io::stdin, interrupt),
    };
    let mut input = BufReader::with_capacity(256 << 10, input);
    let shown = path.unwrap_or(Path::new("standard input"));
    input.fill_buf().map_err(|error| file_failure(shown, &error))?;
    Ok(input)
}

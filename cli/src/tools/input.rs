//! Where `load` and `import` read from.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crate::failure::Failure;
use crate::tools::whole_file::named;
use crate::transfer::{Interrupt, Interruptible};

/// A file, or standard input without one, with its first bytes read: what cannot be read fails
/// here, before a store is made for it.
pub(crate) fn begin_to_read(
    path: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<BufReader<Interruptible>, Failure> {
    let input = match path {
        Some(path) => {
            let file = File::open(path).map_err(|error| named(path, &error))?;
            Interruptible::new(|| file, interrupt)
        }
        None => Interruptible::new(std::io::stdin, interrupt),
    };
    let mut input = BufReader::with_capacity(256 << 10, input);
    let shown = path.unwrap_or(Path::new("standard input"));
    input.fill_buf().map_err(|error| named(shown, &error))?;
    Ok(input)
}

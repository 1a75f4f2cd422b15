//! The emitters. Each makes the text of generated files from the IR.

mod cpp;
mod dispatch;
mod documentation;
mod ffi;
mod header;
mod methods;
mod python;
mod syntax;
mod typed;

use std::path::Path;

use crate::ir::Family;
use crate::source::Sources;
use crate::text::formatted;
use crate::{ir, source};

/// The path of a file in the repository, and its text.
type File = (String, String);

/// The generated Rust files.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<File>, String> {
    let families = ir::families()?;
    let dispatch = dispatch::dispatch(&families);
    let mut files =
        vec![("src/commands/generated/dispatch.rs".to_owned(), formatted(&dispatch, root)?)];
    let methods = formatted(&methods::methods(&families), root)?;
    files.push(("src/commands/generated/methods.rs".to_owned(), methods));
    let typed = formatted(&typed::typed(&families), root)?;
    files.push(("src/commands/generated/typed.rs".to_owned(), typed));
    for family in &families {
        let name = format!("src/ffi/generated/{}.rs", family.group.module);
        files.push((name, formatted(&ffi::functions(family)?, root)?));
    }
    let modules = formatted(&ffi::modules(&families), root)?;
    files.push(("src/ffi/generated/mod.rs".to_owned(), modules));
    Ok(files)
}

/// The header, the files of the bindings and the documentation.
pub(crate) fn other_files(root: &Path) -> Result<Vec<File>, String> {
    let families = ir::families()?;
    let sources = source::read(root)?;
    let file = |name: &str, text: String| (name.to_owned(), text);
    Ok(vec![
        file("include/lsmkv.h", header::header(root)?),
        file("bindings/cpp/lsmkv/commands.hpp", cpp::commands(&families)?),
        file("bindings/python/lsmkv/_signatures.py", python::signatures(&families, &sources)),
        file("bindings/python/lsmkv/_regular.py", python::methods(&families)?),
        file("bindings/python/lsmkv/_queued.pyi", python::stub(&families, root)?),
        file("docs/COMMANDS.md", documentation::documentation(&families)),
        file("tests/testdata/symbols.txt", symbols(&families, &sources)),
    ])
}

/// The functions that the library exports, one per line. A change of the ABI changes this file, which
/// a reviewer sees; a test compares it with the library.
fn symbols(families: &[Family], sources: &Sources) -> String {
    let commands = families.iter().flat_map(|family| &family.commands);
    let generated = commands.flat_map(|described| &described.functions).map(|it| &it.name);
    let by_hand = sources.sections.iter().flat_map(|(_, functions)| functions).map(|it| &it.name);
    let mut names: Vec<&String> = generated.chain(by_hand).collect();
    names.sort_unstable();
    names.iter().map(|name| format!("{name}\n")).collect()
}

/// The name of an argument as a Rust identifier that is no keyword.
fn identifier(name: &str) -> String {
    let name = name.replace('-', "_");
    if matches!(name.as_str(), "type" | "where") { name + "_" } else { name }
}

/// The method of `Tx` or the parser of a command.
fn method(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if matches!(lower.as_str(), "type" | "move") { format!("r#{lower}") } else { lower }
}

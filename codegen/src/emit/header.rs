//! Emits include/lsmkv.h: the output of cbindgen for src/ffi, with a title before each section.

use std::fs;
use std::path::Path;

use crate::source::SECTIONS;

/// Emits the whole file.
pub(crate) fn header(root: &Path) -> Result<String, String> {
    let mut config = cbindgen::Config::from_file(root.join("include/cbindgen.toml"))?;
    config.after_includes = config.after_includes.map(|text| with_version(&text));
    // cbindgen gets files instead of the crate: for a crate it runs `cargo metadata`, which fails
    // in a build without network.
    let mut builder = cbindgen::Builder::new().with_config(config);
    for file in SECTIONS.iter().flat_map(|(_, files)| *files) {
        builder = builder.with_src(root.join("src/ffi").join(file));
    }
    let bindings = builder.generate().map_err(|e| format!("cbindgen: {e}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|e| format!("cbindgen: {e}"))?;
    titled(text, root)
}

fn with_version(text: &str) -> String {
    text.replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@MAJOR@", env!("CARGO_PKG_VERSION_MAJOR"))
        .replace("@MINOR@", env!("CARGO_PKG_VERSION_MINOR"))
        .replace("@PATCH@", env!("CARGO_PKG_VERSION_PATCH"))
}

/// Adds a title before the first function of each section.
fn titled(mut text: String, root: &Path) -> Result<String, String> {
    for (title, files) in SECTIONS {
        let mut first = None;
        for file in *files {
            let path = root.join("src/ffi").join(file);
            let source =
                fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            first = first.or_else(|| first_function(&source));
        }
        let first = first.ok_or_else(|| format!("{title} has no function"))?;
        let at = declaration(&text, &first).ok_or_else(|| format!("{first} is not declared"))?;
        // The comment of the declaration begins on a line of its own.
        let at = text.get(..at).and_then(|before| before.rfind("\n/*\n")).unwrap_or(at) + 1;
        let line = "-".repeat(96usize.saturating_sub(title.len()));
        text.insert_str(at, &format!("/* {title} {line} */\n\n"));
    }
    Ok(text)
}

fn first_function(source: &str) -> Option<String> {
    let (_, after) = source.split_once("extern \"C\" fn ")?;
    Some(after.split('(').next()?.to_owned())
}

fn declaration(text: &str, function: &str) -> Option<usize> {
    let places = [format!(" {function}("), format!("*{function}(")];
    places.iter().filter_map(|place| text.find(place)).min()
}

//! Titles in include/lsmkv.h: what cbindgen writes is grouped by source file but not titled.

/// A part of the header: its title, and the texts of the source files whose functions are in it.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) sources: Vec<String>,
}

/// The header with a title before the first function of each section.
pub(crate) fn with_sections(header: &str, sections: &[Section]) -> Result<String, String> {
    let mut text = header.to_owned();
    for section in sections {
        let first = section.sources.iter().find_map(|source| first_function(source));
        let first = first.ok_or_else(|| format!("{} has no function", section.title))?;
        let at = declaration(&text, &first).ok_or_else(|| format!("{first} is not declared"))?;
        // The comment of the declaration begins on a line of its own.
        let at = text.get(..at).and_then(|before| before.rfind("\n/*\n")).unwrap_or(at) + 1;
        let line = "-".repeat(96usize.saturating_sub(section.title.len()));
        text.insert_str(at, &format!("/* {} {line} */\n\n", section.title));
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

//! The functions that a header declares.

/// A function of the header.
#[derive(Debug)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    /// Types and names.
    pub(crate) parameters: Vec<(String, String)>,
}

/// Every declaration that `LSMKV_API` begins.
pub(crate) fn declarations(header: &str) -> Vec<Declaration> {
    let code = without_comments(header);
    let code = code.split_once("extern \"C\" {").map_or(code.as_str(), |(_, rest)| rest);
    code.split(';').filter_map(|text| declaration(text.split_once("LSMKV_API")?.1)).collect()
}

fn without_comments(header: &str) -> String {
    let mut parts = header.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |code, part| code + part.split_once("*/").map_or("", |(_, after)| after))
}

fn declaration(text: &str) -> Option<Declaration> {
    let (before, after) = text.split_once('(')?;
    let (_, name) = typed(before)?;
    let parameters = after.trim_end().trim_end_matches(')');
    let parameters = parameters.split(',').filter_map(typed).collect();
    Some(Declaration { name, parameters })
}

/// `const char *name` as type and name.
fn typed(text: &str) -> Option<(String, String)> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = words.rfind([' ', '*'])? + 1;
    let (kind, name) = words.split_at(at);
    Some((kind.trim().to_owned(), name.to_owned()))
}

//! Pieces of the header's declarations, for the bindings made from it.

pub(super) fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A declarator's type, without spaces before its stars, and its name.
pub(super) fn parted(declarator: &str) -> Option<(String, String)> {
    let text = on_one_line(declarator);
    let (kind, name) = text.split_at_checked(text.rfind([' ', '*'])? + 1)?;
    Some((kind.trim().replace(" *", "*"), name.to_owned()))
}

//! A function as the header declares it.

use super::header::{on_one_line, parted};

/// What the header says of a function.
pub(super) struct Declaration {
    pub(super) name: String,
    /// The paragraphs of its comment, each on one line; the last one lists the statuses.
    paragraphs: Vec<String>,
    /// Types, without spaces before their stars, and names; without the handle and the error.
    pub(super) parameters: Vec<(String, String)>,
}

impl Declaration {
    /// What it does.
    pub(super) fn doc(&self) -> String {
        let all = self.paragraphs.split_last().map_or(&[][..], |(_, doc)| doc);
        all.join(" ")
    }

    pub(super) fn can_be(&self, status: &str) -> bool {
        self.paragraphs.last().is_some_and(|statuses| statuses.contains(status))
    }

    pub(super) fn writes(&self) -> bool {
        self.can_be("any of a write")
    }

    pub(super) fn has(&self, parameter: &str) -> bool {
        self.parameters.iter().any(|(_, name)| name == parameter)
    }
}

/// The declaration of a function, if the header has it.
pub(super) fn declared(header: &str, name: &str) -> Option<Declaration> {
    let (before, after) = header.split_once(&format!("lsmkv_status {name}("))?;
    let (_, comment) = before.rsplit_once("\n/*\n")?;
    let (comment, _) = comment.split_once("\n */")?;
    let (parameters, _) = after.split_once(");")?;
    let mut parameters: Vec<_> = parameters.split(',').filter_map(parted).collect();
    let is_frame = |(kind, _): &(String, String)| kind == "lsmkv_db*" || kind == "lsmkv_err*";
    parameters.retain(|parameter| !is_frame(parameter));
    let paragraphs = comment.split("\n\n").map(on_one_line).collect();
    Some(Declaration { name: name.to_owned(), paragraphs, parameters })
}

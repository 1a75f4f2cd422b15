//! The comment of a method, from that of its function.

/// What is said of pointers and arrays in C, and of what stands for them in C++.
const REWORDED: &[(&str, &str)] = &[
    ("which may be NULL", "which may be left out"),
    ("NULL is open", "what is left out is open"),
    ("if weights is NULL", "without weights"),
    (
        "get is nget patterns of what is shown for each, or NULL and 0",
        "get is patterns of what is shown for each, or none",
    ),
    (": items[i] gets scores[i]", ""),
    (" to *len", " to the result"),
    ("lsmkv_", ""),
];

/// With its slashes. What concerns pointers, and what the types say, is left out.
pub(super) fn comment(doc: &str, returns: &str) -> String {
    let sentences = doc.split_inclusive(". ").map(str::trim).filter_map(|it| sentence(it, returns));
    let text = sentences.collect::<Vec<_>>().join(" ");
    let text = REWORDED.iter().fold(text, |text, (c, cpp)| text.replace(c, cpp));
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= 92 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("    /// {line}\n")).collect()
}

fn sentence(text: &str, returns: &str) -> Option<String> {
    if ["n keys,", "n items,", "npairs ", "dst may be NULL"].iter().any(|it| text.starts_with(it)) {
        return None;
    }
    if !text.starts_with('*') {
        return Some(text.to_owned());
    }
    let (_, what) = text.split_once("receives ")?;
    let what = what.split_once(" to be ").map_or(what, |(what, _)| what);
    let what = what.trim_end_matches([',', ';', '.']);
    let says_nothing = matches!(what, "the number" | "the bytes" | "it") || returns == "bool";
    (!says_nothing).then(|| format!("Gives {what}."))
}

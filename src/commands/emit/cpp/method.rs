//! A method of the C++ binding.

use super::declaration::Declaration;
use super::parameter::{Input, parameters};
use super::prose;

/// A method, and its form with `try_`.
pub(super) struct Method<'a> {
    of: &'a Declaration,
    name: String,
    inputs: Vec<Input>,
    returns: &'static str,
    /// What the C function gets for its outputs.
    outputs: String,
}

/// In place of an output that is not wanted: what is returned is whether the status is OK.
const UNWANTED: &str = "nullptr, ";

impl<'a> Method<'a> {
    /// The methods that a function becomes: most often one.
    pub(super) fn all(
        of: &'a Declaration,
        has_single: impl Fn(&str) -> bool,
    ) -> Result<Vec<Self>, String> {
        let (inputs, outputs) = parameters(of)?;
        let kinds: Vec<_> = outputs.iter().map(|(kind, _)| kind.as_str()).collect();
        let name = name(of, &inputs, has_single);
        let method = |name, inputs, returns, outputs: &str| Method {
            of,
            name,
            inputs,
            returns,
            outputs: outputs.to_owned(),
        };
        if let (["lsmkv_buf"], true) = (kinds.as_slice(), of.can_be("SKIPPED")) {
            // Whether the old value is wanted makes a difference to what is an error.
            let again = parameters(of)?.0;
            let getting = format!("{name}_get");
            return Ok(vec![
                method(name, inputs, "bool", UNWANTED),
                method(getting, again, "Replaced", "out, "),
            ]);
        }
        let passed = match kinds.as_slice() {
            [] => "",
            ["lsmkv_buf", "double"] => "&out->member, &out->score, ",
            _ => "out, ",
        };
        Ok(vec![method(name, inputs, returned(of, &kinds)?, passed)])
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{}{}{}",
            prose::comment(&self.of.doc(), self.returns),
            self.throwing(),
            self.trying()
        )
    }

    fn throwing(&self) -> String {
        let given: Vec<_> = self.inputs.iter().map(|input| given(&input.name)).collect();
        let call = format!("try_{}({}).value();", self.name, given.join(", "));
        let returned = if self.returns == "void" { "" } else { "return " };
        let head = self.head(self.returns, &self.name, self.constness());
        format!("{head}{}    }}\n", filled(&format!("{returned}{call}"), 8))
    }

    fn trying(&self) -> String {
        let result = format!("Result<{}>", self.returns);
        let rest = format!("{} noexcept", self.constness());
        let head = self.head(&result, &format!("try_{}", self.name), &rest);
        let passed: Vec<_> = self.inputs.iter().map(|input| input.passed.as_str()).collect();
        let passed = std::iter::once("raw()").chain(passed).collect::<Vec<_>>().join(", ");
        let out = if self.returns == "void" { "" } else { "auto *out, " };
        let call = format!("{}({passed}, {}err);", self.of.name, self.outputs);
        let body = if self.outputs == UNWANTED {
            let call = filled(&format!("const lsmkv_status status = {call}"), 12);
            format!("{call}            *out = status == LSMKV_OK;\n            return status;\n")
        } else {
            filled(&format!("return {call}"), 12)
        };
        format!(
            "{head}{}        return {result}::of([&]({out}lsmkv_err *err) {{\n{body}        }});\n    }}\n",
            self.check(&result)
        )
    }

    /// Lists that must be as long as one another are one pointer and one length in C.
    fn check(&self, result: &str) -> String {
        if !self.inputs.iter().any(|input| input.name == "weights") {
            return String::new();
        }
        format!(
            "        if (weights.size() != 0 && weights.size() != keys.size()) {{\n            \
             return {result}::failed(LSMKV_INVALID, \"give each key a weight, or none\");\n        }}\n"
        )
    }

    fn constness(&self) -> &'static str {
        if self.of.writes() { "" } else { " const" }
    }

    fn head(&self, returns: &str, name: &str, rest: &str) -> String {
        let declared = self.inputs.iter().map(|input| {
            let default = input.default.map_or(String::new(), |value| format!(" = {value}"));
            format!("{}{default}", input.declared)
        });
        let declared = declared.collect::<Vec<_>>().join(", ");
        filled(&format!("{returns} {name}({declared}){rest} {{"), 4)
    }
}

/// The name in C++: without `_many` where nothing else could be meant.
fn name(of: &Declaration, inputs: &[Input], has_single: impl Fn(&str) -> bool) -> String {
    let name = of.name.strip_prefix("lsmkv_").unwrap_or(&of.name);
    let Some(single) = name.strip_suffix("_many") else { return name.to_owned() };
    let of_pairs = inputs.iter().any(|input| matches!(input.name.as_str(), "pairs" | "members"));
    let kept = has_single(&format!("lsmkv_{single}")) && !of_pairs;
    (if kept { name } else { single }).to_owned()
}

/// The type of what a method returns.
fn returned(of: &Declaration, outputs: &[&str]) -> Result<&'static str, String> {
    let maybe = of.can_be("NOT_FOUND") || of.can_be("SKIPPED");
    let doc = of.doc();
    let yes_or_no = ["receives 1 for yes", "receives 1 if"].iter().any(|it| doc.contains(it));
    let yes_or_no = yes_or_no || of.has("copied");
    Ok(match (outputs, maybe) {
        ([], false) => "void",
        (["int64_t"], false) if yes_or_no => "bool",
        (["int64_t"], false) => "std::int64_t",
        (["int64_t"], true) => "std::optional<std::int64_t>",
        (["int32_t"], true) => "std::optional<std::int32_t>",
        (["size_t"], true) => "std::optional<std::size_t>",
        (["double"], false) => "double",
        (["double"], true) => "std::optional<double>",
        (["lsmkv_buf"], false) => "Value",
        (["lsmkv_buf"], true) => "std::optional<Value>",
        (["lsmkv_buf", "double"], true) => "std::optional<std::pair<Value, double>>",
        (["lsmkv_reply*"], false) => "Reply",
        (["lsmkv_reply*"], true) => "std::optional<Reply>",
        _ => return Err(format!("{}: no C++ type for the outputs {outputs:?}", of.name)),
    })
}

/// An input's name where it is passed on; one stands for two parameters.
fn given(name: &str) -> String {
    name.replace("std::size_t ", "")
}

/// Lines of at most 100 characters, the first indented by that much and the others further.
fn filled(text: &str, indent: usize) -> String {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split_inclusive(", ") {
        let fits = |line: &String| line.len() + word.trim_end().len() <= 100;
        match lines.last_mut() {
            Some(line) if line.trim().is_empty() || fits(line) => line.push_str(word),
            _ => lines.push(format!("{}{word}", " ".repeat(indent + 4))),
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

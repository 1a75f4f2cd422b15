//! What the parameters of a function are in C++.

use super::declaration::Declaration;

/// An input: how it is declared and passed on.
pub(super) struct Input {
    pub(super) declared: String,
    pub(super) name: String,
    pub(super) default: Option<&'static str>,
    /// What the C function gets for it.
    pub(super) passed: String,
}

/// Inputs, and the outputs that follow them: types without the last star, and names.
pub(super) type Parameters = (Vec<Input>, Vec<(String, String)>);

/// The parameters of a function, in their order.
pub(super) fn parameters(of: &Declaration) -> Result<Parameters, String> {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let mut rest = of.parameters.as_slice();
    while let [(kind, name), after @ ..] = rest {
        rest = after;
        if let Some(taken) = several(kind, name, after) {
            let (input, left) = taken;
            inputs.push(input);
            rest = left;
        } else if let Some(input) = single(of, kind, name) {
            inputs.push(input);
        } else {
            let pointee = kind.strip_suffix('*').filter(|pointee| !pointee.starts_with("const"));
            let pointee =
                pointee.ok_or_else(|| format!("{}: no C++ type for {kind} {name}", of.name))?;
            outputs.push((pointee.to_owned(), name.clone()));
        }
    }
    without_gaps(&mut inputs);
    Ok((inputs, outputs))
}

/// An input of two or three parameters: a pointer, a number, and what else there is for each.
fn several<'a>(
    kind: &str,
    name: &str,
    after: &'a [(String, String)],
) -> Option<(Input, &'a [(String, String)])> {
    let [(size, _), left @ ..] = after else { return None };
    if size != "size_t" {
        return None;
    }
    let input = |kind: &str, name: &str, default| Input {
        declared: format!("{kind}{name}"),
        name: name.to_owned(),
        default,
        passed: format!("{name}.data(), {name}.size()"),
    };
    if let ("const lsmkv_slice*", [(_, scores), left @ ..]) = (kind, left)
        && scores == "scores"
    {
        let all = input("const Scored &", "members", None);
        let passed = format!("{}, members.scores()", all.passed);
        return Some((Input { passed, ..all }, left));
    }
    let taken = match kind {
        "const void*" => input("std::string_view ", name, None),
        "void*" => Input {
            passed: format!("{name}, cap"),
            ..input("void *", &format!("{name}, std::size_t cap"), None)
        },
        "const lsmkv_slice*" if name == "pairs" => input("const Pairs &", name, None),
        "const lsmkv_slice*" => input("const Strings &", name, (name == "get").then_some("{}")),
        "const lsmkv_bitfield_op*" => input("List<lsmkv_bitfield_op> ", name, None),
        _ => return None,
    };
    Some((taken, left))
}

/// An input of one parameter.
fn single(of: &Declaration, kind: &str, name: &str) -> Option<Input> {
    let input = |kind: &str, default, passed: String| {
        Some(Input { declared: format!("{kind}{name}"), name: name.to_owned(), default, passed })
    };
    match kind {
        "const lsmkv_slice*" => {
            let optional = !matches!(name, "min" | "max");
            let default = optional.then_some("std::nullopt");
            input(
                "std::optional<std::string_view> ",
                default,
                format!("detail::MaybeSlice({name})"),
            )
        }
        "const double*" => input("List<double> ", Some("{}"), format!("{name}.data()")),
        "int64_t" | "int32_t" | "uint32_t" | "uint64_t" => {
            input(&format!("std::{kind} "), default(of, name), name.to_owned())
        }
        "double" => input("double ", None, name.to_owned()),
        _ => None,
    }
}

/// The value of a number that may be left out.
fn default(of: &Declaration, name: &str) -> Option<&'static str> {
    match name {
        "flags" | "limit" | "maxlen" | "minmatchlen" | "kind" => Some("0"),
        "offset" if of.has("count") => Some("0"),
        "count" if of.has("offset") => Some("-1"),
        "count" if of.has("cursor") => Some("0"),
        "start" if !of.has("stop") && !of.has("end") => Some("0"),
        "ttl_ms" if of.has("old") => Some("0"),
        "rank" => Some("1"),
        "aggregate" => Some("LSMKV_SUM"),
        _ => None,
    }
}

/// C++ has defaults at the end only.
fn without_gaps(inputs: &mut [Input]) {
    let mut may = true;
    for input in inputs.iter_mut().rev() {
        may = may && input.default.is_some();
        if !may {
            input.default = None;
        }
    }
}

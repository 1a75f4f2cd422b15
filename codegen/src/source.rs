//! The handwritten part of the C ABI: constants and functions, read from the Rust sources in
//! src/ffi.

use std::fs;
use std::path::Path;

use syn::{Expr, FnArg, Item, Lit, Pat, ReturnType, Type, Visibility};

use crate::ir::CType;

/// The sections of the header in order: titles, and the files of src/ffi they come from.
pub(crate) const SECTIONS: &[(&str, &[&str])] = &[
    ("The library", &["version.rs"]),
    ("Buffers", &["status.rs", "err.rs", "slice.rs", "buffer.rs"]),
    ("Replies", &["reply.rs"]),
    ("Options", &["options.rs"]),
    ("Opening and closing", &["handle.rs", "flags.rs", "db.rs"]),
    ("Databases, snapshots, sessions", &["views.rs"]),
    ("Transactions", &["transaction.rs"]),
    ("Batches", &["batch.rs"]),
    ("Commands by name", &["command.rs"]),
    ("Strings", &["generated/string.rs"]),
    ("Bits", &["bitfield.rs", "generated/bits.rs"]),
    ("Hashes", &["generated/hash.rs"]),
    ("Lists", &["generated/list.rs"]),
    ("Sets", &["generated/set.rs"]),
    ("Sorted sets", &["generated/zset.rs"]),
    ("Keys", &["generated/key.rs"]),
    ("Scans", &["generated/scan.rs"]),
    ("Sorting", &["generated/sort.rs"]),
    ("Blocking commands", &["generated/blocking.rs"]),
    ("Messages", &["generated/message.rs", "session.rs"]),
    ("Scripts", &["generated/script.rs"]),
    ("Iterators", &["iter.rs"]),
    ("Servers", &["server.rs"]),
    ("Upkeep", &["upkeep.rs"]),
];

/// The folder of generated files.
const GENERATED: &str = "generated/";

/// A function of the C ABI.
pub(crate) struct Declaration {
    pub(crate) name: String,
    pub(crate) result: CType,
    pub(crate) parameters: Vec<CType>,
}

/// The C ABI that the handwritten sources declare.
#[derive(Default)]
pub(crate) struct Sources {
    /// Constants: names without the prefix, and values.
    pub(crate) constants: Vec<(String, i64)>,
    /// The functions of each section of the header.
    pub(crate) sections: Vec<(&'static str, Vec<Declaration>)>,
}

/// Reads the sources.
pub(crate) fn read(root: &Path) -> Result<Sources, String> {
    let mut sources = Sources::default();
    for (title, files) in SECTIONS {
        let mut functions = Vec::new();
        for file in files.iter().filter(|file| !file.starts_with(GENERATED)) {
            let path = root.join("src/ffi").join(file);
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let parsed = syn::parse_file(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            for item in parsed.items {
                match item {
                    Item::Const(item) if is_public(&item.vis) => {
                        sources.constants.extend(constant(&item));
                    }
                    Item::Fn(item) if item.sig.abi.is_some() => {
                        functions.push(function(&item.sig)?);
                    }
                    _ => {}
                }
            }
        }
        sources.sections.push((title, functions));
    }
    Ok(sources)
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Reads `pub const LSMKV_NAME: i32 = number`.
fn constant(item: &syn::ItemConst) -> Option<(String, i64)> {
    let name = item.ident.to_string().strip_prefix("LSMKV_")?.to_owned();
    Some((name, number(&item.expr)?))
}

fn number(value: &Expr) -> Option<i64> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(negated) => number(&negated.expr).map(|number| -number),
        _ => None,
    }
}

fn function(signature: &syn::Signature) -> Result<Declaration, String> {
    let name = signature.ident.to_string();
    let strange = |what: &str| format!("{name}: {what} is of no type that the C ABI has");
    let mut parameters = Vec::new();
    for input in &signature.inputs {
        let FnArg::Typed(input) = input else { return Err(strange("self")) };
        let Pat::Ident(parameter) = &*input.pat else { return Err(strange("a parameter")) };
        let kind = c_type(&input.ty).ok_or_else(|| strange(&parameter.ident.to_string()))?;
        parameters.push(kind);
    }
    let result = match &signature.output {
        ReturnType::Default => CType::Void,
        ReturnType::Type(_, kind) => c_type(kind).ok_or_else(|| strange("the result"))?,
    };
    Ok(Declaration { name, result, parameters })
}

fn c_type(kind: &Type) -> Option<CType> {
    match kind {
        Type::Ptr(pointer) => {
            let bytes = pointer.const_token.is_some()
                && matches!(last_name(&pointer.elem).as_deref(), Some("c_void" | "c_char"));
            Some(if bytes { CType::BytesIn } else { CType::Pointer })
        }
        Type::BareFn(_) => Some(CType::Pointer),
        _ => Some(match last_name(kind)?.as_str() {
            "lsmkv_status" | "i32" | "c_int" => CType::Int32,
            "i64" => CType::Int64,
            "u32" => CType::Uint32,
            "u64" => CType::Uint64,
            "usize" => CType::Size,
            "f64" => CType::Double,
            _ => return None,
        }),
    }
}

fn last_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

//! Failures of the store as error replies.

use crate::error::{Error, ErrorKind};

/// The text of the error reply for a failure of the store: a code in capitals, then a message.
pub(crate) fn error_text(error: &Error) -> String {
    let text = error.message();
    let code = text.split(' ').next().unwrap_or_default();
    if code.len() > 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return text.to_owned();
    }
    let code = match error.kind() {
        ErrorKind::ReadOnly => "READONLY",
        ErrorKind::Degraded => "MISCONF",
        _ => "ERR",
    };
    format!("{code} {text}")
}

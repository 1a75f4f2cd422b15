//! The summary as JSON, for later runs to compare with.

use serde::Serialize;

use crate::Result;

pub(crate) fn render(summary: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(summary)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::example;
    use super::*;

    #[test]
    fn json_holds_rates_ratios_and_settings_but_no_failure_messages() {
        let text = render(&example()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["rows"][0]["row"], "fillseq");
        assert_eq!(json["rows"][0]["rates"]["rocksdb"]["median"], 95_000.0);
        assert_eq!(json["rows"][0]["to_rocksdb"], 2.0);
        assert_eq!(json["rows"][0]["verdict"], "met");
        assert_eq!(json["plan"]["settings"]["write_buffer"], 64 << 20);
        assert_eq!(json["fillrandom"]["lsmkv"]["write_amplification"], 3.0);
        assert!(!text.contains("fell over"));
    }
}

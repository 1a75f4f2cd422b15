//! Statements of random scripts that send random values through cjson, cmsgpack, struct and bit: what
//! the encodings are, what comes back, and what damaged input raises.

use super::scripts::Writer;

/// Shows a value whole, tables in an order of their own: that of `pairs` is nobody's promise.
pub(super) const SHOW: &str = "local function show(v) \
     if v == cjson.null then return 'null' end \
     if type(v) == 'number' then return string.format('%.17g', v) end \
     if type(v) == 'string' then return string.format('%q', v) end \
     if type(v) ~= 'table' then return tostring(v) end \
     local parts = {} for k, w in pairs(v) do parts[#parts + 1] = show(k) .. '=' .. show(w) end \
     table.sort(parts) return '{' .. table.concat(parts, ',') .. '}' end";

/// Numbers at which encodings change their form.
const EDGES: [&str; 26] = [
    "0", "-0", "127", "128", "-32", "-33", "-128", "-129", "255", "256", "32767", "-32768",
    "65535", "65536", "2^31-1", "2^31", "-2^31", "2^32-1", "2^32", "2^53", "-2^53", "2^63",
    "-2^63", "1e300", "1/0", "-1/0",
];
/// Texts in JSON, which are damaged before they are decoded.
const JSON: [&str; 12] = [
    r#"[1, 2.5, -3e2, null, true, false]"#,
    r#"{"k": [1, {"n": null}], "": "x"}"#,
    r#""a\u00e9\n\t\\\/\"b""#,
    r#""\ud83d\ude00 \ud800""#,
    r#"[[[[]]], {}, [{}]]"#,
    r#"[-0.0, 1E+2, 0x1f, 1e400, 012, .5, 5.]"#,
    r#"[nan, inf, -inf, Infinity]"#,
    r#"  {"a" : 1 , "a" : 2}  "#,
    r#"{"1": "one", "-2": 2}"#,
    r#"12345678901234567890"#,
    r#""long text with spaces and ümläuts""#,
    r#"[1,,2]"#,
];
/// Bytes in MessagePack, which are damaged before they are unpacked.
const PACKED: [&[u8]; 12] = [
    &[0x93, 1, 0xff, 0xc0],
    &[0x82, 0xa1, b'k', 0xc3, 2, 0xc2],
    &[0xcb, 0x40, 9, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18],
    &[0xca, 0x3f, 0xc0, 0, 0],
    &[0xd3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
    &[0xcf, 0x80, 0, 0, 0, 0, 0, 0, 1],
    &[0xd9, 3, b'a', 0, 0xff],
    &[0xda, 0, 2, b'x', b'y'],
    &[0xc4, 2, 1, 2],
    &[0xdc, 0, 2, 0xd0, 0x80, 0xd1, 0x80, 0],
    &[0xde, 0, 1, 0xcd, 1, 0, 0xce, 0, 1, 0, 0],
    &[1, 0xe0, 0xa0, 0x90, 0x80, 0xd2, 0x80, 0, 0, 0],
];

/// Bytes as a string of Lua.
fn quoted(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|byte| format!("\\{byte:03}")).collect();
    format!("'{text}'")
}

impl Writer {
    fn number(&mut self) -> String {
        let sign = ["", "-"][self.below(2)];
        match self.below(6) {
            0 => self.pick(&EDGES).to_owned(),
            1 => format!("{sign}{}", self.below(100)),
            2 => format!("{sign}{}", self.random.next_u64() >> self.below(64)),
            3 => format!("{sign}{}.{}", self.below(1000), self.below(1000)),
            4 => format!("{sign}{}/{}", self.below(1000), 1 + self.below(16)),
            _ => format!("{sign}{}e{sign}{}", 1 + self.below(99), self.below(30)),
        }
    }

    fn byte(&mut self) -> u8 {
        self.random.next_u64().to_le_bytes()[0]
    }

    fn bytes(&mut self) -> Vec<u8> {
        let most = [4, 12, 40][self.below(3)];
        let len = self.below(most);
        match self.below(3) {
            0 => (0..len).map(|_| self.byte()).collect(),
            _ => (0..len).map(|_| b"abc \"\\/\n\t\x7f"[self.below(10)]).collect(),
        }
    }

    fn string(&mut self) -> String {
        match self.below(12) {
            0 => {
                let length = self.pick(&["15", "31", "32", "255", "256", "65535", "65536"]);
                format!("('x'):rep({length})")
            }
            _ => quoted(&self.bytes()),
        }
    }

    /// A value; in a `plain` one no table has several keys, so its encoding has one form.
    fn value(&mut self, depth: usize, plain: bool) -> String {
        match self.below(if depth > 3 { 8 } else { 14 }) {
            0..=3 => self.number(),
            4 | 5 => self.string(),
            6 => self.pick(&["true", "false"]).to_owned(),
            7 => self.pick(&["cjson.null", "nil", "{}", "true"]).to_owned(),
            8..=10 => {
                let most = [3, 5, 20][self.below(3)];
                let count = self.below(most);
                let items: Vec<_> = (0..count).map(|_| self.value(depth + 1, plain)).collect();
                format!("{{{}}}", items.join(", "))
            }
            _ => {
                let count = if plain { 1 } else { self.below(4) };
                let items: Vec<_> = (0..count)
                    .map(|_| {
                        let key = match self.below(6) {
                            0 => self.pick(&["1", "2", "3", "12", "0", "-1", "1.5"]).to_owned(),
                            1 => self.pick(&["true", "2^53", "100000"]).to_owned(),
                            _ => self.string(),
                        };
                        format!("[{key}] = {}", self.value(depth + 1, plain))
                    })
                    .collect();
                format!("{{{}}}", items.join(", "))
            }
        }
    }

    fn values(&mut self, plain: bool) -> String {
        let count = 1 + self.below(3);
        (0..count).map(|_| self.value(0, plain)).collect::<Vec<_>>().join(", ")
    }

    /// Changes up to three places of some bytes.
    fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len() + 1);
            let letters = b"{}[],:\"\\0123456789eE+-.truefalsnx \t\0\xff\x90\xc1\xdf";
            match self.below(4) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => {
                    bytes.remove(at);
                }
                2 if at < bytes.len() => bytes[at] = self.byte(),
                _ => bytes.insert(at, letters[self.below(letters.len())]),
            }
        }
        bytes
    }

    /// A format of struct, and a value for each of its items.
    fn format(&mut self) -> (String, String) {
        let (mut format, mut values) = (String::new(), Vec::new());
        for _ in 0..1 + self.below(4) {
            format += self.pick(&["", "", "<", ">", "!", "!4", "!8", "x", " ", "=", "!3"]);
            match self.below(10) {
                0..=3 => {
                    format += self.pick(&["b", "B", "h", "H", "l", "L", "T", "i", "I"]);
                    values.push(self.number());
                }
                4 | 5 => {
                    format += self.pick(&["i1", "i2", "I3", "i4", "I5", "i7", "I8", "i8", "i9"]);
                    values.push(self.number());
                }
                6 => {
                    format += self.pick(&["f", "d"]);
                    values.push(self.number());
                }
                7 => {
                    format += "s";
                    values.push(self.string());
                }
                8 => {
                    format += self.pick(&["c0", "c1", "c3", "c10"]);
                    values.push(self.string());
                }
                _ => {
                    format += self.pick(&["Bc0", "hc0", "z", "c", "i33"]);
                    values.push(self.pick(&["2", "3"]).to_owned());
                    values.push("'abc'".to_owned());
                }
            }
        }
        (format!("'{format}'"), values.join(", "))
    }

    /// A statement that encodes, decodes or does both.
    pub(super) fn round_trip(&mut self) -> String {
        match self.below(11) {
            0 => format!("add(pcall(cjson.encode, {}))", self.value(0, true)),
            1 => {
                let value = self.value(0, false);
                format!(
                    "add(show({{pcall(function() return cjson.decode(cjson.encode({value})) end)}}))"
                )
            }
            2 => {
                let text = self.pick(&JSON).as_bytes().to_vec();
                let text = quoted(&self.damaged(&text));
                format!("add(show({{pcall(cjson.decode, {text})}}))")
            }
            3 => format!("add(pcall(cmsgpack.pack, {}))", self.values(true)),
            4 => {
                let values = self.values(false);
                format!(
                    "add(show({{pcall(function() return cmsgpack.unpack(cmsgpack.pack({values})) end)}}))"
                )
            }
            5 => {
                let bytes = PACKED[self.below(PACKED.len())];
                let bytes = quoted(&self.damaged(bytes));
                let call = self.pick(&[
                    "cmsgpack.unpack, BYTES",
                    "cmsgpack.unpack, BYTES",
                    "cmsgpack.unpack_one, BYTES",
                    "cmsgpack.unpack_one, BYTES, 1",
                    "cmsgpack.unpack_limit, BYTES, 2",
                    "cmsgpack.unpack_limit, BYTES, 1, 2",
                ]);
                format!("add(show({{pcall({})}}))", call.replace("BYTES", &bytes))
            }
            6 => {
                let depth = self.pick(&["14", "15", "16", "17", "40"]);
                let call = self
                    .pick(&["cjson.decode(cjson.encode(t))", "cmsgpack.unpack(cmsgpack.pack(t))"]);
                format!("local t = 1 for i = 1, {depth} do t = {{t}} end add(show({call}))")
            }
            7 => {
                let (format, values) = self.format();
                format!("add(pcall(struct.pack, {format}, {values}))")
            }
            8 => {
                let (format, values) = self.format();
                format!(
                    "add(show({{pcall(function() \
                     return struct.unpack({format}, struct.pack({format}, {values})) end)}}))"
                )
            }
            9 => {
                let ((format, _), bytes) = (self.format(), quoted(&self.bytes()));
                let at = self.pick(&["", ", 1", ", 2", ", 5", ", 0", ", -1"]);
                format!(
                    "add(pcall(struct.size, {format})) \
                     add(show({{pcall(struct.unpack, {format}, {bytes}{at})}}))"
                )
            }
            _ => {
                let (a, b) = (self.number(), self.number());
                let call = self.pick(&[
                    "band, A, B",
                    "bor, A, B",
                    "bxor, A, B",
                    "bnot, A",
                    "lshift, A, B",
                    "rshift, A, B",
                    "arshift, A, B",
                    "rol, A, B",
                    "ror, A, B",
                    "bswap, A",
                    "tobit, A",
                    "tohex, A",
                    "tohex, A, B",
                    "band, A",
                    "bxor, A, B, A",
                ]);
                format!("add(show({{pcall(bit.{})}}))", call.replace('A', &a).replace('B', &b))
            }
        }
    }
}

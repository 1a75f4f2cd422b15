//! Targets over the encodings that the library exports. Each takes any bytes, and must neither panic nor allocate
//! more than a multiple of them.

use bytes::Bytes;
use lsmkv::encoding::header::Header;
use lsmkv::encoding::keys::{
    after_prefix, prefix, prefix_len, row_key, split_meta_key, split_row_key,
};
use lsmkv::encoding::meta::{Body, is_packed, with_expiry};
use lsmkv::encoding::packed::Packed;

/// A record of the meta tree, and the members that are stored in it.
pub fn packed_record(data: &[u8]) {
    if let Ok(header) = Header::decode(data) {
        let _ = header.expired(1);
        let _ = Body::decode(header.kind, data).map(|body| (body.size(), body.version()));
        if let Some(record) = with_expiry(data, 77) {
            assert_eq!(Header::decode(&record).map(|header| header.expire_ms).ok(), Some(77));
        }
    }
    let _ = is_packed(data);
    let record = Bytes::copy_from_slice(data);
    let Ok(packed) = Packed::decode(record) else { return };
    let sound = packed.validate().is_ok();
    let mut entries = packed.entries();
    let mut members = Vec::new();
    while let Ok(Some(entry)) = entries.advance() {
        members.push(packed.bytes()[entry.member].to_vec());
        let _ = &packed.bytes()[entry.value];
    }
    let mut ascending = packed.entries();
    while let Ok(Some(_)) = ascending.next_ascending() {}
    let index = packed.index();
    for member in members.iter().take(64).map(Vec::as_slice).chain([&b""[..], b"other"]) {
        let found = packed.get(member).map(|value| value.map(<[u8]>::to_vec));
        if sound {
            let by_index = index.as_ref().unwrap().get(member).map(<[u8]>::to_vec);
            assert_eq!(found.unwrap(), by_index, "both lookups agree");
        }
        let mut changed = packed.clone();
        if changed.put(member, b"value", usize::from(u16::MAX)) == Ok(true) && sound {
            assert_eq!(changed.get(member).unwrap(), Some(&b"value"[..]), "what was put is there");
            changed.validate().unwrap();
        }
        if changed.remove(member).is_ok() && sound {
            assert_eq!(changed.get(member).unwrap(), None, "what was removed is gone");
        }
    }
}

/// Keys of the three trees.
pub fn keys(data: &[u8]) {
    let _ = split_meta_key(data);
    let length = prefix_len(data);
    let row = split_row_key(data);
    if let Some(row) = &row {
        let head = prefix(row.space, &row.user_key, row.version);
        assert_eq!(length, Some(head.len()), "both find the sub key");
        assert_eq!(row_key(&head, row.sub_key)[..], *data, "a key reads back");
        if let Some(after) = after_prefix(&head) {
            assert!(after[..] > *data, "the end of a prefix is after its rows");
        }
    }
}

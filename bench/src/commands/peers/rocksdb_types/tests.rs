//! What the bench itself does not check: order, contents, types, deletion.

use super::RocksdbTypes;
use crate::commands::call::Store;
use crate::plan::Settings;

#[test]
fn collections_keep_their_order_and_forget_what_was_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut db = RocksdbTypes::open(dir.path(), &Settings::default()).unwrap();
    for settled in [false, true] {
        for (score, member) in [(2.0, &b"b"[..]), (-1.0, b"z"), (7.0, b"a"), (2.5, b"b")] {
            db.zadd(b"zset", score, member).unwrap();
        }
        assert_eq!(db.lpush(b"list", b"second").unwrap(), 1);
        assert_eq!(db.lpush(b"list", b"first").unwrap(), 2);
        assert_eq!(db.hset(b"hash", &[(b"f", b"1"), (b"e", b"2")]).unwrap(), 2);
        assert_eq!(db.hset(b"hash", &[(b"f", b"3"), (b"g", b"4")]).unwrap(), 1);
        if settled {
            db.settle().unwrap();
        }
        assert_eq!(db.zrange(b"zset", 0, 9).unwrap(), [b"z", b"b", b"a"]);
        assert_eq!(db.zrangebyscore(b"zset", 2.5, 7.0).unwrap(), [b"b", b"a"]);
        assert_eq!(db.zpopmin(b"zset").unwrap(), Some((b"z".to_vec(), -1.0)));
        assert_eq!(db.zscore(b"zset", b"z").unwrap(), None);
        assert_eq!(db.lrange(b"list", 0, 9).unwrap(), [&b"first"[..], b"second"]);
        assert_eq!(db.lpop(b"list").unwrap().as_deref(), Some(&b"first"[..]));
        let pair = |field: &[u8], value: &[u8]| (field.to_vec(), value.to_vec());
        let hash = [pair(b"e", b"2"), pair(b"f", b"3"), pair(b"g", b"4")];
        assert_eq!(db.hgetall(b"hash").unwrap(), hash);
        assert!(db.sadd(b"hash", b"member").is_err(), "of another type");
        for key in [&b"zset"[..], b"list", b"hash"] {
            assert_eq!(db.del(key).unwrap(), 1);
            assert_eq!(db.del(key).unwrap(), 0);
        }
        assert_eq!(db.hgetall(b"hash").unwrap(), []);
    }
}

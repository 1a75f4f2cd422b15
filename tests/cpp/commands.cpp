// Every command as a method: that each passes on its arguments and gives what its function gave.
// What the commands do is told by the programs in tests/c.
#include <cmath>

#include "show.hpp"

static const lsmkv_bitfield_op SET_BYTE = {LSMKV_FIELD_SET, LSMKV_FIELD_WRAP, 0, 8, 0, 65};
static const lsmkv_bitfield_op GET_BYTE = {LSMKV_FIELD_GET, LSMKV_FIELD_WRAP, 0, 8, 0, 0};

STORY(strings) {
    lsmkv::Db db(check_dir);
    db.set("k", "10");
    CHECK(db.append("k", "0") == 3);
    CHECK(db.incr("k") == 101 && db.incrby("k", 9) == 110);
    CHECK(db.decr("k") == 109 && db.decrby("k", 9) == 100);
    CHECK(db.incrbyfloat("k", 0.5) == 100.5);
    CHECK(db.strlen("k") == 5);
    SHOWS(db.getrange("k", 0, 1), "10");
    SHOWS(db.substr("k", -2, -1), ".5");
    CHECK(db.setrange("k", 4, "25") == 6);
    SHOWS(db.getset("k", "v"), "100.25");
    char room[2] = {0, 0};
    CHECK(*db.get_into("k", room, 2) == 1 && room[0] == 'v');
    CHECK(*db.get_into("k", nullptr, 0) == 1 && !db.get_into("none", room, 2));
    STATUS(db.try_get_into("k", nullptr, 0).status(), LSMKV_TOO_SMALL);
    SHOWS(db.getdel("k"), "v");
    SHOWS(db.getdel("k"), "nil");

    db.mset({{"a", "ohmytext"}, {"b", "mynewtext"}});
    CHECK(!db.msetnx({{"a", "1"}, {"c", "2"}}) && db.msetnx({{"c", "3"}}));
    SHOWS(db.mget({"a", "none", "c"}), "[ohmytext nil 3]");
    SHOWS(db.lcs("a", "b"), "mytext");
    CHECK(db.lcs_len("a", "b") == 6);
    SHOWS(db.lcs_idx("a", "b", 4), "{matches [[[4 7] [5 8]]] len 6}");

    db.setex("t", 100, "v");
    CHECK(db.ttl("t") == 100);
    db.psetex("t", 5000, "v");
    CHECK(db.pttl("t") <= 5000);
    SHOWS(db.getex("t", 0, LSMKV_PERSIST), "v");
    CHECK(db.pttl("t") == -1);
    CHECK(!db.setnx("t", "w") && db.setnx("u", "w"));
    CHECK(!db.set_opt("t", "w", LSMKV_NX) && db.set_opt("t", "w", LSMKV_XX, 9000));
    CHECK(db.ttl("t") == 9);
    const auto replaced = db.set_opt_get("t", "x");
    CHECK(replaced.done && replaced.old->view() == "w");
    const auto fresh = db.set_opt_get("none", "x", LSMKV_XX);
    CHECK(!fresh.done && !fresh.old);
    db.rpush("list", "e");
    CHECK(db.set_opt("list", "now a string"));
}

STORY(bits) {
    lsmkv::Db db(check_dir);
    SHOWS(db.bitfield("k", {SET_BYTE, GET_BYTE}), "[0 65]");
    SHOWS(db.bitfield_ro("k", {GET_BYTE}), "[65]");
    SHOWS(db.get("k"), "A");
    CHECK(db.getbit("k", 1) == 1 && db.setbit("k", 6, 1) == 0);
    CHECK(db.bitcount("k") == 3 && db.bitcount_range("k", 0, 1, LSMKV_BIT) == 1);
    CHECK(db.bitpos("k", 1) == 1 && db.bitpos_range("k", 1, 2, 7, LSMKV_BIT) == 6);
    CHECK(db.bitop(LSMKV_NOT, "not", {"k"}) == 1 && db.bitcount("not") == 5);
}

STORY(hashes) {
    lsmkv::Db db(check_dir);
    CHECK(db.hset("h", "f", "1") == 1 && db.hset("h", {{"f", "2"}, {"g", "3"}}) == 1);
    db.hmset("h", "i", "4");
    db.hmset("h", {{"i", "5"}});
    CHECK(db.hsetnx("h", "j", "6") && !db.hsetnx("h", "j", "7"));
    CHECK(db.hexists("h", "f") && !db.hexists("h", "none"));
    SHOWS(db.hget("h", "f"), "2");
    SHOWS(db.hget("h", "none"), "nil");
    CHECK(db.hlen("h") == 4 && db.hstrlen("h", "f") == 1);
    CHECK(db.hincrby("h", "f", 3) == 5 && db.hincrbyfloat("h", "f", 0.25) == 5.25);
    SHOWS(db.hmget("h", {"f", "none"}), "[5.25 nil]");
    CHECK(db.hkeys("h").size() == 4 && db.hvals("h").size() == 4 && db.hgetall("h").size() == 8);
    CHECK(db.hrandfield("h") && db.hrandfield_count("h", 9, LSMKV_WITHVALUES).size() == 8);
    CHECK(db.hdel("h", "f") == 1 && db.hdel_many("h", {"f", "g"}) == 1);
    SHOWS(db.hgetdel("h", "i"), "5");
    SHOWS(db.hgetdel_many("h", {"i", "j"}), "[nil 6]");
    CHECK(!db.hrandfield("h"));
}

STORY(lists) {
    lsmkv::Db db(check_dir);
    CHECK(db.lpushx("l", "a") == 0 && db.rpushx_many("l", {"a", "b"}) == 0);
    CHECK(db.rpush("l", "c") == 1 && db.lpush("l", "a") == 2);
    CHECK(db.rpush_many("l", {"d", "e"}) == 4 && db.lpush_many("l", {"y", "x"}) == 6);
    CHECK(db.rpushx("l", "f") == 7 && db.lpushx_many("l", {"w"}) == 8);
    CHECK(db.linsert("l", LSMKV_BEFORE, "c", "b") == 9 && db.llen("l") == 9);
    SHOWS(db.lrange("l", 0, -1), "[w x y a b c d e f]");
    SHOWS(db.lindex("l", -1), "f");
    CHECK(*db.lpos("l", "b") == 4 && !db.lpos("l", "none"));
    SHOWS(db.lpos_count("l", "b", 1, 0), "[4]");
    db.lset("l", 0, "x");
    CHECK(db.lrem("l", 0, "x") == 2);
    db.ltrim("l", 1, -2);
    SHOWS(db.lrange("l", 0, -1), "[a b c d e]");
    SHOWS(db.lmove("l", "m", LSMKV_LEFT, LSMKV_RIGHT), "a");
    SHOWS(db.rpoplpush("l", "m"), "e");
    SHOWS(db.lpop("l"), "b");
    SHOWS(db.rpop("l"), "d");
    SHOWS(db.lmpop({"none", "m"}, LSMKV_RIGHT, 1), "[m [a]]");
    SHOWS(db.lpop_count("l", 5), "[c]");
    SHOWS(db.lpop_count("l", 5), "none");
    SHOWS(db.rpop_count("m", 5), "[e]");
    SHOWS(db.lmpop({"none"}, LSMKV_LEFT, 1), "none");
}

STORY(sets) {
    lsmkv::Db db(check_dir);
    CHECK(db.sadd("s", "a") == 1 && db.sadd_many("s", {"a", "b", "c"}) == 2);
    CHECK(db.sadd_many("t", {"b", "d"}) == 2 && db.scard("s") == 3);
    CHECK(db.sismember("s", "a") && !db.sismember("s", "d"));
    SHOWS(db.smismember("s", {"a", "d"}), "[1 0]");
    SHOWS(db.sinter({"s", "t"}), "<b>");
    CHECK(db.smembers("s").size() == 3 && db.sunion({"s", "t"}).size() == 4);
    SHOWS(db.sdiff({"t", "s"}), "<d>");
    CHECK(db.sintercard({"s", "t"}) == 1 && db.sintercard({"s", "s"}, 2) == 2);
    CHECK(db.sunionstore("u", {"s", "t"}) == 4 && db.sinterstore("u", {"s", "t"}) == 1);
    CHECK(db.sdiffstore("u", {"s", "t"}) == 2);
    CHECK(db.smove("s", "t", "a") && db.srem("s", "none") == 0);
    CHECK(db.srandmember("s") && db.srandmember_count("s", -9).size() == 9);
    CHECK(db.srem_many("s", {"b", "c"}) == 2 && !db.spop("s"));
    CHECK(db.spop("t") && db.spop_count("t", 9).size() == 2);
}

STORY(sorted_sets) {
    lsmkv::Db db(check_dir);
    CHECK(db.zadd("z", 1, "a") && db.zadd("z", {{1, "a"}, {2, "b"}, {3, "c"}}) == 2);
    CHECK(db.zadd_opt("z", 5, "c", LSMKV_CH | LSMKV_GT) && !db.zadd_opt("z", 6, "d", LSMKV_XX));
    CHECK(*db.zadd_incr("z", 1, "c") == 6 && !db.zadd_incr("z", 1, "d", LSMKV_XX));
    CHECK(db.zincrby("z", -3, "c") == 3 && db.zcard("z") == 3);
    CHECK(*db.zscore("z", "b") == 2 && !db.zscore("z", "none"));
    SHOWS(db.zmscore("z", {"a", "none"}), "[~1 nil]");
    CHECK(*db.zrank("z", "b") == 1 && *db.zrevrank("z", "a") == 2 && !db.zrank("z", "none"));
    SHOWS(db.zrange("z", 0, -1), "[a b c]");
    SHOWS(db.zrevrange("z", 0, 0, LSMKV_WITHSCORES), "[c ~3]");
    SHOWS(db.zrangebyscore("z", 1, HUGE_VAL, LSMKV_MINEX), "[b c]");
    SHOWS(db.zrevrangebyscore("z", 3, 1, 0, 1, 1), "[b]");
    CHECK(db.zcount("z", 2, 3) == 2);
    CHECK(db.zrandmember("z") && db.zrandmember_count("z", 5, LSMKV_WITHSCORES).size() == 6);

    db.zadd("o", {{0, "a"}, {0, "b"}, {0, "c"}});
    SHOWS(db.zrangebylex("o", "b", std::nullopt), "[b c]");
    SHOWS(db.zrevrangebylex("o", "b", std::nullopt, LSMKV_MAXEX), "[a]");
    CHECK(db.zlexcount("o", std::nullopt, std::nullopt) == 3);
    CHECK(db.zremrangebylex("o", "c", "c") == 1);

    SHOWS(db.zunion({"z", "o"}, {1, 10}, LSMKV_MAX, LSMKV_WITHSCORES), "[a ~1 b ~2 c ~3]");
    SHOWS(db.zinter({"z", "o"}), "[a b]");
    SHOWS(db.zdiff({"z", "o"}, LSMKV_WITHSCORES), "[c ~3]");
    STATUS(db.try_zunion({"z", "o"}, {1}).status(), LSMKV_INVALID);
    CHECK(db.zintercard({"z", "o"}) == 2 && db.zdiffstore("d", {"z", "o"}) == 1);
    CHECK(db.zunionstore("d", {"z", "o"}) == 3 && db.zinterstore("d", {"z", "o"}, {2, 1}) == 2);
    CHECK(*db.zscore("d", "b") == 4);
    CHECK(db.zrangestore("d", "z", 0, 0) == 1 && db.zrangestore_byscore("d", "z", 2, 9) == 2);
    CHECK(db.zrangestore_bylex("d", "o", "b", std::nullopt) == 1);

    CHECK(db.zrem("o", "none") == 0 && db.zrem_many("o", {"a", "b"}) == 2);
    const auto least = db.zpopmin("z");
    CHECK(least && least->first.view() == "a" && least->second == 1);
    CHECK(db.zpopmax("z")->second == 3 && !db.zpopmax("none"));
    SHOWS(db.zmpop({"none", "z"}, LSMKV_LEAST, 1), "[z [[b ~2]]]");
    db.zadd("z", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}});
    SHOWS(db.zpopmin_count("z", 1), "[a ~1]");
    SHOWS(db.zpopmax_count("z", 1), "[d ~4]");
    CHECK(db.zremrangebyscore("z", 3, 3) == 1 && db.zremrangebyrank("z", 0, -1) == 1);
}

STORY(keys) {
    lsmkv::Db db(check_dir);
    db.mset({{"a", "1"}, {"b", "2"}});
    CHECK(db.dbsize() == 2 && db.exists_many({"a", "a", "none"}) == 2);
    CHECK(db.touch("a") == 1 && db.touch_many({"a", "none"}) == 1);
    CHECK(*db.type("a") == LSMKV_STRING && !db.type("none") && db.randomkey());
    SHOWS(db.keys("[a]"), "[a]");
    CHECK(db.object_encoding("a") && !db.object_encoding("none"));
    CHECK(db.memory_usage("a").value() > 0 && !db.memory_usage("none"));
    CHECK(db.expire("a", 100) && !db.expire_opt("a", 50, LSMKV_GT));
    CHECK(db.pexpire("a", 90000) && db.pexpire_opt("a", 80000, LSMKV_LT) && db.ttl("a") == 80);
    CHECK(db.expireat("a", 4102444800) && db.expiretime("a") == 4102444800);
    CHECK(!db.expireat_opt("a", 4102444801, LSMKV_NX));
    CHECK(db.pexpireat("a", 4102444800001) && db.pexpiretime("a") == 4102444800001);
    CHECK(db.pexpireat_opt("a", 4102444800002, LSMKV_XX) && db.persist("a") && !db.persist("a"));
    CHECK(db.copy("a", "c") && !db.copy("a", "c") && db.copy("a", "c", LSMKV_REPLACE));
    CHECK(db.copy_to("a", "a", 1) && db.move("c", 1) && db.select(1).dbsize() == 2);
    db.swapdb(0, 1);
    CHECK(db.exists("c") == 1);
    db.rename("c", "d");
    CHECK(!db.renamenx("d", "a") && db.renamenx("d", "e"));
    STATUS(db.try_rename("none", "x").status(), LSMKV_NO_SUCH_KEY);
    CHECK(db.unlink("e") == 1 && db.unlink_many({"e", "none"}) == 0);
    CHECK(db.del_many({"a", "none"}) == 1);
    db.set("x", "1");
    db.flushdb();
    CHECK(db.dbsize() == 0 && db.select(1).dbsize() == 2);
    db.flushall();
    CHECK(db.select(1).dbsize() == 0);
}

STORY(scans_and_sorting) {
    lsmkv::Db db(check_dir);
    db.rpush_many("l", {"3", "1", "2"});
    db.hset("h", "f", "v");
    db.sadd("s", "m");
    db.zadd("z", 1.5, "m");
    // The order of keys, and what one call finds, are the store's own.
    if (check_store == nullptr) {
        SHOWS(db.scan("", "[hl]"), "[ [h l]]");
        SHOWS(db.scan("", std::nullopt, 0, LSMKV_ZSET), "[ [z]]");
    }
    SHOWS(db.hscan("h", ""), "[ [f v]]");
    SHOWS(db.sscan("s", "", "x*"), "[ []]");
    SHOWS(db.zscan("z", ""), "[ [m ~1.5]]");
    std::size_t seen = 0;
    std::string cursor;
    do {
        const auto part = db.scan(cursor, std::nullopt, 1);
        seen += part[1].size();
        cursor = part[0].str();
    } while (!cursor.empty());
    CHECK(seen == 4);
    SHOWS(db.sort("l"), "[1 2 3]");
    SHOWS(db.sort_ro("l", std::nullopt, {"#", "none"}, 0, 1, LSMKV_REV), "[3 nil]");
    CHECK(db.sort_store("l", "sorted") == 3 && db.llen("sorted") == 3);
}

STORY(messages_and_waits) {
    lsmkv::Db db(check_dir);
    db.rpush_many("l", {"a", "b", "c", "d", "e", "f"});
    SHOWS(*db.blpop({"none", "l"}, 1), "[l a]");
    SHOWS(*db.brpop({"l"}, 1), "[l f]");
    SHOWS(db.blmove("l", "m", LSMKV_LEFT, LSMKV_RIGHT, 1), "b");
    SHOWS(db.brpoplpush("l", "m", 1), "e");
    SHOWS(*db.blmpop({"l"}, LSMKV_LEFT, 2, 1), "[l [c d]]");
    CHECK(!db.blpop({"l"}, 0.01));
    db.zadd("z", 1, "x");
    db.zadd("z", 2, "y");
    db.zadd("z", 3, "w");
    SHOWS(*db.bzpopmin({"z"}, 1), "[z x ~1]");
    SHOWS(*db.bzpopmax({"z"}, 1), "[z w ~3]");
    SHOWS(*db.bzmpop({"z"}, LSMKV_LEAST, 1, 1), "[z [[y ~2]]]");
    lsmkv::Session session = db.session();
    session.command({"SUBSCRIBE", "news"});
    session.command({"SSUBSCRIBE", "shard"});
    CHECK(db.publish("news", "hello") == 1 && db.spublish("shard", "there") == 1);
    CHECK(session.fd() > 0);
    const auto message = session.wait(1000);
    CHECK(message && (*message)[0].str() == "message" && (*message)[2].str() == "hello");
    CHECK(session.wait(1000) && !session.wait(0));
    SHOWS(db.pubsub_channels("*"), "[news]");
    SHOWS(db.pubsub_numsub({"news"}), "[news 1]");
    CHECK(db.pubsub_numpat() == 0);
    SHOWS(db.pubsub_shardchannels("*"), "[shard]");
    SHOWS(db.pubsub_shardnumsub({"shard"}), "[shard 1]");
}

STORY(scripts) {
    lsmkv::Db db(check_dir);
    const char *add = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
    const char *get = "return redis.call('GET', KEYS[1])";
    SHOWS(*db.eval(add, {"n"}, {"5"}), "5");
    SHOWS(*db.eval_ro(get, {"n"}), "5");
    CHECK(!db.eval_ro(get, {"none"}));
    STATUS(db.try_eval_ro(add, {"n"}, {"5"}).status(), LSMKV_INVALID);
    const std::string sha1(db.script_load(get).view());
    SHOWS(*db.evalsha(sha1, {"n"}), "5");
    SHOWS(*db.evalsha_ro(sha1, {"n"}), "5");
    db.command({"FUNCTION", "LOAD",
                "#!lua name=lib\n"
                "redis.register_function{function_name='get', flags={'no-writes'},"
                " callback=function(keys) return redis.call('GET', keys[1]) end}"});
    SHOWS(*db.fcall("get", {"n"}), "5");
    SHOWS(*db.fcall_ro("get", {"n"}), "5");
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(strings);
    RUN(bits);
    RUN(hashes);
    RUN(lists);
    RUN(sets);
    RUN(sorted_sets);
    RUN(keys);
    RUN(scans_and_sorting);
    RUN(messages_and_waits);
#ifndef WITHOUT_SCRIPTS
    RUN(scripts);
#endif
    return END();
}

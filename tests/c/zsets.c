/* Every function of sorted sets, and what is left after reopening. */
#include <math.h>

#include "redis.h"

/* a 1, b 2, c 3, d 4 */
static void four(lsmkv_db *db, const char *key) {
    static const double scores[] = {1, 2, 3, 4};
    NUMBER(lsmkv_zadd_many(db, key, 1, words("a b c d"), 4, scores, 0, &number, NULL), 4);
}

STORY(members_are_given_scores) {
    lsmkv_db *db = check_open();
    static const double scores[] = {7, 8}, no_number[] = {7, NAN};
    NUMBER(lsmkv_zadd(db, S("z"), 1.5, S("a"), &number, NULL), 1);
    NUMBER(lsmkv_zadd(db, S("z"), 2.5, S("a"), &number, NULL), 0);
    STATUS(lsmkv_zadd(db, S("z"), NAN, S("a"), &number, NULL), LSMKV_NOT_FLOAT);
    DECIMAL(lsmkv_zscore(db, S("z"), S("a"), &decimal, NULL), 2.5);
    STATUS(lsmkv_zscore(db, S("z"), S("no"), &decimal, NULL), LSMKV_NOT_FOUND);
    NUMBER(lsmkv_zadd_opt(db, S("z"), 9, S("a"), LSMKV_NX, &number, NULL), 0);
    NUMBER(lsmkv_zadd_opt(db, S("z"), 9, S("no"), LSMKV_XX, &number, NULL), 0);
    NUMBER(lsmkv_zadd_opt(db, S("z"), 9, S("a"), LSMKV_GT | LSMKV_CH, &number, NULL), 1);
    NUMBER(lsmkv_zadd_opt(db, S("z"), 10, S("a"), LSMKV_LT | LSMKV_CH, &number, NULL), 0);
    STATUS(lsmkv_zadd_opt(db, S("z"), 1, S("a"), LSMKV_NX | LSMKV_XX, &number, NULL), LSMKV_INVALID);
    STATUS(lsmkv_zadd_opt(db, S("z"), 1, S("a"), LSMKV_GT | LSMKV_LT, &number, NULL), LSMKV_INVALID);
    STATUS(lsmkv_zadd_opt(db, S("z"), 1, S("a"), LSMKV_REV, &number, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_zadd_many(db, S("z"), words("a b"), 2, scores, LSMKV_CH, &number, NULL), 2);
    STATUS(lsmkv_zadd_many(db, S("z"), words("a b"), 2, NULL, 0, &number, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_zadd_many(db, S("z"), words("a b"), 2, no_number, 0, &number, NULL), LSMKV_NOT_FLOAT);
    STATUS(lsmkv_zadd_opt(db, S("none"), NAN, S("a"), LSMKV_XX, &number, NULL), LSMKV_NOT_FLOAT);
    STATUS(lsmkv_zadd_incr(db, S("none"), NAN, S("a"), LSMKV_XX, &decimal, NULL), LSMKV_NOT_FLOAT);
    DECIMAL(lsmkv_zadd_incr(db, S("z"), 1, S("b"), 0, &decimal, NULL), 9);
    STATUS(lsmkv_zadd_incr(db, S("z"), 1, S("no"), LSMKV_XX, &decimal, NULL), LSMKV_SKIPPED);
    CHECK(decimal == 0);
    DECIMAL(lsmkv_zincrby(db, S("z"), -0.5, S("a"), &decimal, NULL), 6.5);
    db = reopened(db);
    REPLY(lsmkv_zmscore_many(db, S("z"), words("a no b"), 3, &reply, NULL), "[~6.5 nil ~9]");
    NUMBER(lsmkv_zcard(db, S("z"), &number, NULL), 2);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(ranges_go_by_position_score_and_bytes) {
    lsmkv_db *db = check_open();
    lsmkv_slice b = slice_of("b"), d = slice_of("d");
    four(db, "z");
    REPLY(lsmkv_zrange(db, S("z"), 1, 2, &reply, NULL), "[b c]");
    REPLY(lsmkv_zrange(db, S("no"), 0, -1, &reply, NULL), "[]");
    REPLY(lsmkv_zrange_opt(db, S("z"), 0, 1, LSMKV_REV | LSMKV_WITHSCORES, &reply, NULL),
          "[d ~4 c ~3]");
    REPLY(lsmkv_zrevrange(db, S("z"), 0, 0, LSMKV_WITHSCORES, &reply, NULL), "[d ~4]");
    STATUS(lsmkv_zrevrange(db, S("z"), 0, 0, LSMKV_REV, &reply, NULL), LSMKV_INVALID);
    REPLY(lsmkv_zrangebyscore(db, S("z"), 2, INFINITY, 0, 0, -1, &reply, NULL), "[b c d]");
    REPLY(lsmkv_zrangebyscore(db, S("z"), 1, 3, LSMKV_MINEX | LSMKV_MAXEX, 0, -1, &reply, NULL), "[b]");
    REPLY(lsmkv_zrangebyscore(db, S("z"), 1, 4, LSMKV_REV | LSMKV_WITHSCORES, 1, 2, &reply, NULL),
          "[c ~3 b ~2]");
    STATUS(lsmkv_zrangebyscore(db, S("z"), NAN, 4, 0, 0, -1, &reply, NULL), LSMKV_NOT_FLOAT);
    REPLY(lsmkv_zrevrangebyscore(db, S("z"), 3, 1, LSMKV_MAXEX, 0, -1, &reply, NULL), "[b a]");
    NUMBER(lsmkv_zcount(db, S("z"), 1, 3, LSMKV_MINEX, &number, NULL), 2);
    NUMBER(lsmkv_zrank(db, S("z"), S("c"), &number, NULL), 2);
    NUMBER(lsmkv_zrevrank(db, S("z"), S("c"), &number, NULL), 1);
    STATUS(lsmkv_zrank(db, S("z"), S("no"), &number, NULL), LSMKV_NOT_FOUND);

    STATUS(command(db, "ZADD lex 0 a 0 b 0 c"), LSMKV_OK);
    lsmkv_reply_free(reply);
    NUMBER(lsmkv_zadd(db, S("lex"), 0, S("d"), &number, NULL), 1);
    REPLY(lsmkv_zrangebylex(db, S("lex"), &b, NULL, LSMKV_MINEX, 0, -1, &reply, NULL), "[c d]");
    REPLY(lsmkv_zrangebylex(db, S("lex"), NULL, NULL, LSMKV_REV, 1, 2, &reply, NULL), "[c b]");
    REPLY(lsmkv_zrevrangebylex(db, S("lex"), &d, &b, LSMKV_MAXEX, 0, -1, &reply, NULL), "[c b]");
    NUMBER(lsmkv_zlexcount(db, S("lex"), &b, &d, LSMKV_MAXEX, &number, NULL), 2);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(members_are_removed_and_popped) {
    lsmkv_db *db = check_open();
    lsmkv_slice b = slice_of("b");
    four(db, "z");
    NUMBER(lsmkv_zrem(db, S("z"), S("a"), &number, NULL), 1);
    NUMBER(lsmkv_zrem_many(db, S("z"), words("a b"), 2, &number, NULL), 1);
    BYTES(lsmkv_zpopmin(db, S("z"), &bytes, &decimal, NULL), "c");
    CHECK(decimal == 3);
    STATUS(lsmkv_zpopmax(db, S("z"), NULL, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zpopmax(db, S("z"), &bytes, &decimal, NULL), LSMKV_NOT_FOUND);
    CHECK(bytes.data == NULL && decimal == 0);
    four(db, "y");
    REPLY(lsmkv_zpopmin_count(db, S("y"), 2, &reply, NULL), "[a ~1 b ~2]");
    REPLY(lsmkv_zpopmax_count(db, S("y"), 1, &reply, NULL), "[d ~4]");
    STATUS(lsmkv_zpopmin_count(db, S("y"), -1, &reply, NULL), LSMKV_INVALID);
    REPLY(lsmkv_zmpop(db, words("no y"), 2, LSMKV_GREATEST, 5, &reply, NULL), "[y [[c ~3]]]");
    STATUS(lsmkv_zmpop(db, words("no y"), 2, LSMKV_LEAST, 5, &reply, NULL), LSMKV_NOT_FOUND);
    four(db, "x");
    NUMBER(lsmkv_zremrangebyrank(db, S("x"), 0, 0, &number, NULL), 1);
    NUMBER(lsmkv_zremrangebyscore(db, S("x"), 2, 3, LSMKV_MAXEX, &number, NULL), 1);
    four(db, "w");
    NUMBER(lsmkv_zremrangebylex(db, S("w"), NULL, &b, 0, &number, NULL), 2);
    db = reopened(db);
    REPLY(lsmkv_zrange(db, S("x"), 0, -1, &reply, NULL), "[c d]");
    REPLY(lsmkv_zrange(db, S("w"), 0, -1, &reply, NULL), "[c d]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(ranges_are_stored) {
    lsmkv_db *db = check_open();
    lsmkv_slice b = slice_of("b");
    four(db, "z");
    NUMBER(lsmkv_zrangestore(db, S("r"), S("z"), 0, 1, LSMKV_REV, &number, NULL), 2);
    NUMBER(lsmkv_zrangestore_byscore(db, S("s"), S("z"), 1, 3, LSMKV_MINEX, 0, -1, &number, NULL), 2);
    NUMBER(lsmkv_zrangestore_byscore(db, S("t"), S("z"), 1, 4, LSMKV_REV, 0, 1, &number, NULL), 1);
    NUMBER(lsmkv_zrangestore_bylex(db, S("l"), S("z"), NULL, &b, 0, 0, -1, &number, NULL), 2);
    db = reopened(db);
    REPLY(lsmkv_zrange(db, S("r"), 0, -1, &reply, NULL), "[c d]");
    REPLY(lsmkv_zrange(db, S("s"), 0, -1, &reply, NULL), "[b c]");
    REPLY(lsmkv_zrange(db, S("t"), 0, -1, &reply, NULL), "[d]");
    REPLY(lsmkv_zrange(db, S("l"), 0, -1, &reply, NULL), "[a b]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(sorted_sets_are_combined) {
    lsmkv_db *db = check_open();
    static const double weights[] = {10, 1};
    four(db, "p");
    NUMBER(lsmkv_zadd(db, S("q"), 7, S("b"), &number, NULL), 1);
    NUMBER(lsmkv_zadd(db, S("q"), 8, S("e"), &number, NULL), 1);
    REPLY(lsmkv_zdiff(db, words("p q"), 2, LSMKV_WITHSCORES, &reply, NULL), "[a ~1 c ~3 d ~4]");
    REPLY(lsmkv_zinter(db, words("p q"), 2, weights, LSMKV_SUM, LSMKV_WITHSCORES, &reply, NULL), "[b ~27]");
    REPLY(lsmkv_zinter(db, words("p q"), 2, NULL, LSMKV_MIN, LSMKV_WITHSCORES, &reply, NULL), "[b ~2]");
    REPLY(lsmkv_zunion(db, words("p q"), 2, NULL, LSMKV_MAX, 0, &reply, NULL), "[a c d b e]");
    STATUS(lsmkv_zunion(db, words("p q"), 2, NULL, 3, 0, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_zunion(db, words("p q"), 2, NULL, 0, LSMKV_REV, &reply, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_zintercard(db, words("p q"), 2, 0, &number, NULL), 1);
    NUMBER(lsmkv_zdiffstore(db, S("d"), words("p q"), 2, &number, NULL), 3);
    NUMBER(lsmkv_zinterstore(db, S("i"), words("p q"), 2, weights, LSMKV_SUM, &number, NULL), 1);
    NUMBER(lsmkv_zunionstore(db, S("u"), words("p q"), 2, NULL, LSMKV_SUM, &number, NULL), 5);
    db = reopened(db);
    DECIMAL(lsmkv_zscore(db, S("i"), S("b"), &decimal, NULL), 27);
    REPLY(lsmkv_zrange(db, S("u"), 0, -1, &reply, NULL), "[a c d e b]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(members_are_drawn_and_scanned) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_zadd(db, S("z"), 1, S("only"), &number, NULL), 1);
    BYTES(lsmkv_zrandmember(db, S("z"), &bytes, NULL), "only");
    REPLY(lsmkv_zrandmember_count(db, S("z"), -2, LSMKV_WITHSCORES, &reply, NULL),
          "[only ~1 only ~1]");
    REPLY(lsmkv_zscan(db, S("z"), NULL, 0, NULL, 0, &reply, NULL), "[ [only ~1]]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(members_are_given_scores);
    RUN(ranges_go_by_position_score_and_bytes);
    RUN(members_are_removed_and_popped);
    RUN(ranges_are_stored);
    RUN(sorted_sets_are_combined);
    RUN(members_are_drawn_and_scanned);
    return END();
}

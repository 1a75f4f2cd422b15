/* Every function of sets, and what is left after reopening. */
#include "redis.h"

STORY(members_are_added_asked_for_and_removed) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_sadd(db, S("s"), S("a"), &number, NULL), 1);
    NUMBER(lsmkv_sadd(db, S("s"), S("a"), &number, NULL), 0);
    NUMBER(lsmkv_sadd_many(db, S("s"), words("b c d b"), 4, &number, NULL), 3);
    NUMBER(lsmkv_scard(db, S("s"), &number, NULL), 4);
    NUMBER(lsmkv_sismember(db, S("s"), S("b"), &number, NULL), 1);
    NUMBER(lsmkv_sismember(db, S("s"), S("no"), &number, NULL), 0);
    REPLY(lsmkv_smismember_many(db, S("s"), words("a no c"), 3, &reply, NULL), "[1 0 1]");
    REPLY(lsmkv_smembers(db, S("s"), &reply, NULL), "<a b c d>");
    REPLY(lsmkv_smembers(db, S("no"), &reply, NULL), "<>");
    NUMBER(lsmkv_srem(db, S("s"), S("a"), &number, NULL), 1);
    NUMBER(lsmkv_srem_many(db, S("s"), words("b no"), 2, &number, NULL), 1);
    NUMBER(lsmkv_smove(db, S("s"), S("t"), S("c"), &number, NULL), 1);
    NUMBER(lsmkv_smove(db, S("s"), S("t"), S("c"), &number, NULL), 0);
    db = reopened(db);
    REPLY(lsmkv_smembers(db, S("s"), &reply, NULL), "<d>");
    REPLY(lsmkv_smembers(db, S("t"), &reply, NULL), "<c>");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(sets_are_combined) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_sadd_many(db, S("p"), words("a b c"), 3, &number, NULL), 3);
    NUMBER(lsmkv_sadd_many(db, S("q"), words("b c d"), 3, &number, NULL), 3);
    REPLY(lsmkv_sdiff_many(db, words("p q"), 2, &reply, NULL), "<a>");
    REPLY(lsmkv_sinter_many(db, words("p q"), 2, &reply, NULL), "<b c>");
    REPLY(lsmkv_sunion_many(db, words("p q no"), 3, &reply, NULL), "<a b c d>");
    NUMBER(lsmkv_sintercard(db, words("p q"), 2, 0, &number, NULL), 2);
    NUMBER(lsmkv_sintercard(db, words("p q"), 2, 1, &number, NULL), 1);
    STATUS(lsmkv_sintercard(db, words("p q"), 2, -1, &number, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_sdiffstore_many(db, S("d"), words("p q"), 2, &number, NULL), 1);
    NUMBER(lsmkv_sinterstore_many(db, S("i"), words("p q"), 2, &number, NULL), 2);
    NUMBER(lsmkv_sunionstore_many(db, S("u"), words("p q"), 2, &number, NULL), 4);
    db = reopened(db);
    REPLY(lsmkv_smembers(db, S("d"), &reply, NULL), "<a>");
    REPLY(lsmkv_smembers(db, S("i"), &reply, NULL), "<b c>");
    REPLY(lsmkv_smembers(db, S("u"), &reply, NULL), "<a b c d>");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(members_are_drawn_and_popped_by_chance) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_sadd(db, S("s"), S("only"), &number, NULL), 1);
    BYTES(lsmkv_srandmember(db, S("s"), &bytes, NULL), "only");
    STATUS(lsmkv_srandmember(db, S("no"), &bytes, NULL), LSMKV_NOT_FOUND);
    REPLY(lsmkv_srandmember_count(db, S("s"), 3, &reply, NULL), "[only]");
    REPLY(lsmkv_srandmember_count(db, S("s"), -3, &reply, NULL), "[only only only]");
    BYTES(lsmkv_spop(db, S("s"), &bytes, NULL), "only");
    STATUS(lsmkv_spop(db, S("s"), &bytes, NULL), LSMKV_NOT_FOUND);
    NUMBER(lsmkv_sadd_many(db, S("s"), words("a b c"), 3, &number, NULL), 3);
    REPLY(lsmkv_spop_count(db, S("s"), 9, &reply, NULL), "<a b c>");
    REPLY(lsmkv_spop_count(db, S("s"), 9, &reply, NULL), "<>");
    STATUS(lsmkv_spop_count(db, S("s"), -1, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_set_is_scanned_in_pieces) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_sadd_many(db, S("s"), words("a b c"), 3, &number, NULL), 3);
    /* A small set may come whole; in a store of this process a cursor is the next member. */
    if (check_store == NULL) {
        REPLY(lsmkv_sscan(db, S("s"), NULL, 0, NULL, 2, &reply, NULL), "[c [a b]]");
        REPLY(lsmkv_sscan(db, S("s"), S("c"), NULL, 2, &reply, NULL), "[ [c]]");
    }
    STATUS(lsmkv_sscan(db, S("s"), NULL, 0, NULL, 9, &reply, NULL), LSMKV_OK);
    CHECK(lsmkv_reply_len(reply, 1) == 0);
    CHECK(lsmkv_reply_len(reply, lsmkv_reply_at(reply, 0, 1)) == 3);
    lsmkv_reply_free(reply);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(members_are_added_asked_for_and_removed);
    RUN(sets_are_combined);
    RUN(members_are_drawn_and_popped_by_chance);
    RUN(a_set_is_scanned_in_pieces);
    return END();
}

/* Every function of lists, and what is left after reopening. */
#include "redis.h"

STORY(elements_are_pushed_read_and_popped_at_both_ends) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_lpushx(db, S("l"), S("x"), &number, NULL), 0);
    NUMBER(lsmkv_rpushx(db, S("l"), S("x"), &number, NULL), 0);
    NUMBER(lsmkv_rpush(db, S("l"), S("c"), &number, NULL), 1);
    NUMBER(lsmkv_lpush(db, S("l"), S("b"), &number, NULL), 2);
    NUMBER(lsmkv_rpush_many(db, S("l"), words("d e"), 2, &number, NULL), 4);
    NUMBER(lsmkv_lpush_many(db, S("l"), words("a z"), 2, &number, NULL), 6);
    NUMBER(lsmkv_lpushx(db, S("l"), S("y"), &number, NULL), 7);
    NUMBER(lsmkv_rpushx(db, S("l"), S("f"), &number, NULL), 8);
    NUMBER(lsmkv_lpushx_many(db, S("l"), words("p q"), 2, &number, NULL), 10);
    NUMBER(lsmkv_rpushx_many(db, S("l"), words("r s"), 2, &number, NULL), 12);
    REPLY(lsmkv_lrange(db, S("l"), 0, -1, &reply, NULL), "[q p y z a b c d e f r s]");
    NUMBER(lsmkv_llen(db, S("l"), &number, NULL), 12);
    BYTES(lsmkv_lindex(db, S("l"), -1, &bytes, NULL), "s");
    STATUS(lsmkv_lindex(db, S("l"), 99, &bytes, NULL), LSMKV_NOT_FOUND);
    BYTES(lsmkv_lpop(db, S("l"), &bytes, NULL), "q");
    BYTES(lsmkv_rpop(db, S("l"), &bytes, NULL), "s");
    STATUS(lsmkv_lpop(db, S("l"), NULL, NULL), LSMKV_OK);
    REPLY(lsmkv_lpop_count(db, S("l"), 2, &reply, NULL), "[y z]");
    REPLY(lsmkv_rpop_count(db, S("l"), 2, &reply, NULL), "[r f]");
    db = reopened(db);
    REPLY(lsmkv_lrange(db, S("l"), 0, -1, &reply, NULL), "[a b c d e]");
    STATUS(lsmkv_lpop(db, S("no"), &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_lpop_count(db, S("no"), 1, &reply, NULL), LSMKV_NOT_FOUND);
    CHECK(reply == NULL);
    STATUS(lsmkv_rpop_count(db, S("l"), -1, &reply, &why), LSMKV_INVALID);
    REPLY(lsmkv_lrange(db, S("no"), 0, -1, &reply, NULL), "[]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(elements_are_replaced_inserted_removed_and_trimmed) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_rpush_many(db, S("l"), words("a b a c a"), 5, &number, NULL), 5);
    STATUS(lsmkv_lset(db, S("l"), 1, S("B"), NULL), LSMKV_OK);
    STATUS(lsmkv_lset(db, S("l"), 9, S("B"), NULL), LSMKV_OUT_OF_RANGE);
    STATUS(lsmkv_lset(db, S("no"), 0, S("B"), NULL), LSMKV_NO_SUCH_KEY);
    NUMBER(lsmkv_linsert(db, S("l"), LSMKV_BEFORE, S("B"), S("<"), &number, NULL), 6);
    NUMBER(lsmkv_linsert(db, S("l"), LSMKV_AFTER, S("B"), S(">"), &number, NULL), 7);
    NUMBER(lsmkv_linsert(db, S("l"), LSMKV_AFTER, S("no"), S(">"), &number, NULL), -1);
    STATUS(lsmkv_linsert(db, S("l"), 2, S("B"), S(">"), &number, NULL), LSMKV_INVALID);
    REPLY(lsmkv_lrange(db, S("l"), 0, -1, &reply, NULL), "[a < B > a c a]");
    NUMBER(lsmkv_lrem(db, S("l"), -2, S("a"), &number, NULL), 2);
    STATUS(lsmkv_ltrim(db, S("l"), 1, -2, NULL), LSMKV_OK);
    db = reopened(db);
    REPLY(lsmkv_lrange(db, S("l"), 0, -1, &reply, NULL), "[< B >]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(elements_are_found) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_rpush_many(db, S("l"), words("a b a c a"), 5, &number, NULL), 5);
    NUMBER(lsmkv_lpos(db, S("l"), S("a"), 1, 0, &number, NULL), 0);
    NUMBER(lsmkv_lpos(db, S("l"), S("a"), -1, 0, &number, NULL), 4);
    NUMBER(lsmkv_lpos(db, S("l"), S("a"), 2, 0, &number, NULL), 2);
    STATUS(lsmkv_lpos(db, S("l"), S("a"), 2, 2, &number, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_lpos(db, S("l"), S("a"), 0, 0, &number, NULL), LSMKV_INVALID);
    REPLY(lsmkv_lpos_count(db, S("l"), S("a"), 1, 0, 0, &reply, NULL), "[0 2 4]");
    REPLY(lsmkv_lpos_count(db, S("l"), S("a"), -1, 2, 0, &reply, NULL), "[4 2]");
    REPLY(lsmkv_lpos_count(db, S("l"), S("no"), 1, 0, 0, &reply, NULL), "[]");
    STATUS(lsmkv_lpos_count(db, S("l"), S("a"), 1, -1, 0, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(elements_move_from_list_to_list) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_rpush_many(db, S("l"), words("a b c d"), 4, &number, NULL), 4);
    BYTES(lsmkv_lmove(db, S("l"), S("m"), LSMKV_LEFT, LSMKV_RIGHT, &bytes, NULL), "a");
    BYTES(lsmkv_rpoplpush(db, S("l"), S("m"), &bytes, NULL), "d");
    REPLY(lsmkv_lrange(db, S("m"), 0, -1, &reply, NULL), "[d a]");
    STATUS(lsmkv_lmove(db, S("no"), S("m"), LSMKV_LEFT, LSMKV_LEFT, &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_lmove(db, S("l"), S("m"), 7, LSMKV_LEFT, &bytes, NULL), LSMKV_INVALID);
    REPLY(lsmkv_lmpop(db, words("no l"), 2, LSMKV_RIGHT, 9, &reply, NULL), "[l [c b]]");
    STATUS(lsmkv_lmpop(db, words("no l"), 2, LSMKV_LEFT, 1, &reply, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_lmpop(db, words("m"), 1, LSMKV_LEFT, 0, &reply, NULL), LSMKV_OUT_OF_RANGE);
    STATUS(lsmkv_lmpop(db, words("m"), 0, LSMKV_LEFT, 1, &reply, NULL), LSMKV_INVALID);
    db = reopened(db);
    REPLY(lsmkv_lrange(db, S("m"), 0, -1, &reply, NULL), "[d a]");
    NUMBER(lsmkv_exists(db, S("l"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(elements_are_pushed_read_and_popped_at_both_ends);
    RUN(elements_are_replaced_inserted_removed_and_trimmed);
    RUN(elements_are_found);
    RUN(elements_move_from_list_to_list);
    return END();
}

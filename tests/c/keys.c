/* Every function of the key space, and what is left after reopening. */
#include "redis.h"

STORY(keys_of_any_type_are_asked_for_and_removed) {
    lsmkv_db *db = check_open();
    int32_t kind = 9;
    STATUS(lsmkv_mset_many(db, words("a 1 b 2 c 3 d 4"), 4, NULL), LSMKV_OK);
    NUMBER(lsmkv_exists_many(db, words("a a no"), 3, &number, NULL), 2);
    NUMBER(lsmkv_touch(db, S("a"), &number, NULL), 1);
    NUMBER(lsmkv_touch_many(db, words("a no"), 2, &number, NULL), 1);
    NUMBER(lsmkv_dbsize(db, &number, NULL), 4);
    NUMBER(lsmkv_del_many(db, words("a no"), 2, &number, NULL), 1);
    NUMBER(lsmkv_unlink(db, S("b"), &number, NULL), 1);
    NUMBER(lsmkv_unlink_many(db, words("b c"), 2, &number, NULL), 1);
    BYTES(lsmkv_randomkey(db, &bytes, NULL), "d");
    REPLY(lsmkv_keys(db, S("?"), &reply, NULL), "[d]");
    STATUS(lsmkv_type(db, S("d"), &kind, NULL), LSMKV_OK);
    CHECK(kind == LSMKV_STRING);
    STATUS(lsmkv_type(db, S("no"), &kind, NULL), LSMKV_NOT_FOUND);
    CHECK(kind == 0);
    NUMBER(lsmkv_rpush(db, S("l"), S("x"), &number, NULL), 1);
    STATUS(lsmkv_type(db, S("l"), &kind, NULL), LSMKV_OK);
    CHECK(kind == LSMKV_LIST);
    BYTES(lsmkv_object_encoding(db, S("d"), &bytes, NULL), "int");
    STATUS(lsmkv_object_encoding(db, S("no"), &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_memory_usage(db, S("d"), &number, NULL), LSMKV_OK);
    CHECK(number > 2 && number < 200);
    STATUS(lsmkv_memory_usage(db, S("no"), &number, NULL), LSMKV_NOT_FOUND);
    NUMBER(lsmkv_del(db, S("d"), &number, NULL), 1);
    NUMBER(lsmkv_del(db, S("l"), &number, NULL), 1);
    STATUS(lsmkv_randomkey(db, &bytes, NULL), LSMKV_NOT_FOUND);
    db = reopened(db);
    NUMBER(lsmkv_dbsize(db, &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(keys_expire_when_they_are_told_to) {
    lsmkv_db *db = check_open();
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    NUMBER(lsmkv_ttl(db, S("k"), &number, NULL), -1);
    NUMBER(lsmkv_pttl(db, S("no"), &number, NULL), -2);
    NUMBER(lsmkv_expire(db, S("k"), 100, &number, NULL), 1);
    NUMBER(lsmkv_expire(db, S("no"), 100, &number, NULL), 0);
    LEFT(lsmkv_ttl(db, S("k"), &number, NULL), 100);
    NUMBER(lsmkv_pexpire(db, S("k"), 200000, &number, NULL), 1);
    LEFT(lsmkv_ttl(db, S("k"), &number, NULL), 200);
    NUMBER(lsmkv_expire_opt(db, S("k"), 10, LSMKV_NX, &number, NULL), 0);
    NUMBER(lsmkv_expire_opt(db, S("k"), 10, LSMKV_GT, &number, NULL), 0);
    NUMBER(lsmkv_pexpire_opt(db, S("k"), 10000, LSMKV_LT | LSMKV_XX, &number, NULL), 1);
    STATUS(lsmkv_pexpire_opt(db, S("k"), 1, LSMKV_NX | LSMKV_GT, &number, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_expireat(db, S("k"), 4102444800, &number, NULL), 1);
    NUMBER(lsmkv_expiretime(db, S("k"), &number, NULL), 4102444800);
    NUMBER(lsmkv_pexpireat(db, S("k"), INT64_C(4102444800001), &number, NULL), 1);
    NUMBER(lsmkv_pexpiretime(db, S("k"), &number, NULL), INT64_C(4102444800001));
    NUMBER(lsmkv_expireat_opt(db, S("k"), 1, LSMKV_GT, &number, NULL), 0);
    NUMBER(lsmkv_pexpireat_opt(db, S("k"), 1, LSMKV_NX, &number, NULL), 0);
    NUMBER(lsmkv_persist(db, S("k"), &number, NULL), 1);
    NUMBER(lsmkv_persist(db, S("k"), &number, NULL), 0);
    STATUS(lsmkv_expire(db, S("k"), INT64_MAX, &number, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_expireat(db, S("k"), 1, &number, NULL), 1);
    NUMBER(lsmkv_exists(db, S("k"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(keys_are_renamed_copied_and_moved) {
    lsmkv_db *db = check_open(), *one = NULL;
    STATUS(lsmkv_mset_many(db, words("a 1 b 2"), 2, NULL), LSMKV_OK);
    STATUS(lsmkv_rename(db, S("a"), S("c"), NULL), LSMKV_OK);
    STATUS(lsmkv_rename(db, S("a"), S("c"), &why), LSMKV_NO_SUCH_KEY);
    NUMBER(lsmkv_renamenx(db, S("b"), S("c"), &number, NULL), 0);
    NUMBER(lsmkv_renamenx(db, S("b"), S("d"), &number, NULL), 1);
    NUMBER(lsmkv_copy(db, S("c"), S("d"), 0, &number, NULL), 0);
    NUMBER(lsmkv_copy(db, S("c"), S("d"), LSMKV_REPLACE, &number, NULL), 1);
    STATUS(lsmkv_copy(db, S("c"), S("c"), 0, &number, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_copy_to(db, S("c"), S("e"), 1, 0, &number, NULL), 1);
    STATUS(lsmkv_copy_to(db, S("c"), S("e"), 99, 0, &number, NULL), LSMKV_OUT_OF_RANGE);
    NUMBER(lsmkv_move(db, S("d"), 1, &number, NULL), 1);
    NUMBER(lsmkv_move(db, S("no"), 1, &number, NULL), 0);
    STATUS(lsmkv_select(db, 1, &one, NULL), LSMKV_OK);
    if (check_store == NULL) REPLY(lsmkv_keys(one, S("*"), &reply, NULL), "[d e]");
    NUMBER(lsmkv_dbsize(one, &number, NULL), 2);
    STATUS(lsmkv_swapdb(db, 0, 1, NULL), LSMKV_OK);
    STATUS(lsmkv_swapdb(db, 0, 99, NULL), LSMKV_OUT_OF_RANGE);
    REPLY(lsmkv_keys(one, S("*"), &reply, NULL), "[c]");
    STATUS(lsmkv_flushdb(one, NULL), LSMKV_OK);
    NUMBER(lsmkv_dbsize(one, &number, NULL), 0);
    STATUS(lsmkv_close(one, NULL), LSMKV_OK);
    db = reopened(db);
    if (check_store == NULL) REPLY(lsmkv_keys(db, S("*"), &reply, NULL), "[d e]");
    NUMBER(lsmkv_dbsize(db, &number, NULL), 2);
    STATUS(lsmkv_flushall(db, NULL), LSMKV_OK);
    NUMBER(lsmkv_dbsize(db, &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* Scans all keys, and returns how many there were. */
static int scanned(lsmkv_db *db, const lsmkv_slice *pattern, int32_t type) {
    char next[32] = "";
    int seen = 0, rounds = 0, len;
    do {
        STATUS(lsmkv_scan(db, next, strlen(next), pattern, 2, type, &reply, &why), LSMKV_OK);
        seen += (int)lsmkv_reply_len(reply, lsmkv_reply_at(reply, 0, 1));
        len = (int)lsmkv_reply_len(reply, 1);
        memcpy(next, lsmkv_reply_str(reply, 1), len);
        next[len] = 0;
        lsmkv_reply_free(reply);
    } while (len > 0 && rounds++ < 100);
    return seen;
}

STORY(keys_are_scanned_in_pieces) {
    lsmkv_db *db = check_open();
    lsmkv_slice pattern = slice_of("k*");
    STATUS(lsmkv_mset_many(db, words("k1 1 k2 2 k3 3"), 3, NULL), LSMKV_OK);
    NUMBER(lsmkv_sadd(db, S("s"), S("m"), &number, NULL), 1);
    CHECK(scanned(db, NULL, 0) == 4 && scanned(db, &pattern, 0) == 3);
    CHECK(scanned(db, NULL, LSMKV_SET) == 1);
    /* In a store of this process a cursor is the next key. */
    if (check_store == NULL) {
        REPLY(lsmkv_scan(db, NULL, 0, NULL, 2, 0, &reply, NULL), "[k3 [k1 k2]]");
        REPLY(lsmkv_scan(db, S("k3"), &pattern, 0, 0, &reply, NULL), "[ [k3]]");
        REPLY(lsmkv_scan(db, NULL, 0, NULL, 0, LSMKV_SET, &reply, NULL), "[ [s]]");
    }
    STATUS(lsmkv_scan(db, NULL, 0, NULL, 0, 9, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(collections_are_sorted) {
    lsmkv_db *db = check_open();
    lsmkv_slice by = slice_of("w_*");
    NUMBER(lsmkv_rpush_many(db, S("l"), words("10 9 8"), 3, &number, NULL), 3);
    STATUS(lsmkv_mset_many(db, words("w_8 3 w_9 1 w_10 2"), 3, NULL), LSMKV_OK);
    REPLY(lsmkv_sort(db, S("l"), NULL, NULL, 0, 0, -1, 0, &reply, NULL), "[8 9 10]");
    REPLY(lsmkv_sort(db, S("l"), NULL, NULL, 0, 0, -1, LSMKV_ALPHA | LSMKV_REV, &reply, NULL),
          "[9 8 10]");
    REPLY(lsmkv_sort_ro(db, S("l"), &by, words("# w_*"), 2, 0, 2, 0, &reply, NULL), "[9 1 10 2]");
    STATUS(lsmkv_sort(db, S("l"), NULL, NULL, 0, 0, -1, LSMKV_CH, &reply, NULL), LSMKV_INVALID);
    NUMBER(lsmkv_sort_store(db, S("l"), S("d"), &by, NULL, 0, 0, -1, LSMKV_REV, &number, NULL), 3);
    db = reopened(db);
    REPLY(lsmkv_lrange(db, S("d"), 0, -1, &reply, NULL), "[8 10 9]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(keys_of_any_type_are_asked_for_and_removed);
    RUN(keys_expire_when_they_are_told_to);
    RUN(keys_are_renamed_copied_and_moved);
    RUN(keys_are_scanned_in_pieces);
    RUN(collections_are_sorted);
    return END();
}

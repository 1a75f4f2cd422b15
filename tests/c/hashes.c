/* Every function of hashes, and what is left after reopening. */
#include "redis.h"

STORY(fields_are_set_read_and_removed) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_hset(db, S("h"), S("a"), S("1"), &number, NULL), 1);
    NUMBER(lsmkv_hset(db, S("h"), S("a"), S("2"), &number, NULL), 0);
    NUMBER(lsmkv_hset_many(db, S("h"), words("b x c y"), 2, &number, NULL), 2);
    BYTES(lsmkv_hget(db, S("h"), S("a"), &bytes, NULL), "2");
    STATUS(lsmkv_hget(db, S("h"), S("no"), &bytes, NULL), LSMKV_NOT_FOUND);
    CHECK(bytes.data == NULL);
    STATUS(lsmkv_hget(db, S("no"), S("a"), &bytes, NULL), LSMKV_NOT_FOUND);
    REPLY(lsmkv_hmget_many(db, S("h"), words("a no c"), 3, &reply, NULL), "[2 nil y]");
    REPLY(lsmkv_hgetall(db, S("h"), &reply, NULL), "{a 2 b x c y}");
    REPLY(lsmkv_hgetall(db, S("no"), &reply, NULL), "{}");
    REPLY(lsmkv_hkeys(db, S("h"), &reply, NULL), "[a b c]");
    REPLY(lsmkv_hvals(db, S("h"), &reply, NULL), "[2 x y]");
    NUMBER(lsmkv_hlen(db, S("h"), &number, NULL), 3);
    NUMBER(lsmkv_hstrlen(db, S("h"), S("b"), &number, NULL), 1);
    NUMBER(lsmkv_hexists(db, S("h"), S("b"), &number, NULL), 1);
    NUMBER(lsmkv_hexists(db, S("h"), S("no"), &number, NULL), 0);
    NUMBER(lsmkv_hsetnx(db, S("h"), S("b"), S("z"), &number, NULL), 0);
    NUMBER(lsmkv_hsetnx(db, S("h"), S("d"), S("z"), &number, NULL), 1);
    NUMBER(lsmkv_hdel(db, S("h"), S("d"), &number, NULL), 1);
    NUMBER(lsmkv_hdel_many(db, S("h"), words("b c no"), 3, &number, NULL), 2);
    db = reopened(db);
    REPLY(lsmkv_hgetall(db, S("h"), &reply, NULL), "{a 2}");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(numbers_in_fields_are_added_to) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_hincrby(db, S("h"), S("n"), 5, &number, NULL), 5);
    NUMBER(lsmkv_hincrby(db, S("h"), S("n"), -7, &number, NULL), -2);
    STATUS(lsmkv_hincrby(db, S("h"), S("n"), INT64_MIN, &number, &why), LSMKV_OVERFLOW);
    DECIMAL(lsmkv_hincrbyfloat(db, S("h"), S("f"), 10.5, &decimal, NULL), 10.5);
    DECIMAL(lsmkv_hincrbyfloat(db, S("h"), S("f"), 0.1, &decimal, NULL), 10.6);
    BYTES(lsmkv_hget(db, S("h"), S("f"), &bytes, NULL), "10.6");
    STATUS(lsmkv_hmset(db, S("h"), S("n"), S("text"), NULL), LSMKV_OK);
    STATUS(lsmkv_hmset_many(db, S("h"), words("n text m 1"), 2, NULL), LSMKV_OK);
    STATUS(lsmkv_hincrby(db, S("h"), S("n"), 1, &number, &why), LSMKV_NOT_INTEGER);
    CHECK(number == 0 && strstr(why.msg, "not an integer") != NULL);
    STATUS(lsmkv_hincrbyfloat(db, S("h"), S("n"), 1, &decimal, &why), LSMKV_NOT_FLOAT);
    CHECK(decimal == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(fields_are_taken_and_drawn_by_chance) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_hset(db, S("h"), S("only"), S("v"), &number, NULL), 1);
    BYTES(lsmkv_hrandfield(db, S("h"), &bytes, NULL), "only");
    STATUS(lsmkv_hrandfield(db, S("no"), &bytes, NULL), LSMKV_NOT_FOUND);
    REPLY(lsmkv_hrandfield_count(db, S("h"), 5, 0, &reply, NULL), "[only]");
    REPLY(lsmkv_hrandfield_count(db, S("h"), -2, 0, &reply, NULL), "[only only]");
    REPLY(lsmkv_hrandfield_count(db, S("h"), 1, LSMKV_WITHVALUES, &reply, NULL), "[only v]");
    STATUS(lsmkv_hrandfield_count(db, S("h"), 1, LSMKV_WITHSCORES, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_hrandfield_count(db, S("h"), INT64_MIN, 0, &reply, &why), LSMKV_INVALID);
    NUMBER(lsmkv_hset_many(db, S("h"), words("a 1 b 2"), 2, &number, NULL), 2);
    BYTES(lsmkv_hgetdel(db, S("h"), S("a"), &bytes, NULL), "1");
    STATUS(lsmkv_hgetdel(db, S("h"), S("a"), &bytes, NULL), LSMKV_NOT_FOUND);
    REPLY(lsmkv_hgetdel_many(db, S("h"), words("b a only"), 3, &reply, NULL), "[2 nil v]");
    NUMBER(lsmkv_exists(db, S("h"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_hash_is_scanned_in_pieces) {
    lsmkv_db *db = check_open();
    lsmkv_slice pattern = slice_of("f*");
    char field[8], next[16] = "";
    int i, seen = 0, rounds = 0;
    for (i = 0; i < 25; i++) {
        sprintf(field, "%c%02d", i % 2 ? 'f' : 'g', i);
        STATUS(lsmkv_hset(db, S("h"), field, 3, "v", 1, NULL, NULL), LSMKV_OK);
    }
    do {
        STATUS(lsmkv_hscan(db, S("h"), next, strlen(next), &pattern, 4, &reply, &why), LSMKV_OK);
        seen += (int)lsmkv_reply_len(reply, lsmkv_reply_at(reply, 0, 1)) / 2;
        i = (int)lsmkv_reply_len(reply, 1);
        memcpy(next, lsmkv_reply_str(reply, 1), i);
        next[i] = 0;
        lsmkv_reply_free(reply);
    } while (i > 0 && rounds++ < 100);
    CHECK(seen == 12 && (check_store != NULL || rounds == 6));
    STATUS(lsmkv_hscan(db, S("h"), NULL, 0, NULL, -1, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(another_type_is_refused_and_nothing_changes) {
    lsmkv_db *db = check_open();
    STATUS(lsmkv_set(db, S("s"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_hset(db, S("s"), S("f"), S("v"), &number, &why), LSMKV_WRONGTYPE);
    STATUS(lsmkv_hgetall(db, S("s"), &reply, &why), LSMKV_WRONGTYPE);
    CHECK(reply == NULL && strncmp(why.msg, "WRONGTYPE", 9) == 0);
    STATUS(lsmkv_hset(db, S("s"), S("f"), S("v"), NULL, NULL), LSMKV_WRONGTYPE);
    BYTES(lsmkv_get(db, S("s"), &bytes, NULL), "v");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(fields_are_set_read_and_removed);
    RUN(numbers_in_fields_are_added_to);
    RUN(fields_are_taken_and_drawn_by_chance);
    RUN(a_hash_is_scanned_in_pieces);
    RUN(another_type_is_refused_and_nothing_changes);
    return END();
}

/* Every function of strings and their bits, and what is left after reopening. */
#include "redis.h"

STORY(values_are_set_under_conditions_and_for_a_time) {
    lsmkv_db *db = check_open();
    STATUS(lsmkv_set_opt(db, S("k"), S("1"), LSMKV_XX, 0, NULL, NULL), LSMKV_SKIPPED);
    STATUS(lsmkv_set_opt(db, S("k"), S("1"), LSMKV_NX, 0, &bytes, NULL), LSMKV_OK);
    CHECK(bytes.data == NULL);
    STATUS(lsmkv_set_opt(db, S("k"), S("2"), LSMKV_NX, 0, &bytes, NULL), LSMKV_SKIPPED);
    CHECK(bytes.len == 1 && bytes.data[0] == '1');
    lsmkv_buf_release(&bytes);
    BYTES(lsmkv_set_opt(db, S("k"), S("2"), LSMKV_XX, 60000, &bytes, NULL), "1");
    LEFT(lsmkv_pttl(db, S("k"), &number, NULL), 60000);
    STATUS(lsmkv_set_opt(db, S("k"), S("3"), LSMKV_KEEPTTL, 0, NULL, NULL), LSMKV_OK);
    LEFT(lsmkv_pttl(db, S("k"), &number, NULL), 60000);
    STATUS(lsmkv_set_opt(db, S("k"), S("4"), LSMKV_AT, INT64_C(4102444800000), NULL, NULL), LSMKV_OK);
    NUMBER(lsmkv_pexpiretime(db, S("k"), &number, NULL), INT64_C(4102444800000));
    NUMBER(lsmkv_expiretime(db, S("k"), &number, NULL), 4102444800);
    STATUS(lsmkv_set_opt(db, S("k"), S("5"), LSMKV_NX | LSMKV_XX, 0, NULL, &why), LSMKV_INVALID);
    STATUS(lsmkv_set_opt(db, S("k"), S("5"), LSMKV_KEEPTTL, 1, NULL, &why), LSMKV_INVALID);
    STATUS(lsmkv_set_opt(db, S("k"), S("5"), LSMKV_AT, 0, NULL, &why), LSMKV_INVALID);
    STATUS(lsmkv_set_opt(db, S("k"), S("5"), 0, -1, NULL, &why), LSMKV_INVALID);
    STATUS(lsmkv_set_opt(db, S("k"), S("5"), LSMKV_GT, 0, NULL, &why), LSMKV_INVALID);
    STATUS(lsmkv_setex(db, S("e"), 100, S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_psetex(db, S("p"), 100000, S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_setex(db, S("e"), 0, S("v"), NULL), LSMKV_INVALID);
    LEFT(lsmkv_ttl(db, S("p"), &number, NULL), 100);
    NUMBER(lsmkv_setnx(db, S("k"), S("no"), &number, NULL), 0);
    NUMBER(lsmkv_setnx(db, S("n"), S("yes"), &number, NULL), 1);
    db = reopened(db);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "4");
    BYTES(lsmkv_get(db, S("n"), &bytes, NULL), "yes");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(values_are_taken_and_exchanged) {
    lsmkv_db *db = check_open();
    char dst[8];
    size_t len;
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    BYTES(lsmkv_getset(db, S("k"), S("w"), &bytes, NULL), "v");
    BYTES(lsmkv_getex(db, S("k"), 60000, 0, &bytes, NULL), "w");
    LEFT(lsmkv_ttl(db, S("k"), &number, NULL), 60);
    BYTES(lsmkv_getex(db, S("k"), 0, LSMKV_PERSIST, &bytes, NULL), "w");
    NUMBER(lsmkv_ttl(db, S("k"), &number, NULL), -1);
    BYTES(lsmkv_getex(db, S("k"), INT64_C(4102444800000), LSMKV_AT, &bytes, NULL), "w");
    BYTES(lsmkv_getex(db, S("k"), 0, 0, &bytes, NULL), "w");
    NUMBER(lsmkv_expiretime(db, S("k"), &number, NULL), 4102444800);
    STATUS(lsmkv_getex(db, S("k"), 1, LSMKV_PERSIST, &bytes, NULL), LSMKV_INVALID);
    STATUS(lsmkv_getex(db, S("no"), 1, 0, &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_get_into(db, S("k"), dst, sizeof dst, &len, NULL), LSMKV_OK);
    CHECK(len == 1 && dst[0] == 'w');
    BYTES(lsmkv_getdel(db, S("k"), &bytes, NULL), "w");
    STATUS(lsmkv_getdel(db, S("k"), &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(several_values_in_one_call) {
    lsmkv_db *db = check_open();
    STATUS(lsmkv_mset_many(db, words("a 1 b 2"), 2, NULL), LSMKV_OK);
    REPLY(lsmkv_mget_many(db, words("a no b"), 3, &reply, NULL), "[1 nil 2]");
    NUMBER(lsmkv_msetnx_many(db, words("c 3 a 4"), 2, &number, NULL), 0);
    NUMBER(lsmkv_msetnx_many(db, words("c 3 d 4"), 2, &number, NULL), 1);
    STATUS(lsmkv_mset_many(db, NULL, 0, NULL), LSMKV_INVALID);
    db = reopened(db);
    REPLY(lsmkv_mget_many(db, words("a b c d"), 4, &reply, NULL), "[1 2 3 4]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(numbers_count) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_incr(db, S("n"), &number, NULL), 1);
    NUMBER(lsmkv_incrby(db, S("n"), 41, &number, NULL), 42);
    NUMBER(lsmkv_decr(db, S("n"), &number, NULL), 41);
    NUMBER(lsmkv_decrby(db, S("n"), 50, &number, NULL), -9);
    STATUS(lsmkv_incrby(db, S("n"), INT64_MIN, &number, NULL), LSMKV_OVERFLOW);
    CHECK(number == 0);
    DECIMAL(lsmkv_incrbyfloat(db, S("f"), 10.5, &decimal, NULL), 10.5);
    DECIMAL(lsmkv_incrbyfloat(db, S("f"), 0.1, &decimal, NULL), 10.6);
    BYTES(lsmkv_get(db, S("f"), &bytes, NULL), "10.6");
    STATUS(lsmkv_set(db, S("t"), S("text"), NULL), LSMKV_OK);
    STATUS(lsmkv_incr(db, S("t"), &number, &why), LSMKV_NOT_INTEGER);
    STATUS(lsmkv_incrbyfloat(db, S("t"), 1, &decimal, &why), LSMKV_NOT_FLOAT);
    db = reopened(db);
    BYTES(lsmkv_get(db, S("n"), &bytes, NULL), "-9");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(parts_of_values_are_read_and_written) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_append(db, S("k"), S("hello"), &number, NULL), 5);
    NUMBER(lsmkv_append(db, S("k"), S(" world"), &number, NULL), 11);
    NUMBER(lsmkv_setrange(db, S("k"), 6, S("WORLD!"), &number, NULL), 12);
    STATUS(lsmkv_setrange(db, S("k"), -1, S("x"), &number, NULL), LSMKV_OUT_OF_RANGE);
    BYTES(lsmkv_getrange(db, S("k"), -6, -2, &bytes, NULL), "WORLD");
    BYTES(lsmkv_substr(db, S("k"), 0, 4, &bytes, NULL), "hello");
    BYTES(lsmkv_getrange(db, S("no"), 0, -1, &bytes, NULL), "");
    NUMBER(lsmkv_strlen(db, S("k"), &number, NULL), 12);
    STATUS(lsmkv_set(db, S("a"), S("ohmytext"), NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("b"), S("mynewtext"), NULL), LSMKV_OK);
    BYTES(lsmkv_lcs(db, S("a"), S("b"), &bytes, NULL), "mytext");
    NUMBER(lsmkv_lcs_len(db, S("a"), S("b"), &number, NULL), 6);
    REPLY(lsmkv_lcs_idx(db, S("a"), S("b"), 4, LSMKV_WITHMATCHLEN, &reply, NULL),
          "{matches [[[4 7] [5 8] 4]] len 6}");
    db = reopened(db);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "hello WORLD!");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(bits_are_read_set_counted_and_combined) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_setbit(db, S("b"), 7, 1, &number, NULL), 0);
    NUMBER(lsmkv_setbit(db, S("b"), 7, 1, &number, NULL), 1);
    STATUS(lsmkv_setbit(db, S("b"), 7, 2, &number, NULL), LSMKV_INVALID);
    STATUS(lsmkv_setbit(db, S("b"), UINT64_MAX, 1, &number, NULL), LSMKV_OUT_OF_RANGE);
    NUMBER(lsmkv_getbit(db, S("b"), 7, &number, NULL), 1);
    NUMBER(lsmkv_getbit(db, S("b"), 99, &number, NULL), 0);
    STATUS(lsmkv_set(db, S("f"), S("foobar"), NULL), LSMKV_OK);
    NUMBER(lsmkv_bitcount(db, S("f"), &number, NULL), 26);
    NUMBER(lsmkv_bitcount_range(db, S("f"), 1, 1, 0, &number, NULL), 6);
    NUMBER(lsmkv_bitcount_range(db, S("f"), 5, 30, LSMKV_BIT, &number, NULL), 17);
    STATUS(lsmkv_set(db, S("p"), "\xff\xf0\x00", 3, NULL), LSMKV_OK);
    NUMBER(lsmkv_bitpos(db, S("p"), 0, 0, &number, NULL), 12);
    NUMBER(lsmkv_bitpos(db, S("p"), 1, 2, &number, NULL), -1);
    NUMBER(lsmkv_bitpos_range(db, S("p"), 1, 7, 15, LSMKV_BIT, &number, NULL), 7);
    STATUS(lsmkv_bitpos(db, S("p"), 3, 0, &number, NULL), LSMKV_INVALID);
    STATUS(lsmkv_set(db, S("x"), S("abc"), NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("y"), S("ABCd"), NULL), LSMKV_OK);
    NUMBER(lsmkv_bitop(db, LSMKV_OR, S("or"), words("x y"), 2, &number, NULL), 4);
    BYTES(lsmkv_get(db, S("or"), &bytes, NULL), "abcd");
    STATUS(lsmkv_bitop(db, LSMKV_NOT, S("or"), words("x y"), 2, &number, NULL), LSMKV_SYNTAX);
    STATUS(lsmkv_bitop(db, 9, S("or"), words("x y"), 2, &number, NULL), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(integers_live_inside_values) {
    lsmkv_db *db = check_open();
    lsmkv_bitfield_op ops[3];
    memset(ops, 0, sizeof ops);
    CHECK(sizeof(lsmkv_bitfield_op) == 32);
    ops[0].action = LSMKV_FIELD_SET, ops[0].bits = 8, ops[0].value = 250;
    ops[1].action = LSMKV_FIELD_INCRBY, ops[1].bits = 8, ops[1].value = 10;
    ops[1].overflow = LSMKV_FIELD_FAIL;
    ops[2].action = LSMKV_FIELD_GET, ops[2].bits = 8, ops[2].is_signed = 1;
    REPLY(lsmkv_bitfield(db, S("b"), ops, 3, &reply, NULL), "[0 nil -6]");
    ops[1].overflow = LSMKV_FIELD_SAT;
    REPLY(lsmkv_bitfield(db, S("b"), ops + 1, 2, &reply, NULL), "[255 -1]");
    REPLY(lsmkv_bitfield_ro(db, S("b"), ops + 2, 1, &reply, NULL), "[-1]");
    STATUS(lsmkv_bitfield_ro(db, S("b"), ops, 3, &reply, NULL), LSMKV_INVALID);
    ops[2].bits = 65;
    STATUS(lsmkv_bitfield(db, S("b"), ops, 3, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_bitfield(db, S("b"), NULL, 3, &reply, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_bitfield(db, S("b"), ops, 0, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(values_are_set_under_conditions_and_for_a_time);
    RUN(values_are_taken_and_exchanged);
    RUN(several_values_in_one_call);
    RUN(numbers_count);
    RUN(parts_of_values_are_read_and_written);
    RUN(bits_are_read_set_counted_and_combined);
    RUN(integers_live_inside_values);
    return END();
}

/* Handles made from handles: snapshots, databases, transactions, batches, tickets, iterators. */
#include "redis.h"

STORY(a_snapshot_stays_as_it_was) {
    lsmkv_db *db = check_open(), *then = NULL, *again = NULL;
    STATUS(lsmkv_set(db, S("k"), S("before"), NULL), LSMKV_OK);
    STATUS(lsmkv_snapshot(db, &then, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("after"), NULL), LSMKV_OK);
    STATUS(lsmkv_snapshot(then, &again, NULL), LSMKV_OK);
    BYTES(lsmkv_get(then, S("k"), &bytes, NULL), "before");
    BYTES(lsmkv_get(again, S("k"), &bytes, NULL), "before");
    STATUS(lsmkv_close(again, NULL), LSMKV_OK);
    STATUS(lsmkv_del(then, S("k"), NULL, &why), LSMKV_READONLY);
    STATUS(command(then, "DEL k"), LSMKV_READONLY);
    STATUS(lsmkv_begin(then, &again, &why), LSMKV_UNSUPPORTED);
    CHECK(again == NULL);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(lsmkv_get(then, S("k"), &bytes, &why), LSMKV_CLOSED);
    STATUS(lsmkv_close(then, NULL), LSMKV_OK);
}

STORY(snapshots_and_transactions_have_sessions) {
    lsmkv_db *db = check_open(), *then = NULL, *txn = NULL, *session = NULL;
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_snapshot(db, &then, NULL), LSMKV_OK);
    STATUS(lsmkv_session(then, &session, &why), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("w"), NULL), LSMKV_OK);
    BYTES(lsmkv_get(session, S("k"), &bytes, NULL), "v");
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(then, NULL), LSMKV_OK);
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_session(txn, &session, &why), LSMKV_OK);
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "APPEND k x"), "+QUEUED");
    REPLY(command(session, "EXEC"), "[2]");
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "w");
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "wx");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(databases_are_apart) {
    lsmkv_db *db = check_open(), *seven = NULL, *no = NULL;
    STATUS(lsmkv_select(db, 7, &seven, NULL), LSMKV_OK);
    STATUS(lsmkv_select(db, 4000000000u, &no, &why), LSMKV_OUT_OF_RANGE);
    CHECK(no == NULL);
    STATUS(lsmkv_set(seven, S("k"), S("7"), NULL), LSMKV_OK);
    STATUS(lsmkv_get(db, S("k"), &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_close(seven, NULL), LSMKV_OK);
    db = reopened(db);
    STATUS(lsmkv_select(db, 7, &seven, NULL), LSMKV_OK);
    BYTES(lsmkv_get(seven, S("k"), &bytes, NULL), "7");
    /* In this order too. */
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(lsmkv_close(seven, NULL), LSMKV_OK);
}

STORY(a_transaction_is_seen_all_at_once_or_not_at_all) {
    lsmkv_db *db = check_open(), *txn = NULL, *other = NULL;
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    NUMBER(lsmkv_incr(txn, S("n"), &number, NULL), 1);
    NUMBER(lsmkv_rpush(txn, S("l"), S("x"), &number, NULL), 1);
    NUMBER(lsmkv_exists(db, S("n"), &number, NULL), 0);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_OK);
    BYTES(lsmkv_get(db, S("n"), &bytes, NULL), "1");
    STATUS(lsmkv_get(txn, S("n"), &bytes, &why), LSMKV_CLOSED);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);

    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_begin(db, &other, NULL), LSMKV_OK);
    NUMBER(lsmkv_incr(txn, S("n"), &number, NULL), 2);
    NUMBER(lsmkv_incr(other, S("n"), &number, NULL), 2);
    STATUS(lsmkv_commit_timeout(other, 1000, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(txn, &why), LSMKV_CONFLICT);
    STATUS(lsmkv_commit(txn, &why), LSMKV_CLOSED);
    STATUS(lsmkv_close(other, NULL), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);

    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_del(txn, S("n"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_rollback(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_del(txn, S("n"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(db, &why), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_rollback(db, &why), LSMKV_UNSUPPORTED);
    db = reopened(db);
    BYTES(lsmkv_get(db, S("n"), &bytes, NULL), "2");
    REPLY(lsmkv_lrange(db, S("l"), 0, -1, &reply, NULL), "[x]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_batch_is_all_or_nothing) {
    lsmkv_db *db = check_open(), *batch = NULL;
    STATUS(lsmkv_batch(db, 0, &batch, NULL), LSMKV_OK);
    STATUS(lsmkv_set(batch, S("k"), S("5"), NULL), LSMKV_OK);
    number = 77;
    STATUS(lsmkv_incr(batch, S("k"), &number, NULL), LSMKV_OK);
    CHECK(number == 0);
    STATUS(command(batch, "INCRBY k 10"), LSMKV_OK);
    CHECK(reply == NULL);
    STATUS(lsmkv_get(batch, S("k"), &bytes, &why), LSMKV_UNSUPPORTED);
    STATUS(command(batch, "GET k"), LSMKV_UNSUPPORTED);
    NUMBER(lsmkv_exists(db, S("k"), &number, NULL), 0);
    STATUS(lsmkv_commit(batch, NULL), LSMKV_OK);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "16");
    STATUS(lsmkv_commit(batch, &why), LSMKV_MISUSE);
    STATUS(lsmkv_rollback(batch, NULL), LSMKV_OK);
    STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
    STATUS(lsmkv_batch_clear(db, &why), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_batch_priority(db, 1, &why), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_batch(db, 8, &batch, &why), LSMKV_INVALID);
    db = reopened(db);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "16");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_batch_that_fails_leaves_nothing) {
    lsmkv_db *db = check_open(), *batch = NULL;
    STATUS(lsmkv_set(db, S("k"), S("16"), NULL), LSMKV_OK);
    STATUS(lsmkv_batch(db, 0, &batch, NULL), LSMKV_OK);
    STATUS(lsmkv_set(batch, S("k"), S("gone"), NULL), LSMKV_OK);
    STATUS(lsmkv_hset(batch, S("k"), S("f"), S("v"), NULL, NULL), LSMKV_OK);
    if (check_store != NULL && !check_shared) {
        CHECK(lsmkv_commit(batch, &why) == LSMKV_WRONGTYPE && strstr(why.msg, "2") != NULL);
        BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "gone");
        STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
        STATUS(lsmkv_close(db, NULL), LSMKV_OK);
        return;
    }
    STATUS(lsmkv_commit(batch, &why), LSMKV_WRONGTYPE);
    CHECK(strstr(why.msg, "HSET") != NULL && strstr(why.msg, "2") != NULL);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "16");
    STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
    STATUS(lsmkv_batch(db, LSMKV_STRICT, &batch, NULL), LSMKV_OK);
    STATUS(lsmkv_del(batch, S("no"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(batch, &why), LSMKV_NO_SUCH_KEY);
    STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(commands_of_a_batch_have_priorities) {
    lsmkv_db *db = check_open(), *batch = NULL;
    STATUS(lsmkv_batch(db, 0, &batch, NULL), LSMKV_OK);
    STATUS(lsmkv_set(batch, S("p"), S("low"), NULL), LSMKV_OK);
    STATUS(lsmkv_batch_priority(batch, 9, NULL), LSMKV_OK);
    STATUS(lsmkv_set(batch, S("p"), S("high"), NULL), LSMKV_OK);
    STATUS(lsmkv_commit(batch, NULL), LSMKV_OK);
    BYTES(lsmkv_get(db, S("p"), &bytes, NULL), "low");
    STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* On a cluster too: the keys are of one slot, and nothing here is beyond a server. */
STORY(a_batch_runs_when_it_is_committed) {
    lsmkv_db *db = check_open(), *batch = NULL;
    STATUS(lsmkv_batch(db, 0, &batch, NULL), LSMKV_OK);
    STATUS(lsmkv_set(batch, S("{b}k"), S("5"), NULL), LSMKV_OK);
    STATUS(lsmkv_incr(batch, S("{b}k"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_rpush(batch, S("{b}l"), S("x"), NULL, NULL), LSMKV_OK);
    NUMBER(lsmkv_exists(db, S("{b}k"), &number, NULL), 0);
    STATUS(lsmkv_commit(batch, NULL), LSMKV_OK);
    STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
    BYTES(lsmkv_get(db, S("{b}k"), &bytes, NULL), "6");
    NUMBER(lsmkv_llen(db, S("{b}l"), &number, NULL), 1);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* What a batch notes is the command in words: options and bounds must come through. */
STORY(options_come_through_a_batch) {
    lsmkv_db *db = check_open(), *b = NULL;
    static const double scores[] = {1, 2}, weights[] = {10, 1};
    lsmkv_slice m2 = slice_of("m2"), m3 = slice_of("m3"), by = slice_of("w_*");
    lsmkv_bitfield_op ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].action = LSMKV_FIELD_SET, ops[0].bits = 8, ops[0].value = 250;
    ops[1].action = LSMKV_FIELD_INCRBY, ops[1].bits = 8, ops[1].value = 10;
    ops[1].overflow = LSMKV_FIELD_SAT;
    STATUS(lsmkv_mset_many(db, words("k 1 t 1 w_1 2 w_2 1"), 4, NULL), LSMKV_OK);
    REPLY(command(db, "ZADD z 1 m1 2 m2 3 m3"), "3");
    REPLY(command(db, "ZADD y 1 m1 1 m2 1 m3"), "3");
    REPLY(command(db, "RPUSH l 1 2"), "2");
    STATUS(lsmkv_batch(db, 0, &b, NULL), LSMKV_OK);
    STATUS(lsmkv_set_opt(b, S("k"), S("no"), LSMKV_NX, 0, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_set_opt(b, S("t"), S("2"), LSMKV_XX | LSMKV_AT, INT64_C(4102444800000), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_set_opt(b, S("t"), S("3"), LSMKV_KEEPTTL, 0, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_getex(b, S("k"), 60000, 0, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_expire_opt(b, S("k"), 10, LSMKV_GT, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zadd_opt(b, S("z"), 0, S("m1"), LSMKV_GT, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zadd_many(b, S("z"), words("m1 new"), 2, scores, LSMKV_XX, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zadd_incr(b, S("z"), 0.5, S("m3"), LSMKV_XX, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zunionstore(b, S("u"), words("z y"), 2, weights, LSMKV_MAX, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zrangestore_byscore(b, S("r"), S("z"), 1, 2, LSMKV_MINEX | LSMKV_REV, 0, 1, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zremrangebyscore(b, S("z"), 1, 2, LSMKV_MAXEX, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zremrangebylex(b, S("y"), &m2, &m3, LSMKV_MINEX, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_sort_store(b, S("l"), S("s"), &by, words("w_* #"), 2, 0, -1, LSMKV_REV, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_bitfield(b, S("f"), ops, 2, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_copy_to(b, S("t"), S("copied"), 1, LSMKV_REPLACE, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(b, &why), LSMKV_OK);
    STATUS(lsmkv_close(b, NULL), LSMKV_OK);
    db = reopened(db);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "1");
    LEFT(lsmkv_ttl(db, S("k"), &number, NULL), 60);
    BYTES(lsmkv_get(db, S("t"), &bytes, NULL), "3");
    NUMBER(lsmkv_expiretime(db, S("t"), &number, NULL), 4102444800);
    REPLY(lsmkv_zrange_opt(db, S("z"), 0, -1, LSMKV_WITHSCORES, &reply, NULL), "[m2 ~2 m3 ~3.5]");
    REPLY(lsmkv_zrange_opt(db, S("u"), 0, -1, LSMKV_WITHSCORES, &reply, NULL), "[m1 ~10 m2 ~20 m3 ~35]");
    REPLY(lsmkv_zrange(db, S("r"), 0, -1, &reply, NULL), "[m2]");
    REPLY(lsmkv_zrange(db, S("y"), 0, -1, &reply, NULL), "[m1 m2]");
    REPLY(lsmkv_lrange(db, S("s"), 0, -1, &reply, NULL), "[2 1 1 2]");
    NUMBER(lsmkv_bitcount(db, S("f"), &number, NULL), 8);
    STATUS(lsmkv_select(db, 1, &b, NULL), LSMKV_OK);
    BYTES(lsmkv_get(b, S("copied"), &bytes, NULL), "3");
    STATUS(lsmkv_close(b, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_ticket_is_waited_for) {
    lsmkv_db *db = check_open(), *txn = NULL;
    uint64_t ticket = 0;
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_set(txn, S("k"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_commit_async(txn, &ticket, NULL), LSMKV_OK);
    CHECK(ticket != 0);
    STATUS(lsmkv_wait(db, ticket, 10000, &why), LSMKV_OK);
    STATUS(lsmkv_wait(db, ticket, 0, &why), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "v");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_handle_has_a_sync_mode_of_its_own) {
    lsmkv_db *db = check_open(), *always = NULL;
    STATUS(lsmkv_with_sync(db, "always", &always, NULL), LSMKV_OK);
    STATUS(lsmkv_set(always, S("k"), S("w"), NULL), LSMKV_OK);
    STATUS(lsmkv_close(always, NULL), LSMKV_OK);
    STATUS(lsmkv_with_sync(db, "sometimes", &always, &why), LSMKV_INVALID);
    CHECK(always == NULL && strstr(why.msg, "always") != NULL);
    BYTES(lsmkv_get(db, S("k"), &bytes, NULL), "w");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(keys_come_in_order_as_they_were) {
    lsmkv_db *db = check_open();
    lsmkv_iter *iter = NULL;
    lsmkv_slice key, value, lo = slice_of("b"), hi = slice_of("d");
    int32_t kind;
    int n;
    STATUS(lsmkv_mset_many(db, words("a 1 b 2 d 4"), 3, NULL), LSMKV_OK);
    NUMBER(lsmkv_sadd(db, S("c"), S("m"), &number, NULL), 1);
    STATUS(lsmkv_iter_new(db, &lo, &hi, LSMKV_ITER_VALUES, &iter, NULL), LSMKV_OK);
    STATUS(lsmkv_flushall(db, NULL), LSMKV_OK);
    STATUS(lsmkv_iter_next(iter, &key, &kind, &value, NULL), LSMKV_OK);
    CHECK(key.len == 1 && key.data[0] == 'b' && kind == LSMKV_STRING);
    CHECK(value.len == 1 && value.data[0] == '2');
    STATUS(lsmkv_iter_next(iter, &key, &kind, &value, NULL), LSMKV_OK);
    CHECK(key.data[0] == 'c' && kind == LSMKV_SET && value.data == NULL);
    for (n = 0; n < 3; n++) {
        STATUS(lsmkv_iter_next(iter, &key, &kind, &value, NULL), LSMKV_DONE);
        CHECK(key.data == NULL && key.len == 0 && kind == 0);
    }
    lsmkv_iter_free(iter);
    lsmkv_iter_free(NULL);

    STATUS(lsmkv_mset_many(db, words("a 1 b 2 c 3"), 3, NULL), LSMKV_OK);
    STATUS(lsmkv_iter_new(db, NULL, NULL, LSMKV_ITER_REVERSE | LSMKV_ITER_NO_FILL, &iter, NULL), LSMKV_OK);
    REPLY(lsmkv_iter_next_chunk(iter, 2, (size_t)-1, &reply, NULL), "[c 1 b 1]");
    REPLY(lsmkv_iter_next_chunk(iter, (size_t)-1, 0, &reply, NULL), "[a 1]");
    STATUS(lsmkv_iter_next_chunk(iter, 2, 100, &reply, NULL), LSMKV_DONE);
    CHECK(reply == NULL);
    lsmkv_iter_free(iter);
    STATUS(lsmkv_iter_new(db, NULL, NULL, LSMKV_ITER_VALUES, &iter, NULL), LSMKV_OK);
    REPLY(lsmkv_iter_next_chunk(iter, 9, 1000, &reply, NULL), "[a 1 1 b 1 2 c 1 3]");
    STATUS(lsmkv_iter_next_chunk(iter, 9, 1000, NULL, &why), LSMKV_MISUSE);
    STATUS(lsmkv_iter_next(NULL, &key, NULL, NULL, &why), LSMKV_MISUSE);
    STATUS(lsmkv_iter_next_chunk(NULL, 1, 1, &reply, &why), LSMKV_MISUSE);
    lsmkv_iter_free(iter);
    STATUS(lsmkv_iter_new(db, NULL, NULL, 8, &iter, &why), LSMKV_INVALID);
    CHECK(iter == NULL);
    STATUS(lsmkv_iter_new(db, NULL, NULL, 0, &iter, NULL), LSMKV_OK);
    STATUS(lsmkv_iter_next(iter, NULL, NULL, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(lsmkv_iter_next(iter, &key, &kind, &value, &why), LSMKV_CLOSED);
    STATUS(lsmkv_iter_next_chunk(iter, 9, 1000, &reply, NULL), LSMKV_CLOSED);
    lsmkv_iter_free(iter);
}

STORY(children_are_freed_in_any_order) {
    enum { KINDS = 6 };
    int order;
    for (order = 0; order < KINDS + 1; order++) {
        lsmkv_db *all[KINDS + 1];
        lsmkv_iter *iter = NULL;
        int i;
        all[KINDS] = check_open();
        STATUS(lsmkv_set(all[KINDS], S("k"), S("v"), NULL), LSMKV_OK);
        STATUS(lsmkv_snapshot(all[KINDS], &all[0], NULL), LSMKV_OK);
        STATUS(lsmkv_select(all[KINDS], 1, &all[1], NULL), LSMKV_OK);
        STATUS(lsmkv_session(all[1], &all[2], NULL), LSMKV_OK);
        STATUS(lsmkv_begin(all[1], &all[3], NULL), LSMKV_OK);
        STATUS(lsmkv_select(all[3], 0, &all[4], NULL), LSMKV_OK);
        STATUS(lsmkv_batch(all[3], 0, &all[5], NULL), LSMKV_OK);
        STATUS(lsmkv_iter_new(all[4], NULL, NULL, LSMKV_ITER_VALUES, &iter, NULL), LSMKV_OK);
        STATUS(lsmkv_set(all[5], S("b"), S("v"), NULL), LSMKV_OK);
        for (i = 0; i <= KINDS; i++) {
            STATUS(lsmkv_close(all[(i + order) % (KINDS + 1)], &why), LSMKV_OK);
        }
        for (i = 0; i <= KINDS; i++) STATUS(lsmkv_close(all[i], NULL), LSMKV_MISUSE);
        lsmkv_iter_free(iter);
    }
}

STORY(a_copy_is_a_store_of_its_own) {
    lsmkv_db *db = check_open(), *copy = NULL;
    char dir[4200];
    sprintf(dir, "%s-copy", check_dir);
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_checkpoint(db, dir, &why), LSMKV_OK);
    CHECK(lsmkv_checkpoint(db, dir, &why) < 0 && strstr(why.msg, "copy") != NULL);
    STATUS(lsmkv_checkpoint(db, "", &why), LSMKV_INVALID);
    STATUS(lsmkv_set(db, S("k"), S("later"), NULL), LSMKV_OK);
    STATUS(lsmkv_open(dir, NULL, &copy, NULL), LSMKV_OK);
    BYTES(lsmkv_get(copy, S("k"), &bytes, NULL), "v");
    STATUS(lsmkv_close(copy, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_store_says_what_it_holds_and_that_it_is_sound) {
    lsmkv_db *db = check_open();
    size_t i, n, commits = 0;
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    REPLY(lsmkv_check(db, &reply, NULL), "[]");
    STATUS(lsmkv_stats(db, &reply, NULL), LSMKV_OK);
    CHECK(lsmkv_reply_kind(reply, 0) == LSMKV_REPLY_MAP);
    n = lsmkv_reply_len(reply, 0);
    CHECK(n > 20 && n % 2 == 0);
    for (i = 0; i < n; i += 2) {
        size_t name = lsmkv_reply_at(reply, 0, i);
        if (lsmkv_reply_len(reply, name) != 7) continue;
        if (memcmp(lsmkv_reply_str(reply, name), "commits", 7) != 0) continue;
        commits = (size_t)lsmkv_reply_int(reply, lsmkv_reply_at(reply, 0, i + 1));
    }
    CHECK(commits >= 1);
    lsmkv_reply_free(reply);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_snapshot_stays_as_it_was);
    RUN(snapshots_and_transactions_have_sessions);
    RUN(databases_are_apart);
    RUN(a_transaction_is_seen_all_at_once_or_not_at_all);
    RUN(a_batch_is_all_or_nothing);
    RUN(a_batch_that_fails_leaves_nothing);
    RUN(commands_of_a_batch_have_priorities);
    RUN(a_batch_runs_when_it_is_committed);
    RUN(options_come_through_a_batch);
    RUN(a_ticket_is_waited_for);
    RUN(a_handle_has_a_sync_mode_of_its_own);
    RUN(keys_come_in_order_as_they_were);
    RUN(children_are_freed_in_any_order);
    RUN(a_copy_is_a_store_of_its_own);
    RUN(a_store_says_what_it_holds_and_that_it_is_sound);
    return END();
}

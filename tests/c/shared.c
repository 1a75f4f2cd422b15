/*
 * A store that several processes share. The program leaves SIGPIPE at its default, which ends it.
 */
#include "redis.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static lsmkv_db *shares(const char *limit_ms) {
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db = NULL;
    STATUS(lsmkv_options_set(options, "shared", "on", &why), LSMKV_OK);
    STATUS(lsmkv_options_set(options, "connect_timeout_ms", limit_ms, &why), LSMKV_OK);
    STATUS(lsmkv_open(check_dir, options, &db, &why), LSMKV_OK);
    lsmkv_options_free(options);
    return db;
}

static int has(lsmkv_db *db, const char *key, const char *value) {
    lsmkv_buf found;
    int same;
    if (lsmkv_get(db, key, strlen(key), &found, &why) != LSMKV_OK) return 0;
    same = found.len == strlen(value) && memcmp(found.data, value, found.len) == 0;
    lsmkv_buf_release(&found);
    return same;
}

#ifdef WITHOUT_SHARED

STORY(a_library_without_sharing_says_so) {
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db = NULL;
    STATUS(lsmkv_options_set(options, "shared", "on", &why), LSMKV_OK);
    STATUS(lsmkv_open(check_dir, options, &db, &why), LSMKV_UNSUPPORTED);
    CHECK(db == NULL && strstr(why.msg, "features") != NULL);
    lsmkv_options_free(options);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_library_without_sharing_says_so);
    return END();
}

#else

/* Two handles of one process: the second one finds the lock taken, as another process would. */
STORY(typed_calls_sessions_and_batches_work_for_the_holder_and_for_its_clients) {
    lsmkv_db *handles[2], *session, *batch, *other;
    char copy[4200];
    int64_t n = 0;
    int i;
    handles[0] = shares("5000");
    handles[1] = shares("5000");
    for (i = 0; i < 2; i++) {
        lsmkv_db *db = handles[i];
        STATUS(lsmkv_set(db, S("k"), S("v"), &why), LSMKV_OK);
        CHECK(has(handles[1 - i], "k", "v"));
        STATUS(lsmkv_incrby(db, S("k"), 1, &n, &why), LSMKV_NOT_INTEGER);
        STATUS(lsmkv_lpush(db, S("k"), S("x"), &n, &why), LSMKV_WRONGTYPE);
        STATUS(lsmkv_hset(db, S("h"), S("f"), S("v"), &n, &why), LSMKV_OK);
        STATUS(lsmkv_get(db, S("none"), &bytes, &why), LSMKV_NOT_FOUND);
        STATUS(lsmkv_select(db, 2, &other, &why), LSMKV_OK);
        STATUS(lsmkv_set(other, S("k"), S("two"), &why), LSMKV_OK);
        CHECK(has(other, "k", "two") && has(db, "k", "v"));
        STATUS(lsmkv_close(other, &why), LSMKV_OK);
        STATUS(lsmkv_select(db, 9999, &other, &why), LSMKV_OUT_OF_RANGE);
        STATUS(lsmkv_batch(db, LSMKV_STRICT, &batch, &why), LSMKV_OK);
        STATUS(lsmkv_set(batch, S("b"), S("1"), &why), LSMKV_OK);
        STATUS(lsmkv_del(batch, S("none"), NULL, &why), LSMKV_OK);
        STATUS(lsmkv_commit(batch, &why), LSMKV_NO_SUCH_KEY);
        STATUS(lsmkv_get(db, S("b"), &bytes, &why), LSMKV_NOT_FOUND);
        STATUS(lsmkv_close(batch, &why), LSMKV_OK);
        STATUS(lsmkv_session(db, &session, &why), LSMKV_OK);
        STATUS(lsmkv_set(session, S("s"), S("1"), &why), LSMKV_OK);
        CHECK(has(session, "s", "1"));
        STATUS(lsmkv_close(session, &why), LSMKV_OK);
        STATUS(lsmkv_refresh(db, &why), LSMKV_OK);
        STATUS(lsmkv_sync(db, &why), LSMKV_OK);
        STATUS(lsmkv_flush(db, &why), LSMKV_OK);
        STATUS(lsmkv_compact(db, &why), LSMKV_OK);
        STATUS(lsmkv_resume(db, &why), LSMKV_OK);
        STATUS(lsmkv_stats(db, &reply, &why), LSMKV_OK);
        CHECK(lsmkv_reply_kind(reply, 0) == LSMKV_REPLY_MAP);
        lsmkv_reply_free(reply);
        STATUS(lsmkv_check(db, &reply, &why), LSMKV_OK);
        CHECK(lsmkv_reply_kind(reply, 0) == LSMKV_REPLY_ARRAY && lsmkv_reply_len(reply, 0) == 0);
        lsmkv_reply_free(reply);
        snprintf(copy, sizeof copy, "%s.copy%d", check_dir, i);
        STATUS(lsmkv_checkpoint(db, copy, &why), LSMKV_OK);
        STATUS(lsmkv_checkpoint(db, copy, &why), LSMKV_INVALID);
        STATUS(lsmkv_open(copy, NULL, &other, &why), LSMKV_OK);
        CHECK(has(other, "k", "v"));
        STATUS(lsmkv_close(other, &why), LSMKV_OK);
    }
    STATUS(lsmkv_close(handles[0], &why), LSMKV_OK);
    CHECK(has(handles[1], "k", "v"));
    STATUS(lsmkv_close(handles[1], &why), LSMKV_OK);
}

/* The next key of a walk, or "" at its end. */
static const char *next_key(lsmkv_iter *walk) {
    static char name[64];
    lsmkv_slice key, value;
    int32_t kind = 0;
    name[0] = 0;
    if (lsmkv_iter_next(walk, &key, &kind, &value, &why) != LSMKV_OK) return name;
    snprintf(name, sizeof name, "%.*s=%.*s", (int)key.len, (const char *)key.data, (int)value.len,
             (const char *)value.data);
    return name;
}

STORY(snapshots_transactions_iterators_and_tickets_work_for_the_holder_and_for_its_clients) {
    static const uint8_t packed[] = {
        1, 0, 0, 0, 5, 0, 0, 0, 'M', 'U', 'L', 'T', 'I',
        3, 0, 0, 0, 3, 0, 0, 0, 'S', 'E', 'T', 1, 0, 0, 0, 'p', 1, 0, 0, 0, '1',
        1, 0, 0, 0, 4, 0, 0, 0, 'E', 'X', 'E', 'C',
        2, 0, 0, 0, 6, 0, 0, 0, 'S', 'E', 'L', 'E', 'C', 'T', 1, 0, 0, 0, '1',
        1, 0, 0, 0, 5, 0, 0, 0, 'M', 'U', 'L', 'T', 'I',
    };
    lsmkv_db *handles[2];
    int i;
    handles[0] = shares("5000");
    handles[1] = shares("5000");
    for (i = 0; i < 2; i++) {
        lsmkv_db *db = handles[i], *other = handles[1 - i], *txn, *late, *then, *same, *one, *batch;
        lsmkv_iter *walk, *kept;
        lsmkv_slice lo = {(const uint8_t *)"b", 1};
        uint64_t ticket = 0, second = 0;
        int64_t n = 0;
        STATUS(lsmkv_flushall(db, &why), LSMKV_OK);
        STATUS(lsmkv_set(db, S("a"), S("1"), &why), LSMKV_OK);
        STATUS(lsmkv_set(db, S("b"), S("2"), &why), LSMKV_OK);
        STATUS(lsmkv_snapshot(db, &then, &why), LSMKV_OK);
        STATUS(lsmkv_begin(db, &txn, &why), LSMKV_OK);
        STATUS(lsmkv_begin(db, &late, &why), LSMKV_OK);

        STATUS(lsmkv_incrby(txn, S("a"), 5, &n, &why), LSMKV_OK);
        CHECK(n == 6 && has(txn, "a", "6") && has(db, "a", "1") && has(other, "a", "1"));
        STATUS(lsmkv_lpush(txn, S("a"), S("x"), &n, &why), LSMKV_WRONGTYPE);
        STATUS(lsmkv_command_packed(txn, packed, sizeof packed, &reply, &why), LSMKV_OK);
        CHECK(lsmkv_reply_len(reply, 0) == 5);
        lsmkv_reply_free(reply);
        CHECK(has(txn, "p", "1") && !has(db, "p", "1"));
        STATUS(lsmkv_select(txn, 1, &one, &why), LSMKV_OK);
        STATUS(lsmkv_set(one, S("a"), S("one"), &why), LSMKV_OK);
        CHECK(has(one, "a", "one") && has(txn, "a", "6"));
        STATUS(lsmkv_close(one, &why), LSMKV_OK);
        STATUS(lsmkv_batch(txn, 0, &batch, &why), LSMKV_OK);
        STATUS(lsmkv_set(batch, S("c"), S("3"), &why), LSMKV_OK);
        STATUS(lsmkv_commit(batch, &why), LSMKV_OK);
        STATUS(lsmkv_close(batch, &why), LSMKV_OK);
        STATUS(lsmkv_begin(txn, &one, &why), LSMKV_UNSUPPORTED);
        STATUS(lsmkv_snapshot(txn, &one, &why), LSMKV_UNSUPPORTED);
        STATUS(lsmkv_begin(then, &one, &why), LSMKV_UNSUPPORTED);
        STATUS(lsmkv_commit(then, &why), LSMKV_UNSUPPORTED);
        STATUS(lsmkv_batch_clear(txn, &why), LSMKV_UNSUPPORTED);

        STATUS(lsmkv_iter_new(txn, &lo, NULL, LSMKV_ITER_VALUES, &walk, &why), LSMKV_OK);
        STATUS(lsmkv_iter_new(db, NULL, &lo, LSMKV_ITER_VALUES, &kept, &why), LSMKV_OK);
        STATUS(lsmkv_set(late, S("a"), S("late"), &why), LSMKV_OK);
        STATUS(lsmkv_commit_async(txn, &ticket, &why), LSMKV_OK);
        STATUS(lsmkv_wait(db, ticket, 10000, &why), LSMKV_OK);
        STATUS(lsmkv_wait(then, ticket, 0, &why), LSMKV_OK);
        STATUS(lsmkv_get(txn, S("a"), &bytes, &why), LSMKV_CLOSED);
        STATUS(lsmkv_close(txn, &why), LSMKV_OK);
        CHECK(has(other, "a", "6") && has(db, "c", "3"));
        STATUS(lsmkv_commit(late, &why), LSMKV_CONFLICT);
        STATUS(lsmkv_rollback(late, &why), LSMKV_CLOSED);
        STATUS(lsmkv_close(late, &why), LSMKV_OK);
        CHECK(strcmp(next_key(walk), "b=2") == 0 && strcmp(next_key(walk), "c=3") == 0);
        CHECK(strcmp(next_key(walk), "p=1") == 0 && strcmp(next_key(walk), "") == 0);
        STATUS(lsmkv_iter_next(walk, NULL, NULL, NULL, &why), LSMKV_DONE);
        lsmkv_iter_free(walk);
        CHECK(strcmp(next_key(kept), "a=1") == 0 && strcmp(next_key(kept), "") == 0);
        lsmkv_iter_free(kept);

        STATUS(lsmkv_snapshot(then, &same, &why), LSMKV_OK);
        STATUS(lsmkv_close(then, &why), LSMKV_OK);
        CHECK(has(same, "a", "1") && !has(same, "c", "3"));
        STATUS(lsmkv_set(same, S("a"), S("x"), &why), LSMKV_READONLY);
        STATUS(lsmkv_iter_new(same, NULL, NULL, LSMKV_ITER_REVERSE, &walk, &why), LSMKV_OK);
        STATUS(lsmkv_close(same, &why), LSMKV_OK);
        CHECK(strcmp(next_key(walk), "b=") == 0);
        STATUS(lsmkv_iter_next_chunk(walk, 10, 1000, &reply, &why), LSMKV_OK);
        CHECK(lsmkv_reply_len(reply, 0) == 2);
        lsmkv_reply_free(reply);
        STATUS(lsmkv_iter_next_chunk(walk, 10, 1000, &reply, &why), LSMKV_DONE);
        lsmkv_iter_free(walk);

        STATUS(lsmkv_batch(db, 0, &batch, &why), LSMKV_OK);
        STATUS(lsmkv_set(batch, S("d"), S("4"), &why), LSMKV_OK);
        STATUS(lsmkv_commit_async(batch, &second, &why), LSMKV_OK);
        CHECK(second > ticket);
        STATUS(lsmkv_wait(db, second, 10000, &why), LSMKV_OK);
        STATUS(lsmkv_batch_clear(batch, &why), LSMKV_OK);
        STATUS(lsmkv_set(batch, S("d"), S("5"), &why), LSMKV_OK);
        STATUS(lsmkv_commit_timeout(batch, 1000, &why), LSMKV_OK);
        STATUS(lsmkv_close(batch, &why), LSMKV_OK);
        CHECK(has(other, "d", "5"));
        STATUS(lsmkv_begin(db, &txn, &why), LSMKV_OK);
        STATUS(lsmkv_set(txn, S("d"), S("6"), &why), LSMKV_OK);
        STATUS(lsmkv_commit_timeout(txn, 1000, &why), LSMKV_OK);
        STATUS(lsmkv_close(txn, &why), LSMKV_OK);
        CHECK(has(other, "d", "6"));
    }
    {
        lsmkv_db *txn, *then;
        lsmkv_iter *walk;
        STATUS(lsmkv_begin(handles[1], &txn, &why), LSMKV_OK);
        STATUS(lsmkv_snapshot(handles[1], &then, &why), LSMKV_OK);
        STATUS(lsmkv_iter_new(then, NULL, NULL, 0, &walk, &why), LSMKV_OK);
        STATUS(lsmkv_set(txn, S("a"), S("lost"), &why), LSMKV_OK);
        STATUS(lsmkv_close(handles[0], &why), LSMKV_OK);
        STATUS(lsmkv_commit(txn, &why), LSMKV_IO);
        CHECK(strstr(why.msg, "nothing of it was committed") != NULL);
        STATUS(lsmkv_get(then, S("a"), &bytes, &why), LSMKV_IO);
        STATUS(lsmkv_iter_next(walk, NULL, NULL, NULL, &why), LSMKV_IO);
        CHECK(has(handles[1], "a", "6"));
        STATUS(lsmkv_close(handles[1], &why), LSMKV_OK);
        STATUS(lsmkv_iter_next(walk, NULL, NULL, NULL, &why), LSMKV_CLOSED);
        lsmkv_iter_free(walk);
        STATUS(lsmkv_close(txn, &why), LSMKV_OK);
        STATUS(lsmkv_close(then, &why), LSMKV_OK);
    }
}

STORY(a_holder_that_is_killed_raises_no_signal_in_its_clients) {
    lsmkv_db *db;
    int told[2], status = 0, i, lost = 0;
    char byte = 0;
    pid_t child;
    signal(SIGPIPE, SIG_DFL);
    CHECK(pipe(told) == 0);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        db = shares("5000");
        if (write(told[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    CHECK(read(told[0], &byte, 1) == 1);
    db = shares("5000");
    STATUS(lsmkv_set(db, S("k"), S("v"), &why), LSMKV_OK);
    kill(child, SIGKILL);
    CHECK(waitpid(child, &status, 0) == child);
    for (i = 0; i < 100; i++) {
        lsmkv_status st = lsmkv_set(db, S("k"), S("w"), &why);
        if (st == LSMKV_IO) lost++;
        else STATUS(st, LSMKV_OK);
    }
    CHECK(lost <= 1);
    CHECK(has(db, "k", "w"));
    STATUS(lsmkv_close(db, &why), LSMKV_OK);
    close(told[0]);
    close(told[1]);
}

STORY(a_child_forked_with_the_store_open_is_a_client_with_handles_of_its_own) {
    lsmkv_db *db = shares("5000");
    int status = 0;
    pid_t child;
    STATUS(lsmkv_set(db, S("from"), S("parent"), &why), LSMKV_OK);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        lsmkv_db *own;
        int ok = lsmkv_set(db, S("k"), S("v"), &why) == LSMKV_FORKED;
        ok = ok && lsmkv_close(db, &why) == LSMKV_FORKED;
        own = shares("5000");
        ok = ok && own != NULL && has(own, "from", "parent");
        ok = ok && lsmkv_set(own, S("from"), S("child"), &why) == LSMKV_OK;
        ok = ok && lsmkv_close(own, &why) == LSMKV_OK;
        _exit(ok ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(has(db, "from", "child"));
    STATUS(lsmkv_close(db, &why), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(typed_calls_sessions_and_batches_work_for_the_holder_and_for_its_clients);
    RUN(snapshots_transactions_iterators_and_tickets_work_for_the_holder_and_for_its_clients);
    RUN(a_holder_that_is_killed_raises_no_signal_in_its_clients);
    RUN(a_child_forked_with_the_store_open_is_a_client_with_handles_of_its_own);
    return END();
}

#endif

/*
 * Every function of the header that takes a handle, with every argument wrong in turn. The table of
 * functions is generated from the header (tests/hostile.rs): a new function is tested without
 * anybody having to think of it.
 */
#include "redis.h"

enum { NOWHERE = -1 };

/* What the odd argument is, by its index: NULL, an absurd length, or the length of (NULL, 0). */
struct wrong {
    int null, huge, zero;
};

static const struct wrong RIGHT = {NOWHERE, NOWHERE, NOWHERE};

/* A place for any output, and whether it is empty. */
union place {
    int64_t whole;
    int32_t small;
    uint64_t natural;
    size_t size;
    double number;
    void *pointer;
    lsmkv_buf buf;
};

static void spoil(union place *place) { memset(place, 0x77, sizeof *place); }

static int outputs_left;

static void expect_empty(const union place *place, size_t size, lsmkv_status st) {
    static const union place EMPTY;
    if (st != LSMKV_OK && st != LSMKV_SKIPPED && st != LSMKV_TOO_SMALL) {
        outputs_left += memcmp(place, &EMPTY, size) != 0;
    }
}

static const void *input(const struct wrong *wrong, int index, const void *data) {
    return wrong->null == index || wrong->zero == index + 1 ? NULL : data;
}

static size_t length(const struct wrong *wrong, int index, size_t n) {
    return wrong->huge == index ? (size_t)-1 : wrong->zero == index ? 0 : n;
}

static const lsmkv_slice SLICES[2] = {{(const uint8_t *)"k", 1}, {(const uint8_t *)"m", 1}};
static const double NUMBERS[2] = {1, 2};
static const lsmkv_bitfield_op OPS[1] = {{LSMKV_FIELD_SET, 0, 0, 8, 0, 1}};
static const uint8_t *const ARGV[2] = {(const uint8_t *)"GET", (const uint8_t *)"k"};
static const size_t LENS[2] = {3, 1};
static const char PACKED[] = "\1\0\0\0\4\0\0\0PING";

struct function {
    const char *name;
    /* One letter a parameter: h handle, b bytes, l their length, s array, n its length,
       o input that may be NULL, v value, O output, e err. */
    const char *parameters;
    lsmkv_status (*call)(lsmkv_db *db, const struct wrong *wrong, lsmkv_err *err);
};

#include "table.inc"

enum { FUNCTIONS = sizeof TABLE / sizeof *TABLE };

static lsmkv_db *new_store(void) {
    lsmkv_db *db = NULL;
    STATUS(lsmkv_open(":memory:", NULL, &db, NULL), LSMKV_OK);
    return db;
}

static void expect(const struct function *function, const char *what, lsmkv_status found,
                   lsmkv_status wanted) {
    if (found != wanted) {
        printf("    %s: %s gave %d, not %d\n", function->name, what, (int)found, (int)wanted);
        check_story_failed = 1;
    }
    if (outputs_left) {
        printf("    %s: %s left an output\n", function->name, what);
        check_story_failed = 1;
        outputs_left = 0;
    }
}

STORY(every_pointer_is_null_in_turn) {
    lsmkv_db *db = new_store();
    int f, i, with_err;
    for (f = 0; f < FUNCTIONS; f++) {
        for (i = 0; TABLE[f].parameters[i]; i++) {
            char kind = TABLE[f].parameters[i];
            for (with_err = 0; with_err < 2; with_err++) {
                struct wrong wrong = RIGHT;
                lsmkv_status st;
                wrong.null = i;
                memset(&why, 0x77, sizeof why);
                st = TABLE[f].call(kind == 'h' ? NULL : db, &wrong, with_err ? &why : NULL);
                if (strchr("hbs", kind)) expect(&TABLE[f], "a NULL input", st, LSMKV_MISUSE);
                else expect(&TABLE[f], "an optional NULL", st, st);
                if (with_err && (why.code != st || (st < 0) != (why.msg[0] != 0))) {
                    printf("    %s: err says %d %.248s\n", TABLE[f].name, why.code, why.msg);
                    check_story_failed = 1;
                }
            }
        }
    }
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(absurd_lengths_are_refused_before_a_byte_is_read) {
    lsmkv_db *db = new_store();
    int f, i;
    for (f = 0; f < FUNCTIONS; f++) {
        for (i = 0; TABLE[f].parameters[i]; i++) {
            struct wrong wrong = RIGHT;
            wrong.huge = i;
            if (strchr("ln", TABLE[f].parameters[i]) == NULL) continue;
            expect(&TABLE[f], "an absurd length", TABLE[f].call(db, &wrong, &why), LSMKV_TOO_LARGE);
        }
    }
    NUMBER(lsmkv_dbsize(db, &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(an_empty_key_or_value_may_be_null) {
    lsmkv_db *db = new_store();
    int f, i;
    for (f = 0; f < FUNCTIONS; f++) {
        for (i = 0; TABLE[f].parameters[i]; i++) {
            struct wrong odd = RIGHT;
            lsmkv_status st;
            odd.zero = i;
            if (TABLE[f].parameters[i] != 'l') continue;
            st = TABLE[f].call(db, &odd, &why);
            expect(&TABLE[f], "an empty input", st == LSMKV_MISUSE || st == LSMKV_TOO_LARGE, 0);
        }
    }
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* What a function gives on a handle of this kind, whatever its arguments. */
static void all_give(lsmkv_db *db, const char *what, lsmkv_status wanted, const char *except) {
    int f;
    for (f = 0; f < FUNCTIONS; f++) {
        if (strstr(except, TABLE[f].name)) continue;
        expect(&TABLE[f], what, TABLE[f].call(db, &RIGHT, &why), wanted);
        expect(&TABLE[f], what, TABLE[f].call(db, &RIGHT, NULL), wanted);
    }
}

STORY(a_closed_handle_is_recognised_by_every_function) {
    lsmkv_db *db = new_store();
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    all_give(db, "a closed handle", LSMKV_MISUSE, "");
}

/* Only about what the handle is, not the store behind it. */
#define KINDS "lsmkv_commit lsmkv_commit_timeout lsmkv_commit_async lsmkv_rollback lsmkv_batch_clear " \
              "lsmkv_batch_priority"

STORY(a_handle_whose_store_was_closed_is_closed) {
    lsmkv_db *db = new_store(), *child = NULL, *session = NULL, *snapshot = NULL;
    STATUS(lsmkv_select(db, 1, &child, NULL), LSMKV_OK);
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    STATUS(lsmkv_snapshot(db, &snapshot, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    all_give(child, "a child of a closed store", LSMKV_CLOSED, KINDS);
    all_give(session, "a session of a closed store", LSMKV_CLOSED, KINDS " lsmkv_command_packed");
    STATUS(lsmkv_get(snapshot, S("k"), &bytes, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_close(snapshot, NULL), LSMKV_OK);
    STATUS(lsmkv_close(child, NULL), LSMKV_OK);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(child, NULL), LSMKV_MISUSE);
}

STORY(a_transaction_that_is_over_is_closed) {
    lsmkv_db *db = new_store(), *txn = NULL;
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_rollback(txn, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_get(txn, S("k"), &bytes, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_hset(txn, S("k"), S("f"), S("v"), NULL, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* Everything a small store holds, as text. */
static void dump(lsmkv_db *db, char *text, size_t size) {
    static const char *const READS[] = {"", "GET", "HGETALL", "LRANGE", "SMEMBERS", "ZRANGE"};
    char line[64];
    size_t i, n;
    lsmkv_reply *keys = NULL;
    text[0] = 0;
    STATUS(lsmkv_keys(db, S("*"), &keys, NULL), LSMKV_OK);
    n = lsmkv_reply_len(keys, 0);
    for (i = 0; i < n; i++) {
        size_t at = lsmkv_reply_at(keys, 0, i);
        int32_t kind = 0;
        int len = (int)lsmkv_reply_len(keys, at);
        const char *key = (const char *)lsmkv_reply_str(keys, at);
        STATUS(lsmkv_type(db, key, len, &kind, NULL), LSMKV_OK);
        sprintf(line, "%s %.*s%s", READS[kind], len, key,
                kind == LSMKV_LIST ? " 0 -1" : kind == LSMKV_ZSET ? " 0 -1 WITHSCORES" : "");
        STATUS(command(db, line), LSMKV_OK);
        if (strlen(text) + 200 < size) {
            STATUS(lsmkv_ttl(db, key, len, &number, NULL), LSMKV_OK);
            /* Seconds pass between two dumps. */
            sprintf(text + strlen(text), "%.*s=%.100s expires %s\n", len, key, text_of(reply),
                    number < 0 ? "never" : number < 1000 ? "soon" : "later");
        }
        lsmkv_reply_free(reply);
    }
    lsmkv_reply_free(keys);
}

static void prepare(lsmkv_db *db, int kind) {
    static const char *const MAKE[] = {"DEL k", "SET k 5", "HSET k m 1", "RPUSH k m", "SADD k m",
                                       "ZADD k 1 m"};
    STATUS(lsmkv_flushall(db, NULL), LSMKV_OK);
    STATUS(command(db, MAKE[kind]), LSMKV_OK);
    lsmkv_reply_free(reply);
}

/*
 * A batch notes what a function would do and does it at the commit: for every function and every
 * type of key it must leave the same store, or fail with the same status.
 */
STORY(a_batch_does_later_what_a_function_does_at_once) {
    lsmkv_db *direct = new_store(), *batched = new_store(), *batch = NULL;
    static char one[4096], other[4096];
    int f, kind, writes = 0;
    for (f = 0; f < FUNCTIONS; f++) {
        if (strstr(KINDS " lsmkv_command_packed lsmkv_wait", TABLE[f].name)) continue;
        for (kind = 0; kind < 6; kind++) {
            lsmkv_status st, noted;
            prepare(direct, kind);
            prepare(batched, kind);
            st = TABLE[f].call(direct, &RIGHT, &why);
            STATUS(lsmkv_batch(batched, 0, &batch, NULL), LSMKV_OK);
            noted = TABLE[f].call(batch, &RIGHT, &why);
            if (noted == LSMKV_OK) {
                lsmkv_status committed = lsmkv_commit(batch, &why);
                expect(&TABLE[f], "a batch", committed < 0 ? committed : 0, st < 0 ? st : 0);
                dump(direct, one, sizeof one);
                dump(batched, other, sizeof other);
                if (strcmp(one, other) != 0) {
                    printf("    %s: at once\n%snoted\n%s", TABLE[f].name, one, other);
                    check_story_failed = 1;
                }
                writes++;
            } else {
                expect(&TABLE[f], "a read on a batch", noted, LSMKV_UNSUPPORTED);
            }
            STATUS(lsmkv_close(batch, NULL), LSMKV_OK);
        }
    }
    CHECK(writes > 400);
    STATUS(lsmkv_close(direct, NULL), LSMKV_OK);
    STATUS(lsmkv_close(batched, NULL), LSMKV_OK);
}

STORY(a_snapshot_takes_every_read_and_no_write) {
    lsmkv_db *db = new_store(), *snapshot = NULL;
    int f, refused = 0;
    prepare(db, 1);
    STATUS(lsmkv_snapshot(db, &snapshot, NULL), LSMKV_OK);
    for (f = 0; f < FUNCTIONS; f++) {
        refused += TABLE[f].call(snapshot, &RIGHT, &why) == LSMKV_READONLY;
    }
    CHECK(refused > 70);
    BYTES(lsmkv_get(snapshot, S("k"), &bytes, NULL), "5");
    STATUS(lsmkv_close(snapshot, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    printf("%d functions\n", FUNCTIONS);
    RUN(every_pointer_is_null_in_turn);
    RUN(absurd_lengths_are_refused_before_a_byte_is_read);
    RUN(an_empty_key_or_value_may_be_null);
    RUN(a_closed_handle_is_recognised_by_every_function);
    RUN(a_handle_whose_store_was_closed_is_closed);
    RUN(a_transaction_that_is_over_is_closed);
    RUN(a_batch_does_later_what_a_function_does_at_once);
    RUN(a_snapshot_takes_every_read_and_no_write);
    return END();
}

/* A tour of the C ABI. Build: cc quickstart.c -llsmkv; run: ./a.out [DIRECTORY] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lsmkv.h>

/* A text as pointer and length, the form of keys and values. */
#define S(text) (text), strlen(text)

static lsmkv_err err;

static void check(lsmkv_status status) {
    if (status < 0) {
        fprintf(stderr, "lsmkv: %s (status %d)\n", err.msg, (int)status);
        exit(1);
    }
}

static lsmkv_slice slice(const char *text) {
    lsmkv_slice slice;
    slice.data = (const uint8_t *)text;
    slice.len = strlen(text);
    return slice;
}

static void print_text(const lsmkv_reply *reply, size_t node) {
    printf(" %.*s", (int)lsmkv_reply_len(reply, node), (const char *)lsmkv_reply_str(reply, node));
}

/* Prints a field or key and releases the buffer. */
static void print_value(const char *what, lsmkv_buf *value) {
    printf("%s%.*s", what, (int)value->len, (const char *)value->data);
    lsmkv_buf_release(value);
}

static void strings_and_hashes(lsmkv_db *db) {
    lsmkv_buf value;
    lsmkv_slice pairs[4];
    int64_t seconds;

    check(lsmkv_setex(db, S("greeting"), 3600, S("hello"), &err));
    check(lsmkv_get(db, S("greeting"), &value, &err));
    check(lsmkv_ttl(db, S("greeting"), &seconds, &err));
    print_value("  a string:      ", &value);
    printf(", expires in %d s\n", (int)seconds);

    pairs[0] = slice("name"), pairs[1] = slice("alice");
    pairs[2] = slice("visits"), pairs[3] = slice("1");
    check(lsmkv_hset_many(db, S("user:1"), pairs, 2, NULL, &err));
    check(lsmkv_hincrby(db, S("user:1"), S("visits"), 1, NULL, &err));
    check(lsmkv_hget(db, S("user:1"), S("name"), &value, &err));
    print_value("  a hash:        name ", &value);
    check(lsmkv_hget(db, S("user:1"), S("visits"), &value, &err));
    print_value(", visits ", &value);
    printf("\n");
}

static void lists_and_leaderboards(lsmkv_db *db) {
    lsmkv_slice items[3];
    lsmkv_buf first;
    lsmkv_reply *reply;
    size_t i;

    items[0] = slice("first"), items[1] = slice("second"), items[2] = slice("third");
    check(lsmkv_del(db, S("queue"), NULL, &err));
    check(lsmkv_rpush_many(db, S("queue"), items, 3, NULL, &err));
    check(lsmkv_lpop(db, S("queue"), &first, &err));
    print_value("  a list:        took ", &first);
    check(lsmkv_lrange(db, S("queue"), 0, -1, &reply, &err));
    printf(", left");
    for (i = 0; i < lsmkv_reply_len(reply, 0); i++) print_text(reply, lsmkv_reply_at(reply, 0, i));
    lsmkv_reply_free(reply);

    check(lsmkv_zadd(db, S("board"), 12, S("alice"), NULL, &err));
    check(lsmkv_zadd(db, S("board"), 17.5, S("bob"), NULL, &err));
    check(lsmkv_zrange_opt(db, S("board"), 0, -1, LSMKV_REV | LSMKV_WITHSCORES, &reply, &err));
    printf("\n  a leaderboard:");
    for (i = 0; i < lsmkv_reply_len(reply, 0); i += 2) {
        print_text(reply, lsmkv_reply_at(reply, 0, i));
        printf(" %g", lsmkv_reply_double(reply, lsmkv_reply_at(reply, 0, i + 1)));
    }
    lsmkv_reply_free(reply);
    printf("\n");
}

/* Runs again if another writer committed first. */
static void transfer(lsmkv_db *db) {
    lsmkv_db *txn;
    lsmkv_status status;
    do {
        check(lsmkv_begin(db, &txn, &err));
        check(lsmkv_decrby(txn, S("savings"), 5, NULL, &err));
        check(lsmkv_incrby(txn, S("checking"), 5, NULL, &err));
        status = lsmkv_commit(txn, &err);
        lsmkv_close(txn, NULL);
    } while (status == LSMKV_CONFLICT);
    check(status);
}

static void transactions_and_snapshots(lsmkv_db *db) {
    lsmkv_db *before;
    lsmkv_buf value;

    check(lsmkv_set(db, S("savings"), S("100"), &err));
    check(lsmkv_set(db, S("checking"), S("0"), &err));
    check(lsmkv_snapshot(db, &before, &err));
    transfer(db);
    check(lsmkv_get(db, S("savings"), &value, &err));
    print_value("  a transaction: savings ", &value);
    check(lsmkv_get(db, S("checking"), &value, &err));
    print_value(", checking ", &value);
    check(lsmkv_get(before, S("savings"), &value, &err));
    print_value("\n  a snapshot:    savings were ", &value);
    printf("\n");
    lsmkv_close(before, NULL);
}

static void keys_in_order(lsmkv_db *db) {
    lsmkv_iter *iter;
    lsmkv_slice key;
    lsmkv_status status;

    printf("  opened again: ");
    check(lsmkv_iter_new(db, NULL, NULL, 0, &iter, &err));
    while ((status = lsmkv_iter_next(iter, &key, NULL, NULL, &err)) == LSMKV_OK) {
        printf(" %.*s", (int)key.len, (const char *)key.data);
    }
    check(status);
    lsmkv_iter_free(iter);
    printf("\n");
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "store";
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db;

    printf("lsmkv %s from C, store in %s\n", lsmkv_version(), path);
    check(lsmkv_options_set(options, "sync", "always", &err));
    check(lsmkv_open(path, options, &db, &err));
    lsmkv_options_free(options);
    strings_and_hashes(db);
    lists_and_leaderboards(db);
    transactions_and_snapshots(db);
    check(lsmkv_close(db, &err));

    check(lsmkv_open(path, NULL, &db, &err));
    keys_in_order(db);
    check(lsmkv_close(db, &err));
    return 0;
}

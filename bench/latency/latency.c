/* Waits of single GETs and SETs under a mixed load, on lsmkv and on RocksDB in the same run, both
 * through their C functions: half reads, half overwrites of random keys, with flushes and compactions
 * going on. Usage: latency DIRECTORY [SECONDS] */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lsmkv.h>
#include <rocksdb/c.h>

enum { KEYS = 1000000, VALUE = 400, MOST = 40000000 };
static const size_t BUDGET = 64u << 20, WRITE_BUFFER = 8u << 20;

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "latency: %s: %s\n", what, why);
    exit(1);
}

/* A store: its functions abort the program if they fail. */
struct store {
    const char *name;
    void *handle;
    void (*set)(void *handle, const char *key, size_t length, const char *value);
    /* The length of the value; 0 if there is none. */
    size_t (*get)(void *handle, const char *key, size_t length);
    void (*close)(void *handle);
};

static lsmkv_err err;

static void lsmkv_put(void *db, const char *key, size_t length, const char *value) {
    if (lsmkv_set(db, key, length, value, VALUE, &err) < 0) fail("lsmkv_set", err.msg);
}

static size_t lsmkv_take(void *db, const char *key, size_t length) {
    lsmkv_buf value;
    size_t found;
    if (lsmkv_get(db, key, length, &value, &err) < 0) fail("lsmkv_get", err.msg);
    found = value.data ? value.len : 0;
    lsmkv_buf_release(&value);
    return found;
}

static void lsmkv_end(void *db) {
    if (lsmkv_close(db, &err) < 0) fail("lsmkv_close", err.msg);
}

static struct store open_lsmkv(const char *path) {
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db = NULL;
    struct store store = {"lsmkv", NULL, lsmkv_put, lsmkv_take, lsmkv_end};
    if (lsmkv_options_set(options, "memory_budget", "64MiB", &err) < 0) fail("options", err.msg);
    if (lsmkv_open(path, options, &db, &err) < 0) fail("lsmkv_open", err.msg);
    lsmkv_options_free(options);
    store.handle = db;
    return store;
}

static rocksdb_writeoptions_t *writes;
static rocksdb_readoptions_t *reads;

static void rocksdb_set(void *db, const char *key, size_t length, const char *value) {
    char *error = NULL;
    rocksdb_put(db, writes, key, length, value, VALUE, &error);
    if (error) fail("rocksdb_put", error);
}

static size_t rocksdb_take(void *db, const char *key, size_t length) {
    char *error = NULL;
    size_t found = 0;
    char *value = rocksdb_get(db, reads, key, length, &found, &error);
    if (error) fail("rocksdb_get", error);
    rocksdb_free(value);
    return found;
}

static void rocksdb_end(void *db) { rocksdb_close(db); }

static struct store open_rocksdb(const char *path) {
    struct store store = {"RocksDB", NULL, rocksdb_set, rocksdb_take, rocksdb_end};
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_block_based_table_options_t *tables = rocksdb_block_based_options_create();
    char *error = NULL;
    writes = rocksdb_writeoptions_create(), reads = rocksdb_readoptions_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_write_buffer_size(options, WRITE_BUFFER);
    rocksdb_options_set_max_write_buffer_number(options, 3);
    rocksdb_options_set_max_background_jobs(options, 2);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_block_based_options_set_block_cache(
        tables, rocksdb_cache_create_lru(BUDGET - 3 * WRITE_BUFFER));
    rocksdb_block_based_options_set_filter_policy(tables, rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_options_set_block_based_table_factory(options, tables);
    store.handle = rocksdb_open(options, path, &error);
    if (error) fail("rocksdb_open", error);
    return store;
}

/* Waits in nanoseconds. */
struct waits {
    uint32_t *ns;
    size_t count;
};

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(const char *store, const char *command, struct waits *waits) {
    static const double shares[] = {0.5, 0.99, 0.999, 1.0};
    size_t i;
    qsort(waits->ns, waits->count, sizeof *waits->ns, ascending);
    printf("| %s | %s | %zu |", store, command, waits->count);
    for (i = 0; i < sizeof shares / sizeof *shares; i++)
        printf(" %.1f |", waits->ns[(size_t)((double)(waits->count - 1) * shares[i])] / 1000.0);
    printf("\n");
    fflush(stdout);
}

static void note(struct waits *waits, uint64_t begun) {
    uint64_t took = now_ns() - begun;
    if (waits->count < MOST) waits->ns[waits->count++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
}

static void run(struct store store, unsigned seconds) {
    struct waits gets = {NULL, 0}, sets = {NULL, 0};
    char key[32], value[VALUE];
    uint64_t end, i, begun;
    int length;
    for (i = 0; i < VALUE; i++) value[i] = (char)next_random();
    for (i = 0; i < KEYS; i++) {
        length = snprintf(key, sizeof key, "key:%012llu", (unsigned long long)i);
        store.set(store.handle, key, (size_t)length, value);
    }
    gets.ns = malloc(MOST * sizeof *gets.ns), sets.ns = malloc(MOST * sizeof *sets.ns);
    if (!gets.ns || !sets.ns) fail("malloc", "no memory");
    end = now_ns() + (uint64_t)seconds * 1000000000u;
    while (now_ns() < end) {
        length = snprintf(key, sizeof key, "key:%012llu", (unsigned long long)(next_random() % KEYS));
        begun = now_ns();
        if (store.get(store.handle, key, (size_t)length) != VALUE) fail(store.name, "a wrong value");
        note(&gets, begun);
        length = snprintf(key, sizeof key, "key:%012llu", (unsigned long long)(next_random() % KEYS));
        value[next_random() % VALUE]++;
        begun = now_ns();
        store.set(store.handle, key, (size_t)length, value);
        note(&sets, begun);
    }
    report(store.name, "GET", &gets), report(store.name, "SET", &sets);
    free(gets.ns), free(sets.ns);
    store.close(store.handle);
}

int main(int argc, char **argv) {
    char path[4096];
    unsigned seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 60;
    if (argc < 2) fail("usage", "latency DIRECTORY [SECONDS]");
    printf("| store | command | calls | p50 us | p99 us | p99.9 us | longest us |\n");
    printf("|---|---|---|---|---|---|---|\n");
    snprintf(path, sizeof path, "%s/lsmkv", argv[1]);
    run(open_lsmkv(path), seconds);
    snprintf(path, sizeof path, "%s/rocksdb", argv[1]);
    run(open_rocksdb(path), seconds);
    return 0;
}

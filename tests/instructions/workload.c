/*
 * The calls whose instructions tests/instructions/run.sh counts.
 *
 *     workload list                      prints the cases and their repetitions, one per line
 *     workload prepare CASE DIRECTORY    writes the data of CASE that is read from tables
 *     workload measure CASE DIRECTORY    writes the other data and repeats the call of CASE
 *
 * Everything that the count includes happens inside `measure`, which callgrind watches by name.
 * Keys and members are made before it, so that it holds calls of the library and nothing else.
 * Each call frees its reply, as a program does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lsmkv.h"

enum { KEYS = 4000, SMALL = 100, LARGE = 5000, STEP = 100, NAME = 16, VALUE = 64 };

/* Commands in one call, and the bytes of the longest of them. */
enum { PIPELINE = 16, COMMAND = 128 };

/* Lengths of fields, members and elements. A collection of 100 narrow ones is packed in its record,
 * one of 100 wide ones is not. */
enum { NARROW = 4, WIDE = 24 };

static lsmkv_db *db;
static lsmkv_err err;
static char keys[KEYS][NAME + 1];
static char narrow[SMALL][NARROW + 1];
static char wide[LARGE][WIDE + 1];
static char fresh[LARGE][WIDE + 1];
static char value[VALUE];

/* Commands that run in one call, packed for lsmkv_command_packed. */
struct packed {
    char bytes[PIPELINE * COMMAND];
    size_t len;
};
static struct packed packed_gets[KEYS / PIPELINE], packed_sets[KEYS / PIPELINE];

static void check(lsmkv_status status) {
    if (status != LSMKV_OK) {
        fprintf(stderr, "workload: status %d: %s\n", (int)status, err.msg);
        exit(1);
    }
}

static void make_names(void) {
    for (int i = 0; i < KEYS; i++) snprintf(keys[i], sizeof keys[i], "key:%012d", i);
    for (int i = 0; i < SMALL; i++) snprintf(narrow[i], sizeof narrow[i], "m%03d", i);
    for (int i = 0; i < LARGE; i++) snprintf(wide[i], sizeof wide[i], "member:%017d", i);
    for (int i = 0; i < LARGE; i++) snprintf(fresh[i], sizeof fresh[i], "member:%016d+", i);
    memset(value, 'v', sizeof value);
}

static void pack_number(struct packed *to, uint32_t number) {
    for (int i = 0; i < 4; i++) to->bytes[to->len++] = (char)(number >> (8 * i));
}
static void pack(struct packed *to, const char *data, uint32_t len) {
    pack_number(to, len);
    memcpy(to->bytes + to->len, data, len);
    to->len += len;
}

static void make_pipelines(void) {
    for (int i = 0; i < KEYS; i++) {
        struct packed *get = &packed_gets[i / PIPELINE], *set = &packed_sets[i / PIPELINE];
        pack_number(get, 2);
        pack(get, "GET", 3);
        pack(get, keys[i], NAME);
        pack_number(set, 3);
        pack(set, "SET", 3);
        pack(set, keys[i], NAME);
        pack(set, value, VALUE);
    }
}

static lsmkv_slice slice(const char *data, size_t len) {
    lsmkv_slice slice = {(const uint8_t *)data, len};
    return slice;
}

/* A name as key and as member, and the one value. */
#define K(i) keys[(i) % KEYS], NAME
#define N(i) narrow[(i) % SMALL], NARROW
#define W(i) wide[(i) % LARGE], WIDE
/* A wide one that no prepared collection has. */
#define F(i) fresh[(i) % LARGE], WIDE
#define V value, VALUE
#define THE_KEY "collection", 10

/* Prepared stores. ----------------------------------------------------------------------------- */

static void no_data(void) {}
static void strings(void) {
    for (int i = 0; i < KEYS; i++) check(lsmkv_set(db, K(i), V, &err));
}

static void few_strings(void) {
    for (int i = 0; i < SMALL; i++) check(lsmkv_set(db, K(i), V, &err));
}

static void small_hash(void) {
    for (int i = 0; i < SMALL; i++) check(lsmkv_hset(db, THE_KEY, N(i), N(i), NULL, &err));
}
static void wide_hash(int n) {
    for (int at = 0; at < n; at += STEP) {
        lsmkv_slice pairs[2 * STEP];
        for (int i = 0; i < STEP; i++) {
            pairs[2 * i] = slice(wide[at + i], WIDE);
            pairs[2 * i + 1] = slice(wide[at + i], WIDE);
        }
        check(lsmkv_hset_many(db, THE_KEY, pairs, STEP, NULL, &err));
    }
}
static void spread_hash(void) { wide_hash(SMALL); }
static void large_hash(void) { wide_hash(LARGE); }

static void small_set(void) {
    for (int i = 0; i < SMALL; i++) check(lsmkv_sadd(db, THE_KEY, N(i), NULL, &err));
}
static void spread_set(void) {
    for (int i = 0; i < SMALL; i++) check(lsmkv_sadd(db, THE_KEY, W(i), NULL, &err));
}
static void large_set(void) {
    for (int at = 0; at < LARGE; at += STEP) {
        lsmkv_slice items[STEP];
        for (int i = 0; i < STEP; i++) items[i] = slice(wide[at + i], WIDE);
        check(lsmkv_sadd_many(db, THE_KEY, items, STEP, NULL, &err));
    }
}

static void small_zset(void) {
    for (int i = 0; i < SMALL; i++) check(lsmkv_zadd(db, THE_KEY, i, N(i), NULL, &err));
}
static void large_zset(void) {
    for (int at = 0; at < LARGE; at += STEP) {
        lsmkv_slice items[STEP];
        double scores[STEP];
        for (int i = 0; i < STEP; i++) {
            items[i] = slice(wide[at + i], WIDE);
            scores[i] = at + i + 0.5;
        }
        check(lsmkv_zadd_many(db, THE_KEY, items, STEP, scores, 0, NULL, &err));
    }
}

static void wide_list(int n) {
    for (int at = 0; at < n; at += STEP) {
        lsmkv_slice items[STEP];
        for (int i = 0; i < STEP; i++) items[i] = slice(wide[at + i], WIDE);
        check(lsmkv_rpush_many(db, THE_KEY, items, STEP, NULL, &err));
    }
}
static void small_list(void) { wide_list(SMALL); }
static void large_list(void) { wide_list(LARGE); }

/* Calls. --------------------------------------------------------------------------------------- */

static void release(lsmkv_reply *reply, size_t length) {
    if (lsmkv_reply_len(reply, 0) != length) {
        fprintf(stderr, "workload: a reply of %zu\n", lsmkv_reply_len(reply, 0));
        exit(1);
    }
    lsmkv_reply_free(reply);
}

static void get(int i) {
    lsmkv_buf out;
    check(lsmkv_get(db, K(i), &out, &err));
    lsmkv_buf_release(&out);
}
static void set(int i) { check(lsmkv_set(db, K(i), V, &err)); }

/* Sixteen commands in one call, and sixteen writes in one batch. */
static void run_packed(const struct packed *commands) {
    lsmkv_reply *reply;
    check(lsmkv_command_packed(db, commands->bytes, commands->len, &reply, &err));
    release(reply, PIPELINE);
}
static void pipeline_gets(int i) { run_packed(&packed_gets[i % (KEYS / PIPELINE)]); }
static void pipeline_sets(int i) { run_packed(&packed_sets[i % (KEYS / PIPELINE)]); }
static void batch_sets(int i) {
    lsmkv_db *batch;
    check(lsmkv_batch(db, 0, &batch, &err));
    for (int n = 0; n < PIPELINE; n++) check(lsmkv_set(batch, K(i * PIPELINE + n), V, &err));
    check(lsmkv_commit(batch, &err));
    check(lsmkv_close(batch, &err));
}

static void hset_small(int i) {
    int64_t added;
    check(lsmkv_hset(db, THE_KEY, N(i), N(i + 1), &added, &err));
}
static void hset_large(int i) {
    int64_t added;
    check(lsmkv_hset(db, THE_KEY, W(i), W(i + 1), &added, &err));
}
static void hset_new(int i) {
    int64_t added;
    check(lsmkv_hset(db, THE_KEY, F(i), W(i), &added, &err));
}
static void hget_small(int i) {
    lsmkv_buf out;
    check(lsmkv_hget(db, THE_KEY, N(i), &out, &err));
    lsmkv_buf_release(&out);
}
static void hget_large(int i) {
    lsmkv_buf out;
    check(lsmkv_hget(db, THE_KEY, W(i), &out, &err));
    lsmkv_buf_release(&out);
}
static void hgetall(int i) {
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_hgetall(db, THE_KEY, &reply, &err));
    release(reply, 2 * SMALL);
}
static void sadd_new(int i) {
    int64_t added;
    check(lsmkv_sadd(db, THE_KEY, F(i), &added, &err));
}
static void smembers(int i) {
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_smembers(db, THE_KEY, &reply, &err));
    release(reply, SMALL);
}

static void lpush(int i) {
    int64_t length;
    check(lsmkv_lpush(db, THE_KEY, W(i), &length, &err));
}
static void lrange_from(int64_t start) {
    lsmkv_reply *reply;
    check(lsmkv_lrange(db, THE_KEY, start, start + SMALL - 1, &reply, &err));
    release(reply, SMALL);
}
static void lrange(int i) { (void)i, lrange_from(0); }
static void lrange_middle(int i) { (void)i, lrange_from(LARGE / 2); }

static void zadd_small(int i) {
    int64_t added;
    check(lsmkv_zadd(db, THE_KEY, SMALL + i, N(i), &added, &err));
}
static void zadd_large(int i) {
    int64_t added;
    check(lsmkv_zadd(db, THE_KEY, LARGE + i, W(i), &added, &err));
}
static void zadd_new(int i) {
    int64_t added;
    check(lsmkv_zadd(db, THE_KEY, LARGE + i, F(i), &added, &err));
}
static void zrem_large(int i) {
    int64_t removed;
    check(lsmkv_zrem(db, THE_KEY, W(i), &removed, &err));
}
/* By rank from 0: the walk to a later rank would hide what the reply costs. */
static void zrange(int i) {
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_zrange(db, THE_KEY, 0, SMALL - 1, &reply, &err));
    release(reply, SMALL);
}
static void zrange_scores(int i) {
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_zrange_opt(db, THE_KEY, 0, SMALL - 1, LSMKV_WITHSCORES, &reply, &err));
    release(reply, 2 * SMALL);
}

/* Of a set with itself: every member is common. */
static void sinter(int i) {
    lsmkv_slice both[2] = {slice(THE_KEY), slice(THE_KEY)};
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_sinter_many(db, both, 2, &reply, &err));
    release(reply, SMALL);
}
static void all_keys(int i) {
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_keys(db, "*", 1, &reply, &err));
    release(reply, SMALL);
}
static void hscan(int i) {
    lsmkv_reply *reply;
    (void)i;
    check(lsmkv_hscan(db, THE_KEY, NULL, 0, NULL, 2 * SMALL, &reply, &err));
    release(reply, 2);
}

/* A script of two commands, known by its digest. */
static lsmkv_buf digest;
static void two_commands(void) {
    static const char script[] =
        "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";
    check(lsmkv_script_load(db, script, sizeof script - 1, &digest, &err));
}
static void evalsha(int i) {
    lsmkv_slice key = slice(K(i)), arg = slice(V);
    lsmkv_reply *reply;
    check(lsmkv_evalsha(db, (const char *)digest.data, digest.len, &key, 1, &arg, 1, &reply, &err));
    release(reply, VALUE);
}

/* Cases. --------------------------------------------------------------------------------------- */

enum { SINGLE = 2000, RANGE = 100 };

/* Where the data of a case is when its calls are counted. */
enum place { MEMTABLE, TABLE };

static const struct measured {
    const char *name;
    enum place place;
    void (*fill)(void);
    void (*call)(int);
    int repetitions;
} cases[] = {
    {"get", MEMTABLE, strings, get, SINGLE},
    {"get_in_table", TABLE, strings, get, SINGLE},
    {"set", MEMTABLE, no_data, set, SINGLE},
    {"get_16_pipelined", MEMTABLE, strings, pipeline_gets, RANGE},
    {"set_16_pipelined", MEMTABLE, no_data, pipeline_sets, RANGE},
    {"set_16_in_a_batch", MEMTABLE, no_data, batch_sets, RANGE},
    {"hset", MEMTABLE, small_hash, hset_small, SINGLE},
    {"hset_large", TABLE, large_hash, hset_large, SINGLE},
    {"hset_new", TABLE, large_hash, hset_new, SINGLE},
    {"hget", MEMTABLE, small_hash, hget_small, SINGLE},
    {"hget_large", TABLE, large_hash, hget_large, SINGLE},
    {"lpush", MEMTABLE, no_data, lpush, SINGLE},
    {"zadd", MEMTABLE, small_zset, zadd_small, SINGLE},
    {"zadd_large", TABLE, large_zset, zadd_large, SINGLE},
    {"zadd_new", TABLE, large_zset, zadd_new, SINGLE},
    {"zrem", TABLE, large_zset, zrem_large, SINGLE},
    {"sadd_new", TABLE, large_set, sadd_new, SINGLE},
    {"lrange_100", MEMTABLE, small_list, lrange, RANGE},
    {"lrange_100_large", TABLE, large_list, lrange_middle, RANGE},
    {"hgetall_100", MEMTABLE, small_hash, hgetall, RANGE},
    {"hgetall_100_unpacked", TABLE, spread_hash, hgetall, RANGE},
    {"smembers_100", MEMTABLE, small_set, smembers, RANGE},
    {"smembers_100_unpacked", TABLE, spread_set, smembers, RANGE},
    {"zrange_100", MEMTABLE, small_zset, zrange, RANGE},
    {"zrange_100_large", TABLE, large_zset, zrange, RANGE},
    {"zrange_withscores_100", MEMTABLE, small_zset, zrange_scores, RANGE},
    {"zrange_withscores_100_large", TABLE, large_zset, zrange_scores, RANGE},
    {"sinter_100", MEMTABLE, small_set, sinter, RANGE},
    {"keys_100", MEMTABLE, few_strings, all_keys, RANGE},
    {"hscan_100", MEMTABLE, small_hash, hscan, RANGE},
    {"evalsha", MEMTABLE, two_commands, evalsha, SINGLE},
};

/* Not static and never inlined: callgrind finds it by its name. */
__attribute__((noinline)) void measure(void (*call)(int), int begin, int end) {
    for (int i = begin; i < end; i++) call(i);
}

static void open_store(const char *directory) {
    /* No flush, no compaction and no wait for the device while calls are counted. The scores of
     * 100 members need more than the default of packed_max_bytes. */
    static const char *const set[][2] = {{"sync", "off"},
                                         {"memory_budget", "256MiB"},
                                         {"write_buffer", "128MiB"},
                                         {"packed_max_bytes", "2KiB"}};
    lsmkv_options *options = lsmkv_options_new();
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        check(lsmkv_options_set(options, set[i][0], set[i][1], &err));
    }
    check(lsmkv_open(directory, options, &db, &err));
    lsmkv_options_free(options);
}

/* In a process of its own: what the allocator does in the counted calls then depends on nothing
 * that flushes and compactions have allocated and freed before. */
static void prepare(const struct measured *which, const char *directory) {
    if (which->place != TABLE) return;
    open_store(directory);
    which->fill();
    check(lsmkv_compact(db, &err));
    check(lsmkv_close(db, &err));
}

static void count_calls(const struct measured *which, const char *directory) {
    int warm = which->repetitions / 10;
    open_store(directory);
    if (which->place == MEMTABLE) which->fill();
    /* The first calls bind symbols, allocate per thread and fill the cache: not counted. */
    for (int i = 0; i < warm; i++) which->call(i);
    measure(which->call, warm, warm + which->repetitions);
    check(lsmkv_close(db, &err));
}

static const struct measured *find(const char *name) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(name, cases[i].name) == 0) return &cases[i];
    }
    fprintf(stderr, "workload: there is no case %s\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    make_names();
    make_pipelines();
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            printf("%s %d\n", cases[i].name, cases[i].repetitions);
        }
    } else if (argc == 4 && strcmp(argv[1], "prepare") == 0) {
        prepare(find(argv[2]), argv[3]);
    } else if (argc == 4 && strcmp(argv[1], "measure") == 0) {
        count_calls(find(argv[2]), argv[3]);
    } else {
        fprintf(stderr, "usage: workload list | (prepare | measure) CASE DIRECTORY\n");
        return 2;
    }
    return 0;
}

/* Many threads on one handle, one of which closes it; and the library loaded and unloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include "check.h"

enum { THREADS = 4, WRITES = 500 };

static lsmkv_db *shared;

static void *writes_its_own_keys(void *number) {
    char key[32];
    long i, failed = 0;
    for (i = 0; i < WRITES; i++) {
        sprintf(key, "%ld-%ld", (long)(size_t)number, i);
        failed += lsmkv_set(shared, key, strlen(key), key, strlen(key), NULL) != LSMKV_OK;
    }
    return (void *)(size_t)failed;
}

STORY(threads_write_side_by_side_and_all_of_it_is_there) {
    pthread_t threads[THREADS];
    char key[32];
    int64_t there;
    long t, i, missing = 0;
    void *failed;
    shared = check_open();
    for (t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], NULL, writes_its_own_keys, (void *)(size_t)t);
    }
    for (t = 0; t < THREADS; t++) {
        pthread_join(threads[t], &failed);
        CHECK(failed == NULL);
    }
    STATUS(lsmkv_close(shared, NULL), LSMKV_OK);
    shared = check_open();
    for (t = 0; t < THREADS; t++) {
        for (i = 0; i < WRITES; i++) {
            sprintf(key, "%ld-%ld", t, i);
            lsmkv_exists(shared, key, strlen(key), &there, NULL);
            missing += !there;
        }
    }
    CHECK(missing == 0);
    STATUS(lsmkv_close(shared, NULL), LSMKV_OK);
}

/* Works until the handle is closed; anything but OK and then MISUSE is wrong. */
static void *works_until_closed(void *unused) {
    lsmkv_buf buf;
    lsmkv_status st = LSMKV_OK;
    long i;
    for (i = 0; st == LSMKV_OK; i++) {
        st = i % 2 ? lsmkv_set(shared, "k", 1, &i, sizeof i, NULL)
                   : lsmkv_get(shared, "k", 1, &buf, NULL);
        if (i % 2 == 0) lsmkv_buf_release(&buf);
    }
    (void)unused;
    return (void *)(size_t)(st != LSMKV_MISUSE);
}

STORY(closing_waits_for_calls_in_flight_and_refuses_later_ones) {
    int round, t;
    for (round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        void *wrong;
        shared = check_open();
        STATUS(lsmkv_set(shared, "k", 1, "v", 1, NULL), LSMKV_OK);
        for (t = 0; t < THREADS; t++) {
            pthread_create(&threads[t], NULL, works_until_closed, NULL);
        }
        STATUS(lsmkv_close(shared, NULL), LSMKV_OK);
        for (t = 0; t < THREADS; t++) {
            pthread_join(threads[t], &wrong);
            CHECK(wrong == NULL);
        }
    }
}

/* Reads through handles made from the one that is closed: OK, then CLOSED and nothing else. */
static void *reads_through_a_child(void *unused) {
    lsmkv_db *child = NULL;
    lsmkv_iter *iter = NULL;
    lsmkv_reply *reply;
    lsmkv_status st;
    long wrong = 0;
    (void)unused;
    st = lsmkv_snapshot(shared, &child, NULL);
    if (st == LSMKV_MISUSE) return NULL;
    while (st == LSMKV_OK) {
        st = lsmkv_hgetall(child, "h", 1, &reply, NULL);
        lsmkv_reply_free(reply);
        if (st == LSMKV_OK) st = lsmkv_iter_new(child, NULL, NULL, 0, &iter, NULL);
        while (st == LSMKV_OK) st = lsmkv_iter_next(iter, NULL, NULL, NULL, NULL);
        lsmkv_iter_free(iter);
        iter = NULL;
        if (st == LSMKV_DONE) st = LSMKV_OK;
    }
    wrong += st != LSMKV_CLOSED;
    wrong += lsmkv_close(child, NULL) != LSMKV_OK;
    return (void *)(size_t)wrong;
}

STORY(closing_the_store_ends_the_work_of_its_children_with_closed) {
    int round, t, i;
    for (round = 0; round < 20; round++) {
        pthread_t threads[THREADS];
        char field[16];
        void *wrong;
        shared = check_open();
        for (i = 0; i < 50; i++) {
            sprintf(field, "f%d", i);
            STATUS(lsmkv_hset(shared, "h", 1, field, strlen(field), "v", 1, NULL, NULL), LSMKV_OK);
        }
        for (t = 0; t < THREADS; t++) {
            pthread_create(&threads[t], NULL, reads_through_a_child, NULL);
        }
        STATUS(lsmkv_close(shared, NULL), LSMKV_OK);
        for (t = 0; t < THREADS; t++) {
            pthread_join(threads[t], &wrong);
            CHECK(wrong == NULL);
        }
    }
}

/* Calls that may take long. Each is made again and again until the store is closed. */
static lsmkv_status commits_and_waits(long round) {
    lsmkv_db *txn = NULL;
    uint64_t ticket = 0;
    lsmkv_status st = lsmkv_begin(shared, &txn, NULL);
    if (st == LSMKV_OK) st = lsmkv_set(txn, "k", 1, &round, sizeof round, NULL);
    if (st == LSMKV_OK) st = lsmkv_commit_async(txn, &ticket, NULL);
    lsmkv_close(txn, NULL);
    return st == LSMKV_OK ? lsmkv_wait(shared, ticket, 60000, NULL) : st;
}
static lsmkv_status commits_in_time(long round) {
    lsmkv_db *txn = NULL;
    lsmkv_status st = lsmkv_begin(shared, &txn, NULL);
    if (st == LSMKV_OK) st = lsmkv_set(txn, "k", 1, &round, sizeof round, NULL);
    if (st == LSMKV_OK) st = lsmkv_commit_timeout(txn, 60000, NULL);
    lsmkv_close(txn, NULL);
    return st;
}
static lsmkv_status compacts(long round) {
    (void)round;
    return lsmkv_compact(shared, NULL);
}
static lsmkv_status copies(long round) {
    char dir[sizeof check_dir + 32];
    snprintf(dir, sizeof dir, "%s-copy-%ld", check_dir, round);
    return lsmkv_checkpoint(shared, dir, NULL);
}

typedef struct {
    pthread_t thread;
    lsmkv_status (*call)(long round);
    long rounds, before;
    int over;
    lsmkv_status st;
} long_call;

static void *calls_until_closed(void *given) {
    long_call *self = (long_call *)given;
    do {
        long round = __atomic_add_fetch(&self->rounds, 1, __ATOMIC_SEQ_CST);
        self->st = self->call(self->before + round);
    } while (self->st == LSMKV_OK || self->st == LSMKV_CONFLICT);
    __atomic_store_n(&self->over, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

STORY(closing_amid_calls_that_take_long_ends_them_all) {
    long_call calls[4] = {{0}};
    int round, t;
    calls[0].call = commits_and_waits;
    calls[1].call = commits_in_time;
    calls[2].call = compacts;
    calls[3].call = copies;
    for (round = 0; round < 10; round++) {
        shared = check_open();
        for (t = 0; t < 4; t++) {
            calls[t].before += calls[t].rounds;
            calls[t].rounds = calls[t].over = 0;
            pthread_create(&calls[t].thread, NULL, calls_until_closed, &calls[t]);
        }
        for (t = 0; t < 4; t++) {
            while (__atomic_load_n(&calls[t].rounds, __ATOMIC_SEQ_CST) < 2 &&
                   !__atomic_load_n(&calls[t].over, __ATOMIC_SEQ_CST)) {
                sched_yield();
            }
        }
        STATUS(lsmkv_close(shared, NULL), LSMKV_OK);
        for (t = 0; t < 4; t++) {
            pthread_join(calls[t].thread, NULL);
            CHECK(calls[t].st == LSMKV_CLOSED || calls[t].st == LSMKV_MISUSE);
        }
    }
}

/* Two threads on a session: each call is served or told of the misuse, and nothing breaks. */
static void *uses_a_session(void *session) {
    static const char NAME[] = "PING";
    const uint8_t *argv[1];
    size_t len = 4;
    lsmkv_reply *reply;
    long i, wrong = 0;
    argv[0] = (const uint8_t *)NAME;
    for (i = 0; i < 2000; i++) {
        lsmkv_status st = lsmkv_command((lsmkv_db *)session, 1, argv, &len, &reply, NULL);
        wrong += st != LSMKV_OK && st != LSMKV_MISUSE;
        lsmkv_reply_free(reply);
    }
    return (void *)(size_t)wrong;
}

STORY(a_session_used_by_two_threads_is_misuse_at_worst) {
    pthread_t threads[2];
    lsmkv_db *db = check_open(), *session = NULL;
    void *wrong;
    int t;
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    for (t = 0; t < 2; t++) pthread_create(&threads[t], NULL, uses_a_session, session);
    for (t = 0; t < 2; t++) {
        pthread_join(threads[t], &wrong);
        CHECK(wrong == NULL);
    }
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

static void *loads_uses_and_unloads(void *path) {
    long round, wrong = 0;
    for (round = 0; round < 250; round++) {
        void *library = dlopen((const char *)path, RTLD_NOW | RTLD_LOCAL);
        lsmkv_status (*open)(const char *, const lsmkv_options *, lsmkv_db **, lsmkv_err *);
        lsmkv_status (*close)(lsmkv_db *, lsmkv_err *);
        lsmkv_db *db = NULL;
        if (library == NULL) return (void *)1;
        *(void **)&open = dlsym(library, "lsmkv_open");
        *(void **)&close = dlsym(library, "lsmkv_close");
        wrong += open(":memory:", NULL, &db, NULL) != LSMKV_OK;
        wrong += close(db, NULL) != LSMKV_OK;
        dlclose(library);
    }
    return (void *)(size_t)wrong;
}

/* Without -z nodelete a thread that ends after the last dlclose crashes in its destructors. */
STORY(the_library_is_loaded_used_and_unloaded_by_threads_that_end) {
    const char *path = getenv("LSMKV_TEST_LIBRARY");
    pthread_t threads[THREADS];
    void *wrong;
    int t;
    if (path == NULL) return;
    for (t = 0; t < THREADS; t++) {
        pthread_create(&threads[t], NULL, loads_uses_and_unloads, (void *)path);
    }
    for (t = 0; t < THREADS; t++) {
        pthread_join(threads[t], &wrong);
        CHECK(wrong == NULL);
    }
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(threads_write_side_by_side_and_all_of_it_is_there);
    RUN(closing_waits_for_calls_in_flight_and_refuses_later_ones);
    RUN(closing_the_store_ends_the_work_of_its_children_with_closed);
    RUN(closing_amid_calls_that_take_long_ends_them_all);
    RUN(a_session_used_by_two_threads_is_misuse_at_worst);
    RUN(the_library_is_loaded_used_and_unloaded_by_threads_that_end);
    return END();
}

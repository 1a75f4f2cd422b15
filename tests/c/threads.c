/* Many threads on one handle, one of which closes it; and the library loaded and unloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

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
    RUN(a_session_used_by_two_threads_is_misuse_at_worst);
    RUN(the_library_is_loaded_used_and_unloaded_by_threads_that_end);
    return END();
}

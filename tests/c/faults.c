/*
 * Defects of the library and a device that stands still, as C sees them. Linked with
 * tests/c/faulty.rs instead of the shipped library; run by tests/c_faults.rs.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

lsmkv_db *faulty_open(const char *dir);
void faulty_stop_device(int stopped);
void faulty_until_device_is_waited_for(void);
void faulty_reads_panic(int on);
void faulty_writes_panic(int on);

enum { THREADS = 4, MINUTE = 60000 };

static lsmkv_db *opened(void) {
    lsmkv_db *db = faulty_open(check_dir);
    if (db == NULL) {
        printf("    %s cannot be opened\n", check_dir);
        check_story_failed = 1;
        exit(check_end());
    }
    return db;
}

static lsmkv_status set(lsmkv_db *db, const char *key) {
    return lsmkv_set(db, key, strlen(key), "value", 5, NULL);
}

static int has(lsmkv_db *db, const char *key) {
    lsmkv_buf buf;
    int same = lsmkv_get(db, key, strlen(key), &buf, NULL) == LSMKV_OK && buf.len == 5 &&
               memcmp(buf.data, "value", 5) == 0;
    lsmkv_buf_release(&buf);
    return same;
}

/* A store with one key in a table, which a read has to fetch. */
static lsmkv_db *opened_with_a_table(void) {
    lsmkv_db *db = opened();
    STATUS(set(db, "k"), LSMKV_OK);
    STATUS(lsmkv_flush(db, NULL), LSMKV_OK);
    return db;
}

/* After a panic: reads go on, writes are off, closing says so, and nothing is lost. */
static void is_degraded(lsmkv_db *db) {
    lsmkv_err err;
    lsmkv_db *again;
    CHECK(has(db, "k"));
    STATUS(lsmkv_set(db, "late", 4, "v", 1, &err), LSMKV_DEGRADED);
    CHECK(err.code == LSMKV_DEGRADED && strstr(err.msg, "injected") != NULL);
    CHECK(has(db, "k"));
    STATUS(lsmkv_close(db, NULL), LSMKV_DEGRADED);
    again = check_open();
    CHECK(has(again, "k"));
    CHECK(!has(again, "late"));
    STATUS(set(again, "late"), LSMKV_OK);
    STATUS(lsmkv_close(again, NULL), LSMKV_OK);
}

static void reports_the_panic(const lsmkv_err *err, const char *where) {
    CHECK(err->code == LSMKV_PANIC);
    CHECK(strstr(err->msg, "a defect of lsmkv") != NULL);
    CHECK(strstr(err->msg, where) != NULL);
}

STORY(a_panic_in_a_read_is_a_status_and_turns_writes_off) {
    lsmkv_db *db = opened_with_a_table();
    lsmkv_buf buf = {(const uint8_t *)"old", 3, NULL};
    lsmkv_err err;
    faulty_reads_panic(1);
    STATUS(lsmkv_get(db, "k", 1, &buf, &err), LSMKV_PANIC);
    faulty_reads_panic(0);
    CHECK(buf.data == NULL && buf.len == 0);
    reports_the_panic(&err, "injected into a read");
    is_degraded(db);
}

STORY(a_panic_in_a_command_by_name_leaves_no_reply) {
    lsmkv_db *db = opened_with_a_table();
    const uint8_t *argv[2];
    size_t lens[2] = {3, 1};
    lsmkv_reply *reply = (lsmkv_reply *)&lens;
    argv[0] = (const uint8_t *)"GET";
    argv[1] = (const uint8_t *)"k";
    faulty_reads_panic(1);
    STATUS(lsmkv_command(db, 2, argv, lens, &reply, NULL), LSMKV_PANIC);
    faulty_reads_panic(0);
    CHECK(reply == NULL);
    is_degraded(db);
}

STORY(a_panic_in_an_iterator_is_no_early_end) {
    lsmkv_db *db = opened_with_a_table();
    lsmkv_iter *iter = NULL;
    lsmkv_err err;
    lsmkv_status st;
    faulty_reads_panic(1);
    st = lsmkv_iter_new(db, NULL, NULL, 0, &iter, &err);
    if (st == LSMKV_OK) st = lsmkv_iter_next(iter, NULL, NULL, NULL, &err);
    faulty_reads_panic(0);
    STATUS(st, LSMKV_PANIC);
    reports_the_panic(&err, "injected into a read");
    lsmkv_iter_free(iter);
    is_degraded(db);
}

STORY(a_panic_in_a_write_is_a_status_and_turns_writes_off) {
    lsmkv_db *db = opened_with_a_table();
    lsmkv_err err;
    faulty_writes_panic(1);
    STATUS(lsmkv_set(db, "late", 4, "v", 1, &err), LSMKV_PANIC);
    faulty_writes_panic(0);
    reports_the_panic(&err, "injected into a write");
    is_degraded(db);
}

STORY(a_panic_in_a_commit_ends_the_transaction_without_its_writes) {
    lsmkv_db *db = opened_with_a_table(), *txn = NULL;
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(set(txn, "late"), LSMKV_OK);
    faulty_writes_panic(1);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_PANIC);
    faulty_writes_panic(0);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    is_degraded(db);
}

static lsmkv_db *shared;
static int written;

/* Writes until that fails; the failure. */
static void *writes_until_it_fails(void *unused) {
    lsmkv_status st;
    (void)unused;
    do {
        st = set(shared, "k");
        __atomic_add_fetch(&written, 1, __ATOMIC_SEQ_CST);
    } while (st == LSMKV_OK);
    return (void *)(intptr_t)st;
}

/* Commits of several threads share one write of the log: none may be left waiting for it. */
STORY(a_panic_in_one_of_many_writers_leaves_nobody_waiting) {
    pthread_t threads[THREADS];
    void *st;
    int t, panics = 0;
    shared = opened();
    written = 0;
    for (t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, writes_until_it_fails, NULL);
    while (__atomic_load_n(&written, __ATOMIC_SEQ_CST) < 200) usleep(100);
    faulty_writes_panic(1);
    for (t = 0; t < THREADS; t++) {
        pthread_join(threads[t], &st);
        CHECK((intptr_t)st == LSMKV_PANIC || (intptr_t)st == LSMKV_DEGRADED);
        panics += (intptr_t)st == LSMKV_PANIC;
    }
    faulty_writes_panic(0);
    CHECK(panics > 0);
    is_degraded(shared);
}

/* A thread in lsmkv_wait, or in a write that waits for the device too. */
typedef struct {
    pthread_t thread;
    lsmkv_db *db;
    uint64_t ticket;
    const char *key; /* to write, if this is no wait */
    int id;          /* of the thread, once it runs */
    lsmkv_status st;
} waiter;

static void *waits(void *given) {
    waiter *self = (waiter *)given;
    __atomic_store_n(&self->id, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
    self->st = self->key != NULL ? set(self->db, self->key)
                                 : lsmkv_wait(self->db, self->ticket, 10 * MINUTE, NULL);
    return NULL;
}

static void start(waiter *w, lsmkv_db *db, uint64_t ticket, const char *key) {
    memset(w, 0, sizeof *w);
    w->db = db;
    w->ticket = ticket;
    w->key = key;
    pthread_create(&w->thread, NULL, waits, w);
}

/* Whether a thread sleeps in the kernel's wait for another thread. */
static int sleeps(int id) {
    char path[64], text[64] = "";
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", id);
    file = fopen(path, "r");
    if (file == NULL) return 0;
    if (fgets(text, sizeof text, file) == NULL) text[0] = 0;
    fclose(file);
    return text[0] >= '0' && text[0] <= '9' && atoi(text) == SYS_futex;
}

static void until_it_sleeps(waiter *w) {
    int id;
    do {
        usleep(100);
        id = __atomic_load_n(&w->id, __ATOMIC_SEQ_CST);
    } while (id == 0 || !sleeps(id));
}

static uint64_t committed(lsmkv_db *db, const char *key) {
    lsmkv_db *txn = NULL;
    uint64_t ticket = 0;
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(set(txn, key), LSMKV_OK);
    STATUS(lsmkv_commit_async(txn, &ticket, NULL), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    return ticket;
}

static void *closes(void *status) {
    *(lsmkv_status *)status = lsmkv_close(shared, NULL);
    return NULL;
}

/*
 * The device stands still until those who are to be woken have been: nothing else could have
 * ended their waits. The flush under way cannot be cut short, and a write is not.
 */
STORY(closing_wakes_who_waits_for_a_ticket_and_lets_writes_end) {
    waiter flushes, waits_too, on_another_handle, writes;
    lsmkv_db *other = NULL, *always = NULL;
    lsmkv_status closed = LSMKV_PANIC;
    pthread_t closer;
    uint64_t first, second;
    shared = opened();
    STATUS(lsmkv_select(shared, 1, &other, NULL), LSMKV_OK);
    STATUS(lsmkv_with_sync(shared, "always", &always, NULL), LSMKV_OK);
    first = committed(shared, "first");
    faulty_stop_device(1);
    start(&flushes, shared, first, NULL);
    faulty_until_device_is_waited_for();
    second = committed(shared, "second");
    STATUS(lsmkv_wait(shared, second, 0, NULL), LSMKV_TIMEOUT);
    STATUS(lsmkv_wait(shared, second, 1, NULL), LSMKV_TIMEOUT);
    start(&waits_too, shared, second, NULL);
    start(&on_another_handle, other, second, NULL);
    start(&writes, always, 0, "written");
    until_it_sleeps(&waits_too);
    until_it_sleeps(&on_another_handle);
    until_it_sleeps(&writes);

    pthread_create(&closer, NULL, closes, &closed);
    pthread_join(waits_too.thread, NULL);
    pthread_join(on_another_handle.thread, NULL);
    STATUS(waits_too.st, LSMKV_CLOSED);
    STATUS(on_another_handle.st, LSMKV_CLOSED);
    faulty_stop_device(0);
    pthread_join(flushes.thread, NULL);
    pthread_join(writes.thread, NULL);
    pthread_join(closer, NULL);
    STATUS(flushes.st, LSMKV_OK);
    STATUS(writes.st, LSMKV_OK);
    STATUS(closed, LSMKV_OK);
    STATUS(lsmkv_wait(other, second, MINUTE, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_close(other, NULL), LSMKV_OK);
    STATUS(lsmkv_close(always, NULL), LSMKV_OK);

    shared = check_open();
    CHECK(has(shared, "first") && has(shared, "second") && has(shared, "written"));
    STATUS(lsmkv_close(shared, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    /* Whoever waits for ever is a failure, not a test that never ends. */
    alarm(300);
    RUN(a_panic_in_a_read_is_a_status_and_turns_writes_off);
    RUN(a_panic_in_a_command_by_name_leaves_no_reply);
    RUN(a_panic_in_an_iterator_is_no_early_end);
    RUN(a_panic_in_a_write_is_a_status_and_turns_writes_off);
    RUN(a_panic_in_a_commit_ends_the_transaction_without_its_writes);
    RUN(a_panic_in_one_of_many_writers_leaves_nobody_waiting);
    RUN(closing_wakes_who_waits_for_a_ticket_and_lets_writes_end);
    return END();
}

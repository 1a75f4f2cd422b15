/*
 * Stores and processes: the lock, fork, and death by SIGKILL. The program starts itself again
 * (argv[2] says as what) where a story needs a second process that is no fork.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char *program;

enum { WRITES = 3000, EXIT_BUSY = 17 };

static int wait_for(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int run_as(const char *role) {
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, check_dir, role, (char *)NULL);
        _exit(127);
    }
    return wait_for(child);
}

/* Roles of the second process; its directory is the story's. */

static int tries_to_open(const char *dir) {
    lsmkv_db *db;
    lsmkv_err err;
    lsmkv_status st = lsmkv_open(dir, NULL, &db, &err);
    if (st == LSMKV_OK) lsmkv_close(db, NULL);
    return st == LSMKV_BUSY && strlen(err.msg) > 0 ? EXIT_BUSY : st == LSMKV_OK ? 0 : 1;
}

static int writes_and_dies(const char *dir) {
    lsmkv_db *db;
    char key[16];
    int i;
    if (lsmkv_open(dir, NULL, &db, NULL) != LSMKV_OK) return 1;
    for (i = 0; i < WRITES; i++) {
        sprintf(key, "key%d", i);
        if (lsmkv_set(db, key, strlen(key), &i, sizeof i, NULL) != LSMKV_OK) return 1;
        if (i % 10 == 9 && lsmkv_del(db, key, strlen(key), NULL, NULL) != LSMKV_OK) return 1;
        if (i == WRITES / 2 && lsmkv_flush(db, NULL) != LSMKV_OK) return 1;
    }
    raise(SIGKILL);
    return 1;
}

STORY(a_second_handle_on_a_directory_is_refused_in_and_out_of_the_process) {
    lsmkv_db *db = check_open(), *second = NULL;
    lsmkv_err err;
    STATUS(lsmkv_open(check_dir, NULL, &second, &err), LSMKV_BUSY);
    CHECK(second == NULL && strlen(err.msg) > 0);
    CHECK(run_as("open") == EXIT_BUSY);
    /* A refused second open must not have dropped the first one's lock. */
    STATUS(lsmkv_open(check_dir, NULL, &second, NULL), LSMKV_BUSY);
    CHECK(run_as("open") == EXIT_BUSY);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    CHECK(run_as("open") == 0);
    STATUS(lsmkv_close(check_open(), NULL), LSMKV_OK);
}

STORY(what_was_acknowledged_survives_the_death_of_the_process) {
    lsmkv_db *db;
    lsmkv_buf buf;
    char key[16];
    int i, wrong = 0;
    CHECK(run_as("write") == -SIGKILL);
    db = check_open();
    for (i = 0; i < WRITES; i++) {
        lsmkv_status wanted = i % 10 == 9 ? LSMKV_NOT_FOUND : LSMKV_OK;
        sprintf(key, "key%d", i);
        wrong += lsmkv_get(db, key, strlen(key), &buf, NULL) != wanted;
        if (wanted == LSMKV_OK) {
            wrong += buf.len != sizeof i || memcmp(buf.data, &i, sizeof i) != 0;
        }
        lsmkv_buf_release(&buf);
    }
    CHECK(wrong == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

static void child_of_a_fork(lsmkv_db *db, lsmkv_db *txn, lsmkv_iter *iter, lsmkv_buf *pinned) {
    lsmkv_db *own = NULL;
    lsmkv_buf buf;
    lsmkv_err err;
    STATUS(lsmkv_set(db, "k", 1, "child", 5, &err), LSMKV_FORKED);
    CHECK(strstr(err.msg, "fork") != NULL);
    STATUS(lsmkv_get(db, "k", 1, &buf, NULL), LSMKV_FORKED);
    STATUS(lsmkv_sync(db, NULL), LSMKV_FORKED);
    STATUS(lsmkv_set(txn, "k", 1, "child", 5, NULL), LSMKV_FORKED);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_FORKED);
    STATUS(lsmkv_iter_next(iter, NULL, NULL, NULL, NULL), LSMKV_FORKED);
    lsmkv_iter_free(iter);
    STATUS(lsmkv_close(txn, NULL), LSMKV_FORKED);
    STATUS(lsmkv_close(db, NULL), LSMKV_FORKED);
    CHECK(pinned->len == 6 && memcmp(pinned->data, "parent", 6) == 0);
    lsmkv_buf_release(pinned);
    /* When this was allowed, the locks shared with the parent's threads failed in the child. */
    STATUS(lsmkv_open(":memory:", NULL, &own, &err), LSMKV_FORKED);
    CHECK(own == NULL && strstr(err.msg, "exec") != NULL);
    fflush(stdout);
    _exit(check_story_failed);
}

STORY(a_forked_child_cannot_use_the_handle_and_the_parent_goes_on) {
    lsmkv_db *db = check_open(), *txn = NULL;
    lsmkv_iter *iter = NULL;
    lsmkv_buf buf;
    pid_t child;
    STATUS(lsmkv_set(db, "k", 1, "parent", 6, NULL), LSMKV_OK);
    STATUS(lsmkv_begin(db, &txn, NULL), LSMKV_OK);
    STATUS(lsmkv_set(txn, "t", 1, "parent", 6, NULL), LSMKV_OK);
    STATUS(lsmkv_iter_new(db, NULL, NULL, 0, &iter, NULL), LSMKV_OK);
    STATUS(lsmkv_get(db, "k", 1, &buf, NULL), LSMKV_OK);
    fflush(stdout);
    child = fork();
    if (child == 0) child_of_a_fork(db, txn, iter, &buf);
    CHECK(wait_for(child) == 0);
    lsmkv_buf_release(&buf);
    STATUS(lsmkv_iter_next(iter, NULL, NULL, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_commit(txn, NULL), LSMKV_OK);
    STATUS(lsmkv_close(txn, NULL), LSMKV_OK);
    lsmkv_iter_free(iter);
    STATUS(lsmkv_set(db, "k", 1, "after", 5, NULL), LSMKV_OK);
    STATUS(lsmkv_get(db, "k", 1, &buf, NULL), LSMKV_OK);
    CHECK(buf.len == 5 && memcmp(buf.data, "after", 5) == 0);
    lsmkv_buf_release(&buf);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_child_forked_after_the_last_close_opens_stores_of_its_own) {
    lsmkv_db *db = check_open();
    lsmkv_buf buf;
    pid_t child;
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        db = check_open();
        STATUS(lsmkv_set(db, "k", 1, "child", 5, NULL), LSMKV_OK);
        STATUS(lsmkv_close(db, NULL), LSMKV_OK);
        fflush(stdout);
        _exit(check_story_failed);
    }
    CHECK(wait_for(child) == 0);
    db = check_open();
    STATUS(lsmkv_get(db, "k", 1, &buf, NULL), LSMKV_OK);
    lsmkv_buf_release(&buf);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/*
 * A process opens the store, forks a child that lives on, and is killed. The child shares the
 * lock's open file description: had it not closed its descriptor, the store would stay locked
 * for as long as the child lives.
 */
static int forks_and_dies(const char *dir) {
    lsmkv_db *db;
    int ready[2];
    char byte;
    if (lsmkv_open(dir, NULL, &db, NULL) != LSMKV_OK || pipe(ready) != 0) return 1;
    if (fork() == 0) {
        if (write(ready[1], "x", 1) != 1) _exit(1);
        sleep(3);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1) return 1;
    raise(SIGKILL);
    return 1;
}

STORY(a_surviving_child_does_not_keep_the_store_of_a_dead_parent_locked) {
    CHECK(run_as("fork") == -SIGKILL);
    STATUS(lsmkv_close(check_open(), NULL), LSMKV_OK);
}

/* Forks children that live until the pipe ends, a few while the store is being opened. */
static void *forks_all_the_time(void *of) {
    const int *pipe_and_opened = of;
    char byte;
    int forks;
    for (forks = 0; forks < 40 && !__atomic_load_n(&pipe_and_opened[1], __ATOMIC_SEQ_CST); forks++) {
        if (fork() == 0) _exit(read(pipe_and_opened[0], &byte, 1) == 0 ? 0 : 1);
    }
    return NULL;
}

static int opens_while_it_forks_and_dies(int pipe_end) {
    int pipe_and_opened[2] = {pipe_end, 0};
    lsmkv_db *db;
    pthread_t forks;
    if (pthread_create(&forks, NULL, forks_all_the_time, pipe_and_opened) != 0) return 1;
    if (lsmkv_open(check_dir, NULL, &db, NULL) != LSMKV_OK) return 1;
    __atomic_store_n(&pipe_and_opened[1], 1, __ATOMIC_SEQ_CST);
    pthread_join(forks, NULL);
    raise(SIGKILL);
    return 1;
}

/* Opens the store as soon as every child had a moment to close what it inherited. */
static lsmkv_db *opened_soon(void) {
    lsmkv_db *db = NULL;
    int tries;
    for (tries = 0; tries < 1000; tries++) {
        if (lsmkv_open(check_dir, NULL, &db, NULL) != LSMKV_BUSY) break;
        usleep(10000);
    }
    CHECK(db != NULL);
    return db;
}

/*
 * A child that was forked while another thread opened the store had a copy of the lock's descriptor
 * that no handle showed yet. When the parent was killed, the store stayed locked as long as the child
 * lived.
 */
STORY(a_child_forked_during_an_open_does_not_keep_the_store_locked) {
    int round;
    for (round = 0; round < 20; round++) {
        int ends[2];
        pid_t child;
        CHECK(pipe(ends) == 0);
        fflush(stdout);
        child = fork();
        if (child == 0) {
            close(ends[1]);
            _exit(opens_while_it_forks_and_dies(ends[0]));
        }
        close(ends[0]);
        CHECK(wait_for(child) == -SIGKILL);
        STATUS(lsmkv_close(opened_soon(), NULL), LSMKV_OK);
        close(ends[1]);
        if (check_story_failed) return;
    }
}

/* A second copy of the library in one process has its own registry; the file lock is common. */
STORY(two_copies_of_the_library_do_not_share_a_directory) {
    const char *path = getenv("LSMKV_TEST_LIBRARY");
    lsmkv_status (*open)(const char *, const lsmkv_options *, lsmkv_db **, lsmkv_err *);
    lsmkv_status (*close)(lsmkv_db *, lsmkv_err *);
    lsmkv_db *db = check_open(), *second = NULL;
    char copy[4200], command[9000];
    void *library;
    sprintf(copy, "%s.so", check_dir);
    snprintf(command, sizeof command, "cp '%s' '%s'", path == NULL ? "/dev/null" : path, copy);
    if (path == NULL || system(command) != 0) {
        STATUS(lsmkv_close(db, NULL), LSMKV_OK);
        return;
    }
    library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    *(void **)&open = dlsym(library, "lsmkv_open");
    *(void **)&close = dlsym(library, "lsmkv_close");
    CHECK(open != lsmkv_open);
    STATUS(open(check_dir, NULL, &second, NULL), LSMKV_BUSY);
    STATUS(open(check_dir, NULL, &second, NULL), LSMKV_BUSY);
    STATUS(lsmkv_set(db, "k", 1, "v", 1, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(open(check_dir, NULL, &second, NULL), LSMKV_OK);
    STATUS(lsmkv_open(check_dir, NULL, &db, NULL), LSMKV_BUSY);
    STATUS(close(second, NULL), LSMKV_OK);
    dlclose(library);
}

static int play(const char *role, const char *dir) {
    if (strcmp(role, "open") == 0) return tries_to_open(dir);
    if (strcmp(role, "write") == 0) return writes_and_dies(dir);
    if (strcmp(role, "fork") == 0) return forks_and_dies(dir);
    return 2;
}

int main(int argc, char **argv) {
    program = argv[0];
    if (argc == 3) return play(argv[2], argv[1]);
    BEGIN(argc, argv);
    RUN(a_second_handle_on_a_directory_is_refused_in_and_out_of_the_process);
    RUN(what_was_acknowledged_survives_the_death_of_the_process);
    RUN(a_forked_child_cannot_use_the_handle_and_the_parent_goes_on);
    RUN(a_child_forked_after_the_last_close_opens_stores_of_its_own);
    RUN(two_copies_of_the_library_do_not_share_a_directory);
    RUN(a_surviving_child_does_not_keep_the_store_of_a_dead_parent_locked);
    RUN(a_child_forked_during_an_open_does_not_keep_the_store_locked);
    return END();
}

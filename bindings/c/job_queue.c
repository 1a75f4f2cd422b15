/*
 * A job queue that loses no job. A worker moves a job to its own list while it works. One
 * transaction then removes the job and counts it. Jobs in the list of a dead worker go back to
 * the queue. Build: cc job_queue.c -llsmkv; run: ./a.out DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lsmkv.h>

#define WAITING "jobs:waiting", 12
#define RUNNING "jobs:running", 12
#define DONE "jobs:done", 9

static lsmkv_err err;

static lsmkv_status check(lsmkv_status status) {
    if (status < 0) {
        fprintf(stderr, "lsmkv: %s (status %d)\n", err.msg, (int)status);
        exit(1);
    }
    return status;
}

static void add(lsmkv_db *db, const char *job) {
    int64_t length;
    check(lsmkv_rpush(db, WAITING, job, strlen(job), &length, &err));
    printf("add      %s, %d waiting\n", job, (int)length);
}

/* Takes the next job; 0 if there is none. The caller releases it. */
static int take(lsmkv_db *db, lsmkv_buf *job) {
    return check(lsmkv_lmove(db, WAITING, RUNNING, LSMKV_LEFT, LSMKV_RIGHT, job, &err)) == LSMKV_OK;
}

/* Removes a job and counts it, or neither. If others finish jobs at the same time, the transaction
 * conflicts and is tried again. */
static int64_t finish(lsmkv_db *db, const lsmkv_buf *job) {
    for (;;) {
        lsmkv_db *txn;
        lsmkv_status st;
        int64_t done;
        check(lsmkv_begin(db, &txn, &err));
        check(lsmkv_lrem(txn, RUNNING, 1, job->data, job->len, NULL, &err));
        check(lsmkv_incr(txn, DONE, &done, &err));
        st = lsmkv_commit(txn, &err);
        lsmkv_close(txn, NULL);
        if (st == LSMKV_OK) return done;
        if (st != LSMKV_CONFLICT) check(st);
    }
}

/* Puts the jobs of a dead worker back into the queue, the oldest first. */
static void recover(lsmkv_db *db) {
    while (check(lsmkv_lmove(db, RUNNING, WAITING, LSMKV_RIGHT, LSMKV_LEFT, NULL, &err)) == LSMKV_OK) {
        printf("recover  a job that was not finished\n");
    }
}

int main(int argc, char **argv) {
    lsmkv_db *db;
    lsmkv_buf job;

    check(lsmkv_open(argc > 1 ? argv[1] : ":memory:", NULL, &db, &err));
    recover(db);
    add(db, "resize photo 7");
    add(db, "send mail 8");
    add(db, "index page 9");
    /* A worker takes a job and dies. */
    if (take(db, &job)) {
        printf("take     %.*s, and crash\n", (int)job.len, (const char *)job.data);
        lsmkv_buf_release(&job);
    }
    recover(db);
    while (take(db, &job)) {
        int64_t done = finish(db, &job);
        printf("finish   %.*s, %d done\n", (int)job.len, (const char *)job.data, (int)done);
        lsmkv_buf_release(&job);
    }
    check(lsmkv_close(db, &err));
    return 0;
}

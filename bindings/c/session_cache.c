/*
 * A session cache. Each session expires some time after its last use, and the store deletes it by
 * itself. Build: cc session_cache.c -llsmkv; run: ./a.out DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lsmkv.h>

enum { TTL_MS = 30 * 60 * 1000 };

static lsmkv_err err;

static lsmkv_status check(lsmkv_status status) {
    if (status < 0) {
        fprintf(stderr, "lsmkv: %s (status %d)\n", err.msg, (int)status);
        exit(1);
    }
    return status;
}

/* Begins a session; 0 if the token is taken. */
static int session_begin(lsmkv_db *db, const char *token, const char *user) {
    lsmkv_status st = check(lsmkv_set_opt(db, token, strlen(token), user, strlen(user), LSMKV_NX, TTL_MS,
                                          NULL, &err));
    return st == LSMKV_OK;
}

/* Finds the user of a session and restarts its expiry; 0 if there is none. */
static int session_use(lsmkv_db *db, const char *token, char *user, size_t size) {
    lsmkv_buf value;
    if (check(lsmkv_getex(db, token, strlen(token), TTL_MS, 0, &value, &err)) == LSMKV_NOT_FOUND) {
        return 0;
    }
    snprintf(user, size, "%.*s", (int)value.len, (const char *)value.data);
    lsmkv_buf_release(&value);
    return 1;
}

static void session_end(lsmkv_db *db, const char *token) {
    check(lsmkv_del(db, token, strlen(token), NULL, &err));
}

int main(int argc, char **argv) {
    lsmkv_db *db;
    char user[64];
    int64_t ms;

    check(lsmkv_open(argc > 1 ? argv[1] : ":memory:", NULL, &db, &err));
    printf("begin:  %s\n", session_begin(db, "token-1", "ada") ? "ada is in" : "taken");
    printf("again:  %s\n", session_begin(db, "token-1", "bob") ? "bob is in" : "the token is taken");
    if (session_use(db, "token-1", user, sizeof user)) printf("use:    token-1 belongs to %s\n", user);
    check(lsmkv_pttl(db, "token-1", 7, &ms, &err));
    printf("expiry: in %d minutes\n", (int)((ms + 59999) / 60000));
    session_end(db, "token-1");
    printf("end:    %s\n", session_use(db, "token-1", user, sizeof user) ? "still there" : "gone");
    check(lsmkv_close(db, &err));
    return 0;
}

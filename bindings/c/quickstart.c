/* A tour of the C ABI. Build: cc quickstart.c -llsmkv; run: ./a.out DIRECTORY */
#include <stdio.h>
#include <stdlib.h>

#include <lsmkv.h>

static void check(lsmkv_status status, const lsmkv_err *err) {
    if (status < 0) {
        fprintf(stderr, "lsmkv: %s (status %d)\n", err->msg, (int)status);
        exit(1);
    }
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : ":memory:";
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db;
    lsmkv_err err;
    lsmkv_buf value;
    int64_t deleted;

    printf("lsmkv %s from C, store in %s\n", lsmkv_version(), path);
    check(lsmkv_options_set(options, "sync", "always", &err), &err);
    check(lsmkv_open(path, options, &db, &err), &err);
    lsmkv_options_free(options);

    check(lsmkv_set(db, "greeting", 8, "hello from C", 12, &err), &err);
    printf("  set greeting\n");

    check(lsmkv_get(db, "greeting", 8, &value, &err), &err);
    printf("  get greeting = %.*s\n", (int)value.len, (const char *)value.data);
    lsmkv_buf_release(&value);

    check(lsmkv_del(db, "greeting", 8, &deleted, &err), &err);
    printf("  del greeting: %d key removed\n", (int)deleted);

    if (lsmkv_get(db, "greeting", 8, &value, &err) == LSMKV_NOT_FOUND) {
        printf("  get greeting: not found\n");
    }
    check(lsmkv_set(db, "visitor", 7, "C", 1, &err), &err);
    check(lsmkv_close(db, &err), &err);

    check(lsmkv_open(path, NULL, &db, &err), &err);
    if (lsmkv_get(db, "visitor", 7, &value, &err) == LSMKV_OK) {
        printf("  after reopening: visitor = %.*s\n", (int)value.len, (const char *)value.data);
    }
    lsmkv_buf_release(&value);
    check(lsmkv_close(db, &err), &err);
    return 0;
}

/* A hostile caller: every pointer NULL in turn, absurd lengths, dead handles, no err. */
#include "check.h"

static const size_t HUGE_LENGTHS[] = {(size_t)-1, (size_t)-1 / 2, (size_t)1 << 40};

STORY(every_pointer_may_be_null_in_turn) {
    lsmkv_db *db = check_open(), *other = NULL;
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_buf buf;
    char dst[4];
    size_t len;
    lsmkv_err err;
    STATUS(lsmkv_open(NULL, NULL, &other, &err), LSMKV_MISUSE);
    CHECK(other == NULL && err.code == LSMKV_MISUSE && strstr(err.msg, "path") != NULL);
    STATUS(lsmkv_open(check_dir, NULL, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_open("", NULL, &other, &err), LSMKV_INVALID);
    STATUS(lsmkv_options_set(NULL, "sync", "off", &err), LSMKV_MISUSE);
    STATUS(lsmkv_options_set(options, NULL, "off", &err), LSMKV_MISUSE);
    STATUS(lsmkv_options_set(options, "sync", NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_set(NULL, "k", 1, "v", 1, &err), LSMKV_MISUSE);
    STATUS(lsmkv_set(db, NULL, 1, "v", 1, &err), LSMKV_MISUSE);
    STATUS(lsmkv_set(db, "k", 1, NULL, 1, &err), LSMKV_MISUSE);
    CHECK(strstr(err.msg, "value") != NULL);
    STATUS(lsmkv_set(db, "k", 1, "v", 1, NULL), LSMKV_OK);
    STATUS(lsmkv_get(NULL, "k", 1, &buf, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get(db, NULL, 1, &buf, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get(db, "k", 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get_into(NULL, "k", 1, dst, 4, &len, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get_into(db, NULL, 1, dst, 4, &len, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get_into(db, "k", 1, NULL, 4, &len, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get_into(db, "k", 1, dst, 4, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_exists(NULL, "k", 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_exists(db, NULL, 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_exists(db, "k", 1, NULL, &err), LSMKV_OK);
    STATUS(lsmkv_del(NULL, "k", 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_del(db, NULL, 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_del(db, "k", 1, NULL, &err), LSMKV_OK);
    CHECK(err.code == LSMKV_OK && err.msg[0] == 0);
    STATUS(lsmkv_sync(NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_flush(NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_compact(NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_refresh(NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_resume(NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_close(NULL, &err), LSMKV_OK);
    lsmkv_buf_release(NULL);
    lsmkv_options_free(options);
    STATUS(lsmkv_close(db, &err), LSMKV_OK);
}

STORY(absurd_lengths_are_refused_before_a_byte_is_read) {
    lsmkv_db *db = check_open();
    lsmkv_buf buf;
    size_t i, len;
    lsmkv_err err;
    char dst[4];
    for (i = 0; i < sizeof HUGE_LENGTHS / sizeof *HUGE_LENGTHS; i++) {
        size_t n = HUGE_LENGTHS[i];
        STATUS(lsmkv_set(db, "k", n, "v", 1, &err), LSMKV_TOO_LARGE);
        STATUS(lsmkv_set(db, "k", 1, "v", n, &err), LSMKV_TOO_LARGE);
        STATUS(lsmkv_set(db, NULL, n, "v", 1, &err), LSMKV_TOO_LARGE);
        STATUS(lsmkv_get(db, "k", n, &buf, &err), LSMKV_TOO_LARGE);
        STATUS(lsmkv_get_into(db, "k", n, dst, 4, &len, &err), LSMKV_TOO_LARGE);
        STATUS(lsmkv_exists(db, "k", n, NULL, &err), LSMKV_TOO_LARGE);
        STATUS(lsmkv_del(db, "k", n, NULL, &err), LSMKV_TOO_LARGE);
    }
    STATUS(lsmkv_get(db, "k", 1, &buf, &err), LSMKV_NOT_FOUND);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(outputs_are_empty_after_a_failure) {
    lsmkv_db *db = check_open();
    lsmkv_buf buf;
    size_t len = 77;
    int64_t number = 77;
    memset(&buf, 0x77, sizeof buf);
    STATUS(lsmkv_get(NULL, "k", 1, &buf, NULL), LSMKV_MISUSE);
    CHECK(buf.data == NULL && buf.len == 0 && buf.owner == NULL);
    STATUS(lsmkv_get_into(db, NULL, 5, NULL, 0, &len, NULL), LSMKV_MISUSE);
    CHECK(len == 0);
    STATUS(lsmkv_del(db, NULL, 5, &number, NULL), LSMKV_MISUSE);
    CHECK(number == 0);
    number = 77;
    STATUS(lsmkv_exists(NULL, "k", 1, &number, NULL), LSMKV_MISUSE);
    CHECK(number == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_closed_handle_is_recognised_by_every_function) {
    lsmkv_db *db = check_open();
    lsmkv_buf buf;
    size_t len;
    lsmkv_err err;
    STATUS(lsmkv_close(db, &err), LSMKV_OK);
    STATUS(lsmkv_close(db, &err), LSMKV_MISUSE);
    CHECK(strstr(err.msg, "closed") != NULL);
    STATUS(lsmkv_set(db, "k", 1, "v", 1, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get(db, "k", 1, &buf, &err), LSMKV_MISUSE);
    STATUS(lsmkv_get_into(db, "k", 1, NULL, 0, &len, &err), LSMKV_MISUSE);
    STATUS(lsmkv_del(db, "k", 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_exists(db, "k", 1, NULL, &err), LSMKV_MISUSE);
    STATUS(lsmkv_sync(db, &err), LSMKV_MISUSE);
    STATUS(lsmkv_flush(db, &err), LSMKV_MISUSE);
    STATUS(lsmkv_compact(db, &err), LSMKV_MISUSE);
    STATUS(lsmkv_refresh(db, &err), LSMKV_MISUSE);
    STATUS(lsmkv_resume(db, &err), LSMKV_MISUSE);
    STATUS(lsmkv_close(db, NULL), LSMKV_MISUSE);
}

STORY(an_old_handle_stays_recognised_while_others_come_and_go) {
    lsmkv_db *old = check_open(), *db;
    int i, revived = 0;
    STATUS(lsmkv_close(old, NULL), LSMKV_OK);
    for (i = 0; i < 100; i++) {
        STATUS(lsmkv_open(":memory:", NULL, &db, NULL), LSMKV_OK);
        revived += db == old || lsmkv_sync(old, NULL) != LSMKV_MISUSE;
        STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    }
    CHECK(revived == 0);
}

STORY(something_that_is_no_handle_is_recognised) {
    static union {
        double align;
        char bytes[256];
    } memory;
    lsmkv_db *db = (lsmkv_db *)(void *)(memory.bytes + 128);
    STATUS(lsmkv_sync(db, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_close(db, NULL), LSMKV_MISUSE);
}

STORY(a_directory_that_cannot_be_one_is_an_error_with_advice) {
    lsmkv_db *db = NULL;
    lsmkv_err err;
    CHECK(lsmkv_open("/dev/null/store", NULL, &db, &err) < 0);
    CHECK(db == NULL && err.code < 0 && strstr(err.msg, "/dev/null") != NULL);
    CHECK(lsmkv_open("/dev/null/store", NULL, &db, NULL) < 0);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(every_pointer_may_be_null_in_turn);
    RUN(absurd_lengths_are_refused_before_a_byte_is_read);
    RUN(outputs_are_empty_after_a_failure);
    RUN(a_closed_handle_is_recognised_by_every_function);
    RUN(an_old_handle_stays_recognised_while_others_come_and_go);
    RUN(something_that_is_no_handle_is_recognised);
    RUN(a_directory_that_cannot_be_one_is_an_error_with_advice);
    return END();
}

/* What a C program does with strings, and what is still there after reopening. */
#include <stddef.h>

#include "check.h"

static int value_is(lsmkv_db *db, const char *key, const char *value) {
    lsmkv_buf buf;
    int same;
    if (lsmkv_get(db, key, strlen(key), &buf, NULL) != LSMKV_OK) return 0;
    same = buf.len == strlen(value) && memcmp(buf.data, value, buf.len) == 0;
    lsmkv_buf_release(&buf);
    return same;
}

STORY(the_structs_have_the_layout_bindings_rely_on) {
    CHECK(sizeof(lsmkv_err) == 256);
    CHECK(offsetof(lsmkv_err, os_errno) == 4);
    CHECK(offsetof(lsmkv_err, msg) == 8);
    CHECK(sizeof(lsmkv_buf) == 3 * sizeof(void *));
    CHECK(offsetof(lsmkv_buf, len) == sizeof(void *));
    CHECK(offsetof(lsmkv_buf, owner) == 2 * sizeof(void *));
    CHECK(sizeof(lsmkv_status) == 4);
}

STORY(header_and_library_agree_on_their_version) {
    CHECK(lsmkv_abi_version() == LSMKV_ABI_VERSION);
    CHECK(strcmp(lsmkv_version(), LSMKV_VERSION) == 0);
}

STORY(values_are_set_read_and_deleted_and_survive_reopening) {
    lsmkv_db *db = check_open();
    lsmkv_buf buf;
    int64_t number = -1;
    STATUS(lsmkv_set(db, "a", 1, "one", 3, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, "b", 1, "two", 3, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, "a", 1, "uno", 3, NULL), LSMKV_OK);
    CHECK(value_is(db, "a", "uno"));
    STATUS(lsmkv_del(db, "b", 1, &number, NULL), LSMKV_OK);
    CHECK(number == 1);
    STATUS(lsmkv_del(db, "b", 1, &number, NULL), LSMKV_OK);
    CHECK(number == 0);
    STATUS(lsmkv_get(db, "b", 1, &buf, NULL), LSMKV_NOT_FOUND);
    CHECK(buf.data == NULL && buf.len == 0 && buf.owner == NULL);
    STATUS(lsmkv_exists(db, "a", 1, &number, NULL), LSMKV_OK);
    CHECK(number == 1);
    STATUS(lsmkv_exists(db, "b", 1, &number, NULL), LSMKV_OK);
    CHECK(number == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);

    db = check_open();
    CHECK(value_is(db, "a", "uno"));
    STATUS(lsmkv_get(db, "b", 1, &buf, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(every_byte_is_legal_in_keys_and_values_also_none_at_all) {
    lsmkv_db *db = check_open();
    unsigned char every[256];
    lsmkv_buf buf;
    int i, round;
    for (i = 0; i < 256; i++) every[i] = (unsigned char)i;
    STATUS(lsmkv_set(db, every, 256, every, 256, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, NULL, 0, NULL, 0, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, "a\0b", 3, "with a NUL", 10, NULL), LSMKV_OK);
    for (round = 0; round < 2; round++) {
        STATUS(lsmkv_get(db, every, 256, &buf, NULL), LSMKV_OK);
        CHECK(buf.len == 256 && memcmp(buf.data, every, 256) == 0);
        lsmkv_buf_release(&buf);
        STATUS(lsmkv_get(db, "", 0, &buf, NULL), LSMKV_OK);
        CHECK(buf.len == 0 && buf.data != NULL);
        lsmkv_buf_release(&buf);
        STATUS(lsmkv_get(db, "a\0b", 3, &buf, NULL), LSMKV_OK);
        lsmkv_buf_release(&buf);
        STATUS(lsmkv_get(db, "a", 1, &buf, NULL), LSMKV_NOT_FOUND);
        STATUS(lsmkv_close(db, NULL), LSMKV_OK);
        db = check_open();
    }
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_value_is_copied_into_memory_of_the_caller_if_it_fits) {
    lsmkv_db *db = check_open();
    char dst[8];
    size_t len = 99;
    memset(dst, '.', sizeof dst);
    STATUS(lsmkv_set(db, "k", 1, "hello", 5, NULL), LSMKV_OK);
    STATUS(lsmkv_get_into(db, "k", 1, dst, 4, &len, NULL), LSMKV_TOO_SMALL);
    CHECK(len == 5 && memcmp(dst, "........", 8) == 0);
    STATUS(lsmkv_get_into(db, "k", 1, NULL, 0, &len, NULL), LSMKV_TOO_SMALL);
    CHECK(len == 5);
    STATUS(lsmkv_get_into(db, "k", 1, dst, 5, &len, NULL), LSMKV_OK);
    CHECK(len == 5 && memcmp(dst, "hello...", 8) == 0);
    STATUS(lsmkv_get_into(db, "none", 4, dst, 8, &len, NULL), LSMKV_NOT_FOUND);
    CHECK(len == 0 && memcmp(dst, "hello...", 8) == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_large_value_is_pinned_and_readable_after_close) {
    lsmkv_db *db = check_open();
    size_t size = 1 << 20, i, wrong = 0;
    unsigned char *large = malloc(size);
    lsmkv_buf buf;
    for (i = 0; i < size; i++) large[i] = (unsigned char)(i * 7);
    STATUS(lsmkv_set(db, "large", 5, large, size, NULL), LSMKV_OK);
    STATUS(lsmkv_flush(db, NULL), LSMKV_OK);
    STATUS(lsmkv_get(db, "large", 5, &buf, NULL), LSMKV_OK);
    STATUS(lsmkv_del(db, "large", 5, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    CHECK(buf.len == size);
    for (i = 0; i < buf.len; i++) wrong += buf.data[i] != large[i];
    CHECK(wrong == 0);
    lsmkv_buf_release(&buf);
    lsmkv_buf_release(&buf);
    CHECK(buf.data == NULL && buf.len == 0 && buf.owner == NULL);
    free(large);
}

STORY(upkeep_loses_nothing) {
    lsmkv_db *db = check_open();
    char key[16];
    int i, round, missing = 0;
    for (i = 0; i < 2000; i++) {
        sprintf(key, "key%d", i);
        STATUS(lsmkv_set(db, key, strlen(key), key, strlen(key), NULL), LSMKV_OK);
        if (i == 700) STATUS(lsmkv_flush(db, NULL), LSMKV_OK);
        if (i == 1400) STATUS(lsmkv_sync(db, NULL), LSMKV_OK);
    }
    STATUS(lsmkv_compact(db, NULL), LSMKV_OK);
    STATUS(lsmkv_resume(db, NULL), LSMKV_OK);
    for (round = 0; round < 2; round++) {
        for (i = 0; i < 2000; i++) {
            sprintf(key, "key%d", i);
            missing += !value_is(db, key, key);
        }
        STATUS(lsmkv_close(db, NULL), LSMKV_OK);
        db = check_open();
    }
    CHECK(missing == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_store_in_memory_is_empty_every_time) {
    lsmkv_db *one = NULL, *two = NULL;
    STATUS(lsmkv_open(":memory:", NULL, &one, NULL), LSMKV_OK);
    STATUS(lsmkv_open(":memory:", NULL, &two, NULL), LSMKV_OK);
    STATUS(lsmkv_set(one, "k", 1, "v", 1, NULL), LSMKV_OK);
    CHECK(value_is(one, "k", "v"));
    CHECK(!value_is(two, "k", "v"));
    STATUS(lsmkv_close(one, NULL), LSMKV_OK);
    STATUS(lsmkv_close(two, NULL), LSMKV_OK);
}

STORY(options_are_listed_and_set_by_name) {
    lsmkv_options *options = lsmkv_options_new();
    const char *name, *dflt, *doc;
    lsmkv_err err;
    size_t i;
    for (i = 0; lsmkv_options_info(i, &name, &dflt, &doc) == LSMKV_OK; i++) {
        STATUS(lsmkv_options_set(options, name, dflt, &err), LSMKV_OK);
        CHECK(strlen(doc) > 0);
    }
    CHECK(i > 10);
    STATUS(lsmkv_options_info(i, &name, &dflt, &doc), LSMKV_DONE);
    CHECK(name == NULL && dflt == NULL && doc == NULL);
    STATUS(lsmkv_options_info(0, NULL, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_options_info((size_t)-1, &name, NULL, NULL), LSMKV_DONE);

    STATUS(lsmkv_options_set(options, "write_bufer", "1MiB", &err), LSMKV_INVALID);
    CHECK(strstr(err.msg, "write_buffer") != NULL);
    STATUS(lsmkv_options_set(options, "sync", "never", &err), LSMKV_INVALID);
    CHECK(strstr(err.msg, "always") != NULL && err.code == LSMKV_INVALID);
    STATUS(lsmkv_options_set(options, "sync", "\xff", &err), LSMKV_INVALID);
    lsmkv_options_free(options);
    lsmkv_options_free(NULL);
}

STORY(options_decide_how_a_store_is_opened) {
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db = (lsmkv_db *)&options;
    lsmkv_err err;
    STATUS(lsmkv_options_set(options, "create_if_missing", "off", NULL), LSMKV_OK);
    /* Only a directory can be missing, or exist already. */
    if (check_store == NULL) {
        CHECK(lsmkv_open(check_dir, options, &db, &err) < 0);
        CHECK(db == NULL && strlen(err.msg) > 0);
    }
    STATUS(lsmkv_options_set(options, "create_if_missing", "on", NULL), LSMKV_OK);
    STATUS(lsmkv_options_set(options, "max_key_bytes", "4", NULL), LSMKV_OK);
    STATUS(lsmkv_options_set(options, "max_value_bytes", "8", NULL), LSMKV_OK);
    STATUS(lsmkv_open(check_dir, options, &db, &err), LSMKV_OK);
    STATUS(lsmkv_set(db, "keys", 4, "8 bytes.", 8, &err), LSMKV_OK);
    STATUS(lsmkv_set(db, "5 key", 5, "", 0, &err), LSMKV_TOO_LARGE);
    CHECK(strstr(err.msg, "max_key_bytes") != NULL);
    STATUS(lsmkv_set(db, "k", 1, "9 bytes..", 9, &err), LSMKV_TOO_LARGE);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(lsmkv_options_set(options, "error_if_exists", "on", NULL), LSMKV_OK);
    if (check_store == NULL) CHECK(lsmkv_open(check_dir, options, &db, &err) < 0);
    STATUS(lsmkv_options_set(options, "read_only", "on", NULL), LSMKV_OK);
    STATUS(lsmkv_open(check_dir, options, &db, &err), LSMKV_INVALID);
    CHECK(strstr(err.msg, "contradict") != NULL);
    STATUS(lsmkv_options_set(options, "error_if_exists", "off", NULL), LSMKV_OK);
    STATUS(lsmkv_open(check_dir, options, &db, &err), LSMKV_OK);
    CHECK(value_is(db, "keys", "8 bytes."));
    STATUS(lsmkv_set(db, "k", 1, "v", 1, &err), LSMKV_READONLY);
    STATUS(lsmkv_del(db, "keys", 4, NULL, &err), LSMKV_READONLY);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    lsmkv_options_free(options);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(the_structs_have_the_layout_bindings_rely_on);
    RUN(header_and_library_agree_on_their_version);
    RUN(values_are_set_read_and_deleted_and_survive_reopening);
    RUN(every_byte_is_legal_in_keys_and_values_also_none_at_all);
    RUN(a_value_is_copied_into_memory_of_the_caller_if_it_fits);
    RUN(a_large_value_is_pinned_and_readable_after_close);
    RUN(upkeep_loses_nothing);
    RUN(a_store_in_memory_is_empty_every_time);
    RUN(options_are_listed_and_set_by_name);
    RUN(options_decide_how_a_store_is_opened);
    return END();
}

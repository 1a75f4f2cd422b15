/* What the programs for Redis types share: short forms to call, and answers as text. */
#ifndef LSMKV_TEST_REDIS_H
#define LSMKV_TEST_REDIS_H

#include "check.h"

/* A literal, with any bytes, as pointer and length. */
#define S(text) (text), (sizeof(text) - 1)

static lsmkv_err why;

/* The last answers; each macro below fills its own. */
static int64_t number;
static double decimal;
static lsmkv_buf bytes;
static lsmkv_reply *reply;

static lsmkv_slice slice_of(const char *text) {
    lsmkv_slice slice;
    slice.data = (const uint8_t *)text;
    slice.len = strlen(text);
    return slice;
}

/* Up to 8 slices of words separated by spaces; valid until the next call. */
static const lsmkv_slice *words(const char *text) {
    static char copy[256];
    static lsmkv_slice slices[8];
    char *word;
    int n = 0;
    strcpy(copy, text);
    for (word = strtok(copy, " "); word != NULL && n < 8; word = strtok(NULL, " ")) {
        slices[n++] = slice_of(word);
    }
    return slices;
}

static char shown[4096];

static void show(const char *text, size_t len) {
    size_t at = strlen(shown);
    if (at + len + 1 > sizeof shown) return;
    memcpy(shown + at, text, len);
    shown[at + len] = 0;
}

/* The place of the member of a set that has so many smaller ones: servers have orders of their own. */
static size_t nth(const lsmkv_reply *of, size_t index, size_t smaller) {
    size_t i, j, n = lsmkv_reply_len(of, index);
    for (i = 0; i < n; i++) {
        size_t mine = lsmkv_reply_at(of, index, i), count = 0;
        for (j = 0; j < n; j++) {
            size_t other = lsmkv_reply_at(of, index, j);
            size_t len = lsmkv_reply_len(of, mine), other_len = lsmkv_reply_len(of, other);
            int order = memcmp(lsmkv_reply_str(of, other), lsmkv_reply_str(of, mine),
                               len < other_len ? len : other_len);
            count += order < 0 || (order == 0 && other_len < len);
        }
        if (count == smaller) return i;
    }
    return smaller;
}

static void show_node(const lsmkv_reply *of, size_t index) {
    int32_t kind = lsmkv_reply_kind(of, index);
    char text[64];
    size_t i, n = lsmkv_reply_len(of, index);
    switch (kind) {
    case LSMKV_REPLY_NIL: show("nil", 3); break;
    case LSMKV_REPLY_INT:
        sprintf(text, "%lld", (long long)lsmkv_reply_int(of, index));
        show(text, strlen(text));
        break;
    case LSMKV_REPLY_DOUBLE:
        sprintf(text, "~%g", lsmkv_reply_double(of, index));
        show(text, strlen(text));
        break;
    case LSMKV_REPLY_STATUS: show("+", 1); goto text;
    case LSMKV_REPLY_ERROR: show("!", 1); goto text;
    case LSMKV_REPLY_STR:
    text:
        show((const char *)lsmkv_reply_str(of, index), n);
        break;
    case LSMKV_REPLY_ARRAY:
    case LSMKV_REPLY_MAP:
    case LSMKV_REPLY_SET:
    case LSMKV_REPLY_PUSH:
        show(kind == LSMKV_REPLY_ARRAY  ? "["
             : kind == LSMKV_REPLY_MAP  ? "{"
             : kind == LSMKV_REPLY_PUSH ? "("
                                        : "<",
             1);
        for (i = 0; i < n; i++) {
            if (i > 0) show(" ", 1);
            show_node(of, lsmkv_reply_at(of, index, kind == LSMKV_REPLY_SET ? nth(of, index, i) : i));
        }
        show(kind == LSMKV_REPLY_ARRAY  ? "]"
             : kind == LSMKV_REPLY_MAP  ? "}"
             : kind == LSMKV_REPLY_PUSH ? ")"
                                        : ">",
             1);
        break;
    default: show("?", 1);
    }
}

/* A reply as text: nil, 7, ~1.5, +OK, !ERR text, text, [array], {key value}, <set>. */
static const char *text_of(const lsmkv_reply *of) {
    shown[0] = 0;
    show_node(of, 0);
    return shown;
}

static void check_text(const char *found, const char *wanted, const char *file, int line) {
    if (strcmp(found, wanted) != 0) {
        printf("    %s:%d: %s, not %s\n", file, line, found, wanted);
        check_story_failed = 1;
    }
}

static void check_reply(lsmkv_status st, const char *wanted, const char *text, const char *file,
                        int line) {
    check_status(st, LSMKV_OK, text, file, line);
    if (st == LSMKV_OK) check_text(text_of(reply), wanted, file, line);
    lsmkv_reply_free(reply);
    reply = NULL;
}

static void check_bytes(lsmkv_status st, const char *wanted, const char *text, const char *file,
                        int line) {
    check_status(st, LSMKV_OK, text, file, line);
    if (bytes.len != strlen(wanted) || memcmp(bytes.data, wanted, bytes.len) != 0) {
        printf("    %s:%d: %.*s, not %s\n", file, line, (int)bytes.len, (const char *)bytes.data,
               wanted);
        check_story_failed = 1;
    }
    lsmkv_buf_release(&bytes);
}

static void check_number(lsmkv_status st, int64_t wanted, const char *text, const char *file,
                         int line) {
    check_status(st, LSMKV_OK, text, file, line);
    if (number != wanted) {
        printf("    %s:%d: %s gave %lld, not %lld\n", file, line, text, (long long)number,
               (long long)wanted);
        check_story_failed = 1;
    }
    number = -99;
}

static void check_decimal(lsmkv_status st, double wanted, const char *text, const char *file,
                          int line) {
    check_status(st, LSMKV_OK, text, file, line);
    if (decimal != wanted) {
        printf("    %s:%d: %s gave %g, not %g\n", file, line, text, decimal, wanted);
        check_story_failed = 1;
    }
    decimal = -99;
}

/* A time that was set a moment ago: what is wanted, or a little less. */
static void check_left(lsmkv_status st, int64_t wanted, const char *text, const char *file, int line) {
    check_status(st, LSMKV_OK, text, file, line);
    if (number > wanted || number < wanted - wanted / 2) {
        printf("    %s:%d: %s gave %lld, not about %lld\n", file, line, text, (long long)number,
               (long long)wanted);
        check_story_failed = 1;
    }
}

/* Each: the call is OK and put into `number`, `decimal`, `bytes` or `reply` what is wanted. */
#define NUMBER(call, wanted) check_number((call), (wanted), #call, __FILE__, __LINE__)
#define LEFT(call, wanted) check_left((call), (wanted), #call, __FILE__, __LINE__)
#define DECIMAL(call, wanted) check_decimal((call), (wanted), #call, __FILE__, __LINE__)
#define BYTES(call, wanted) check_bytes((call), (wanted), #call, __FILE__, __LINE__)
#define REPLY(call, wanted) check_reply((call), (wanted), #call, __FILE__, __LINE__)

/* Any command by name, its words separated by spaces. */
static lsmkv_status command(lsmkv_db *db, const char *line) {
    const lsmkv_slice *given = words(line);
    const uint8_t *argv[8];
    size_t lens[8], n = 1;
    const char *c;
    for (c = line; *c; c++) n += *c == ' ';
    for (c = line; (size_t)(c - line) < n; c++) {
        argv[c - line] = given[c - line].data;
        lens[c - line] = given[c - line].len;
    }
    return lsmkv_command(db, n, argv, lens, &reply, &why);
}

/* The store is closed, and opened again: what was written must be there. */
static lsmkv_db *reopened(lsmkv_db *db) {
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    return check_open();
}

#endif

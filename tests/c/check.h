/*
 * The frame of the C test programs. A program is a list of stories:
 *
 *     STORY(a_value_is_what_was_last_set) { CHECK(...); }
 *     int main(int argc, char **argv) { BEGIN(argc, argv); RUN(a_value...); return END(); }
 *
 * Each story gets a directory of its own below the scratch directory in argv[1].
 */
#ifndef LSMKV_TEST_CHECK_H
#define LSMKV_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lsmkv.h"

static const char *check_scratch;
static char check_dir[4096];
static int check_story_failed, check_passed, check_failed;

static void check_true(int holds, const char *text, const char *file, int line) {
    if (!holds) {
        printf("    %s:%d: %s does not hold\n", file, line, text);
        check_story_failed = 1;
    }
}

static void check_status(lsmkv_status found, lsmkv_status wanted, const char *text,
                         const char *file, int line) {
    if (found != wanted) {
        printf("    %s:%d: %s gave %d, not %d\n", file, line, text, (int)found, (int)wanted);
        check_story_failed = 1;
    }
}

#define STORY(name) static void name(void)
#define CHECK(condition) check_true((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define STATUS(call, wanted) check_status((call), (wanted), #call, __FILE__, __LINE__)
#define RUN(name) check_run(#name, name)

static void check_run(const char *name, void (*story)(void)) {
    check_story_failed = 0;
    snprintf(check_dir, sizeof check_dir, "%s/%s", check_scratch, name);
    story();
    printf("%s %s\n", check_story_failed ? "FAILED" : "ok", name);
    fflush(stdout);
    if (check_story_failed) {
        check_failed++;
    } else {
        check_passed++;
    }
}

#define BEGIN(argc, argv) check_begin((argc), (argv))

static void check_begin(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s SCRATCH_DIRECTORY\n", argv[0]);
        exit(2);
    }
    check_scratch = argv[1];
    mkdir(check_scratch, 0700);
}

#define END() check_end()

static int check_end(void) {
    printf("%d passed, %d failed, 0 skipped\n", check_passed, check_failed);
    return check_failed ? 1 : 0;
}

#ifndef __cplusplus
/* What most stories in C begin with: the story's own store, open. */
static lsmkv_db *check_open(void) {
    lsmkv_db *db = NULL;
    lsmkv_err err;
    if (lsmkv_open(check_dir, NULL, &db, &err) != LSMKV_OK) {
        printf("    open %s: %s\n", check_dir, err.msg);
        check_story_failed = 1;
        exit(check_end());
    }
    return db;
}
#endif

#endif

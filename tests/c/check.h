/*
 * The frame of the C test programs. A program is a list of stories:
 *
 *     STORY(a_value_is_what_was_last_set) { CHECK(...); }
 *     int main(int argc, char **argv) { BEGIN(argc, argv); RUN(a_value...); return END(); }
 *
 * Each story gets a directory of its own below the scratch directory in argv[1]. If the environment
 * names another place (place.h), the stories use the store there instead, each after a FLUSHALL. A story that needs what that store does not offer ends at the first call that
 * says so, by LSMKV_UNSUPPORTED; it is skipped and counted.
 */
#ifndef LSMKV_TEST_CHECK_H
#define LSMKV_TEST_CHECK_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "place.h"

static const char *check_scratch;
static char check_dir[4096];
static const char *check_store;
static int check_story_failed, check_passed, check_failed, check_skipped, check_cluster, check_shared;

/* Leaves a story after a call that said that the store does not offer it. */
#ifdef __cplusplus
struct check_leaving {};
static void check_skip(const char *why) {
    printf("    %s\n", why);
    throw check_leaving();
}
#else
static jmp_buf check_leave;
static void check_skip(const char *why) {
    printf("    %s\n", why);
    longjmp(check_leave, 1);
}
#endif

static void check_true(int holds, const char *text, const char *file, int line) {
    if (!holds) {
        printf("    %s:%d: %s does not hold\n", file, line, text);
        check_story_failed = 1;
    }
}

static void check_status(lsmkv_status found, lsmkv_status wanted, const char *text,
                         const char *file, int line) {
    if (check_store != NULL && found == LSMKV_UNSUPPORTED && found != wanted) check_skip(text);
    if (found != wanted) {
        printf("    %s:%d: %s gave %d, not %d\n", file, line, text, (int)found, (int)wanted);
        check_story_failed = 1;
    }
}

#define STORY(name) static void name(void)
#define CHECK(condition) check_true((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define STATUS(call, wanted) check_status((call), (wanted), #call, __FILE__, __LINE__)
#define RUN(name) check_run(#name, name)

/* Removes what the story before has left in a store that all share. */
static void check_empty_store(void) {
    static const char *const commands[][2] = {{"FLUSHALL", "SYNC"}, {"SCRIPT", "FLUSH"}};
    lsmkv_db *db = NULL;
    lsmkv_err err;
    size_t i;
    snprintf(check_dir, sizeof check_dir, "%s", check_store);
    if (lsmkv_open(check_store, NULL, &db, &err) != LSMKV_OK) {
        printf("    open %s: %s\n", check_store, err.msg);
        exit(1);
    }
    for (i = 0; i < 2; i++) {
        const uint8_t *argv[2];
        size_t lens[2];
        lsmkv_reply *done = NULL;
        argv[0] = (const uint8_t *)commands[i][0];
        argv[1] = (const uint8_t *)commands[i][1];
        lens[0] = strlen(commands[i][0]);
        lens[1] = strlen(commands[i][1]);
        if (lsmkv_command(db, 2, argv, lens, &done, &err) != LSMKV_OK) {
            printf("    %s %s: %s\n", commands[i][0], check_store, err.msg);
            exit(1);
        }
        lsmkv_reply_free(done);
    }
    lsmkv_close(db, NULL);
}

/* Runs a story. Returns whether it ran to its end. */
static int check_whole(void (*story)(void)) {
#ifdef __cplusplus
    try {
        story();
    } catch (const check_leaving &) {
        return 0;
    } catch (const lsmkv::Error &error) {
        if (check_store != NULL && error.code() == LSMKV_UNSUPPORTED) {
            printf("    %s\n", error.what());
            return 0;
        }
        printf("    it threw: %s\n", error.what());
        check_story_failed = 1;
    }
#else
    if (setjmp(check_leave) != 0) return 0;
    story();
#endif
    return 1;
}

static void check_run(const char *name, void (*story)(void)) {
    check_story_failed = 0;
    snprintf(check_dir, sizeof check_dir, "%s/%s", check_scratch, name);
    if (check_store != NULL) check_empty_store();
    /* A check that failed before is no skip. */
    if (!check_whole(story) && !check_story_failed) {
        printf("skipped %s\n", name);
        check_skipped++;
        return;
    }
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
    check_store = getenv("LSMKV_TEST_STORE");
    check_cluster = check_store != NULL && strstr(check_store, "-cluster://") != NULL;
    check_shared = check_is_shared();
    mkdir(check_scratch, 0700);
}

#define END() check_end()

static int check_end(void) {
    printf("%d passed, %d failed, %d skipped\n", check_passed, check_failed, check_skipped);
    return check_failed ? 1 : 0;
}

#ifndef __cplusplus
/* What most stories in C begin with: the story's own store, open. */
static lsmkv_db *check_open(void) {
    lsmkv_db *db = NULL;
    lsmkv_err err;
    if (lsmkv_open(check_dir, NULL, &db, &err) != LSMKV_OK) {
        printf("    open %s: %s\n", check_dir, err.msg);
        check_failed++;
        exit(check_end());
    }
    return db;
}
#endif

#endif

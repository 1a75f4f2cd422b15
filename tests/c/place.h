/*
 * Where the test programs keep their data. The environment names a store in LSMKV_TEST_STORE, such as
 * unix:///path; with LSMKV_TEST_SHARED it is a directory that another process holds, and lsmkv_open
 * opens it with shared=on here. Without the two every story has a directory of its own.
 *
 * It stands before the header of C++, whose functions call lsmkv_open.
 */
#ifndef LSMKV_TEST_PLACE_H
#define LSMKV_TEST_PLACE_H

#include <stdlib.h>
#include <string.h>

#include "lsmkv.h"

static int check_is_shared(void) { return getenv("LSMKV_TEST_SHARED") != NULL; }

/* Opens a store. One that processes share needs the option for it, except to read beside the holder. */
static lsmkv_status check_place_open(const char *path, const lsmkv_options *given, lsmkv_db **out,
                                     lsmkv_err *err) {
    const char *store = getenv("LSMKV_TEST_STORE");
    lsmkv_options *own, *options;
    lsmkv_err told;
    lsmkv_status st;
    if (!check_is_shared() || path == NULL || strcmp(path, store) != 0) {
        return lsmkv_open(path, given, out, err);
    }
    own = given == NULL ? lsmkv_options_new() : NULL;
    /* The stories own the options that they give. */
    options = own != NULL ? own : (lsmkv_options *)given;
    lsmkv_options_set(options, "shared", "on", NULL);
    st = lsmkv_open(path, options, out, err != NULL ? err : &told);
    if (st == LSMKV_INVALID) {
        lsmkv_options_set(options, "shared", "off", NULL);
        st = lsmkv_open(path, options, out, err);
    }
    lsmkv_options_free(own);
    return st;
}

#define lsmkv_open check_place_open

#endif

/* Bytes that were changed on disk: an error that says where, never an early end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <unistd.h>

#include "redis.h"

enum { KEYS = 20000 };

static void fill(void) {
    lsmkv_db *db = check_open();
    char key[32];
    int i;
    for (i = 0; i < KEYS; i++) {
        sprintf(key, "key%06d", i);
        if (lsmkv_set(db, key, strlen(key), key, strlen(key), &why) != LSMKV_OK) break;
    }
    CHECK(i == KEYS);
    STATUS(lsmkv_compact(db, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* Changes a byte in the middle of the largest table. */
static void damage(void) {
    char path[8192], largest[8192] = "";
    struct dirent *entry;
    struct stat about;
    DIR *dir = opendir(check_dir);
    off_t size = 0;
    FILE *file;
    int byte;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strstr(entry->d_name, ".table") == NULL) continue;
        snprintf(path, sizeof path, "%s/%s", check_dir, entry->d_name);
        if (stat(path, &about) == 0 && about.st_size > size) {
            size = about.st_size;
            strcpy(largest, path);
        }
    }
    if (dir != NULL) closedir(dir);
    file = fopen(largest, "r+b");
    CHECK(file != NULL && size > 10000);
    if (file == NULL) return;
    fseek(file, size / 2, SEEK_SET);
    byte = fgetc(file);
    fseek(file, size / 2, SEEK_SET);
    fputc(byte ^ 0x40, file);
    fclose(file);
}

STORY(a_damaged_block_is_an_error_of_the_iterator_and_stays_one) {
    lsmkv_db *db;
    lsmkv_iter *iter = NULL;
    lsmkv_status st;
    int found = 0, again;
    fill();
    damage();
    db = check_open();
    STATUS(lsmkv_iter_new(db, NULL, NULL, 0, &iter, &why), LSMKV_OK);
    while ((st = lsmkv_iter_next(iter, NULL, NULL, NULL, &why)) == LSMKV_OK) found++;
    CHECK(st == LSMKV_CORRUPT && found > 0 && found < KEYS);
    CHECK(strstr(why.msg, ".table") != NULL && strstr(why.msg, "offset") != NULL);
    for (again = 0; again < 3; again++) {
        STATUS(lsmkv_iter_next(iter, NULL, NULL, NULL, NULL), LSMKV_CORRUPT);
        STATUS(lsmkv_iter_next_chunk(iter, 10, 1000, &reply, NULL), LSMKV_CORRUPT);
    }
    lsmkv_iter_free(iter);

    /* In chunks the keys before the damage come first. */
    STATUS(lsmkv_iter_new(db, NULL, NULL, 0, &iter, &why), LSMKV_OK);
    again = 0;
    while ((st = lsmkv_iter_next_chunk(iter, 1000, 1 << 20, &reply, &why)) == LSMKV_OK) {
        again += (int)lsmkv_reply_len(reply, 0) / 2;
        lsmkv_reply_free(reply);
    }
    CHECK(st == LSMKV_CORRUPT && again == found && reply == NULL);
    lsmkv_iter_free(iter);
    STATUS(lsmkv_keys(db, S("*"), &reply, &why), LSMKV_CORRUPT);
    CHECK(reply == NULL);
    st = lsmkv_check(db, &reply, &why);
    CHECK(st == LSMKV_CORRUPT || lsmkv_reply_len(reply, 0) > 0);
    lsmkv_reply_free(reply);
    lsmkv_close(db, NULL);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_damaged_block_is_an_error_of_the_iterator_and_stays_one);
    return END();
}

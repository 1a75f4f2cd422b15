/* A process that opens and closes stores for ever keeps what it had: descriptors, threads, memory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "redis.h"

static long entries(const char *dir) {
    DIR *open = opendir(dir);
    long n = 0;
    while (open != NULL && readdir(open) != NULL) n++;
    if (open != NULL) closedir(open);
    return n;
}

static long resident_pages(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;
    if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) resident = -1;
    if (file != NULL) fclose(file);
    return resident;
}

/* One life of a store, with one handle of every kind. */
static void live(const char *path) {
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db = NULL, *all[5];
    lsmkv_iter *iter = NULL;
    int i;
    STATUS(lsmkv_options_set(options, "sync", "off", NULL), LSMKV_OK);
    STATUS(lsmkv_options_set(options, "write_buffer", "1MiB", NULL), LSMKV_OK);
    STATUS(lsmkv_open(path, options, &db, &why), LSMKV_OK);
    lsmkv_options_free(options);
    STATUS(lsmkv_hset(db, S("h"), S("f"), S("v"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_snapshot(db, &all[0], NULL), LSMKV_OK);
    STATUS(lsmkv_begin(db, &all[1], NULL), LSMKV_OK);
    STATUS(lsmkv_batch(db, 0, &all[2], NULL), LSMKV_OK);
    STATUS(lsmkv_session(db, &all[3], NULL), LSMKV_OK);
    STATUS(lsmkv_select(db, 1, &all[4], NULL), LSMKV_OK);
    STATUS(lsmkv_iter_new(db, NULL, NULL, 0, &iter, NULL), LSMKV_OK);
    STATUS(lsmkv_set(all[1], S("t"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_set(all[2], S("b"), S("v"), NULL), LSMKV_OK);
    REPLY(lsmkv_hgetall(all[0], S("h"), &reply, NULL), "{f v}");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    for (i = 0; i < 5; i++) STATUS(lsmkv_close(all[i], NULL), LSMKV_OK);
    lsmkv_iter_free(iter);
}

/* The threads of this process. The kernel removes a thread a moment after it was joined, so the number
   is taken when it no longer falls. */
static long threads_left(void) {
    long least = entries("/proc/self/task");
    int i;
    for (i = 0; i < 20; i++) {
        struct timespec pause = {0, 5 * 1000 * 1000};
        long now;
        nanosleep(&pause, NULL);
        now = entries("/proc/self/task");
        if (now < least) least = now;
    }
    return least;
}

static void flat_over(const char *path, int lives) {
    long descriptors = 0, threads = 0, resident = 0;
    int i;
    for (i = 0; i < lives; i++) {
        live(path);
        if (i == lives / 5) {
            descriptors = entries("/proc/self/fd");
            threads = threads_left();
            resident = resident_pages();
        }
    }
    printf("    %d lives: descriptors %ld -> %ld, threads %ld -> %ld, resident pages %ld -> %ld\n", lives,
           descriptors, entries("/proc/self/fd"), threads, threads_left(), resident,
           resident_pages());
    CHECK(entries("/proc/self/fd") == descriptors);
    CHECK(threads_left() == threads);
    /* The shells of closed handles rest and are not reused at once: some of the growth is theirs. */
    CHECK(resident_pages() < resident + 1024);
}

static int lives(void) {
    const char *given = getenv("LSMKV_TEST_LIVES");
    return given != NULL ? atoi(given) : 1000;
}

STORY(stores_in_memory_come_and_go_without_a_trace) { flat_over(":memory:", lives()); }

STORY(a_store_on_disk_comes_and_goes_without_a_trace) { flat_over(check_dir, lives() / 4); }

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(stores_in_memory_come_and_go_without_a_trace);
    RUN(a_store_on_disk_comes_and_goes_without_a_trace);
    return END();
}

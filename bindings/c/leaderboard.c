/*
 * A leaderboard: a sorted set of players and their points gives the best ten and a player's rank.
 * Build: cc leaderboard.c -llsmkv; run: ./a.out DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lsmkv.h>

#define BOARD "board", 5

static lsmkv_err err;

static lsmkv_status check(lsmkv_status status) {
    if (status < 0) {
        fprintf(stderr, "lsmkv: %s (status %d)\n", err.msg, (int)status);
        exit(1);
    }
    return status;
}

static void score(lsmkv_db *db, const char *player, double points) {
    double total;
    check(lsmkv_zincrby(db, BOARD, points, player, strlen(player), &total, &err));
    printf("%-6s +%-3g = %g\n", player, points, total);
}

static void show_best(lsmkv_db *db, int n) {
    lsmkv_reply *reply;
    size_t i, count;
    check(lsmkv_zrange_opt(db, BOARD, 0, n - 1, LSMKV_REV | LSMKV_WITHSCORES, &reply, &err));
    /* Members and scores alternate. */
    count = lsmkv_reply_len(reply, 0);
    for (i = 0; i + 1 < count; i += 2) {
        size_t member = lsmkv_reply_at(reply, 0, i);
        printf("%d. %-6.*s %g\n", (int)(i / 2 + 1), (int)lsmkv_reply_len(reply, member),
               (const char *)lsmkv_reply_str(reply, member),
               lsmkv_reply_double(reply, lsmkv_reply_at(reply, 0, i + 1)));
    }
    lsmkv_reply_free(reply);
}

static void show_place(lsmkv_db *db, const char *player) {
    int64_t before;
    if (check(lsmkv_zrevrank(db, BOARD, player, strlen(player), &before, &err)) == LSMKV_OK) {
        printf("%s is number %d\n", player, (int)before + 1);
    } else {
        printf("%s does not play\n", player);
    }
}

int main(int argc, char **argv) {
    lsmkv_db *db;
    int64_t n;

    check(lsmkv_open(argc > 1 ? argv[1] : ":memory:", NULL, &db, &err));
    score(db, "ada", 30);
    score(db, "bob", 25);
    score(db, "cyd", 40);
    score(db, "bob", 20);
    show_best(db, 10);
    show_place(db, "ada");
    show_place(db, "eve");
    check(lsmkv_zcount(db, BOARD, 40, 1e300, 0, &n, &err));
    printf("%d players have 40 points or more\n", (int)n);
    check(lsmkv_close(db, &err));
    return 0;
}

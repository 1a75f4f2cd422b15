/* Commands by name, one and several in one call, and what a reply looks like. */
#include <stddef.h>

#include "redis.h"

STORY(a_reply_has_the_layout_bindings_rely_on) {
    CHECK(sizeof(lsmkv_node) == 32);
    CHECK(offsetof(lsmkv_node, flags) == 4);
    CHECK(offsetof(lsmkv_node, num) == 8);
    CHECK(offsetof(lsmkv_node, off) == 16);
    CHECK(offsetof(lsmkv_node, len) == 24);
    CHECK(sizeof(lsmkv_slice) == 2 * sizeof(void *));
    CHECK(offsetof(lsmkv_slice, len) == sizeof(void *));
}

STORY(any_command_is_run_by_name) {
    lsmkv_db *db = check_open();
    REPLY(command(db, "SET k 5"), "+OK");
    REPLY(command(db, "incr k"), "6");
    REPLY(command(db, "GET k"), "6");
    REPLY(command(db, "GET no"), "nil");
    REPLY(command(db, "RPUSH k x"),
          "!WRONGTYPE Operation against a key holding the wrong kind of value");
    REPLY(command(db, "HSET h a 1 b 2"), "2");
    REPLY(command(db, "HGETALL h"), "{a 1 b 2}");
    REPLY(command(db, "SADD s m"), "1");
    REPLY(command(db, "SMEMBERS s"), "<m>");
    REPLY(command(db, "ZADD z 1.5 m 2 n"), "2");
    REPLY(command(db, "ZRANGE z 0 -1 WITHSCORES"), "[m ~1.5 n ~2]");
    REPLY(command(db, "NOSUCH a"), "!ERR unknown command 'NOSUCH', with args beginning with: 'a' ");
    REPLY(command(db, "GET"), "!ERR wrong number of arguments for 'get' command");
    STATUS(command(db, "MULTI"), LSMKV_MISUSE);
    STATUS(command(db, "WATCH k"), LSMKV_MISUSE);
    STATUS(command(db, "SELECT 1"), LSMKV_MISUSE);
    CHECK(reply == NULL && strstr(why.msg, "session") != NULL);
    STATUS(lsmkv_command(db, 0, NULL, NULL, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_reply_is_seen_at_once_and_outlives_the_store) {
    lsmkv_db *db = check_open();
    const lsmkv_node *nodes = NULL;
    const uint8_t *arena = NULL;
    size_t n = 0, arena_len = 0;
    NUMBER(lsmkv_rpush_many(db, S("l"), words("aa b"), 2, &number, NULL), 2);
    STATUS(lsmkv_lrange(db, S("l"), 0, -1, &reply, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(lsmkv_reply_view(reply, &nodes, &n, &arena, &arena_len), LSMKV_OK);
    CHECK(n == 3 && arena_len == 3 && memcmp(arena, "aab", 3) == 0);
    CHECK(nodes[0].kind == LSMKV_REPLY_ARRAY && nodes[0].num == 2 && nodes[0].off == 3);
    CHECK(nodes[1].kind == LSMKV_REPLY_STR && nodes[1].off == 0 && nodes[1].len == 2);
    CHECK(nodes[2].kind == LSMKV_REPLY_STR && nodes[2].off == 2 && nodes[2].len == 1);
    STATUS(lsmkv_reply_view(reply, NULL, NULL, NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_reply_view(NULL, &nodes, &n, &arena, &arena_len), LSMKV_MISUSE);
    CHECK(nodes == NULL && n == 0 && arena == NULL && arena_len == 0);
    CHECK(lsmkv_reply_kind(reply, 3) == -1 && lsmkv_reply_kind(NULL, 0) == -1);
    CHECK(lsmkv_reply_at(reply, 0, 2) == (size_t)-1 && lsmkv_reply_at(reply, 1, 0) == (size_t)-1);
    CHECK(lsmkv_reply_str(reply, 0) == NULL && lsmkv_reply_int(reply, 1) == 0);
    CHECK(lsmkv_reply_double(reply, 1) == 0 && lsmkv_reply_len(reply, 9) == 0);
    lsmkv_reply_free(reply);
    lsmkv_reply_free(NULL);
}

/* Packs lines of words. */
static size_t pack(char *into, const char *const *lines, size_t count) {
    size_t at = 0, i;
    for (i = 0; i < count; i++) {
        const lsmkv_slice *given = words(lines[i]);
        uint32_t n = 1, j, len;
        const char *c;
        for (c = lines[i]; *c; c++) n += *c == ' ';
        memcpy(into + at, &n, 4), at += 4;
        for (j = 0; j < n; j++) {
            len = (uint32_t)given[j].len;
            memcpy(into + at, &len, 4), at += 4;
            memcpy(into + at, given[j].data, len), at += len;
        }
    }
    return at;
}

STORY(several_commands_are_run_in_one_call) {
    lsmkv_db *db = check_open();
    static const char *const LINES[] = {"SET k 1", "INCR k", "GET no", "RPUSH l a b", "LRANGE l 0 -1",
                                        "NOSUCH"};
    char packed[512];
    size_t len = pack(packed, LINES, 6);
    lsmkv_db *session = NULL;
    REPLY(lsmkv_command_packed(db, packed, len, &reply, NULL),
          "[+OK 2 nil 2 [a b] !ERR unknown command 'NOSUCH', with args beginning with: ]");
    REPLY(lsmkv_command_packed(db, NULL, 0, &reply, NULL), "[]");
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    REPLY(lsmkv_command_packed(session, packed, len, &reply, NULL),
          "[+OK 2 nil 4 [a b a b] !ERR unknown command 'NOSUCH', with args beginning with: ]");
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_transaction_fits_into_one_call) {
    lsmkv_db *db = check_open();
    static const char *const LINES[] = {"MULTI",       "INCR {t}a", "INCR {t}b", "EXEC",
                                        "MULTI",       "INCR {t}a"};
    char packed[512];
    size_t len = pack(packed, LINES, 6);
    REPLY(lsmkv_command_packed(db, packed, len, &reply, NULL),
          "[+OK +QUEUED +QUEUED [1 1] +OK +QUEUED]");
    db = reopened(db);
    REPLY(lsmkv_mget_many(db, words("{t}a {t}b"), 2, &reply, NULL), "[1 1]");
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* Lengths of up to 1 TiB were believed, and the bytes behind the block read. */
STORY(lengths_beyond_all_memory_are_refused) {
    lsmkv_db *db = check_open();
    /* Many arguments without a byte: every zero behind the block reads as one more. */
    static unsigned char block[4096] = {0xff, 0xff, 0xff, 0x7f};
    int shift;
    for (shift = 33; shift < 64; shift++) {
        STATUS(lsmkv_command_packed(db, block, (size_t)1 << shift, &reply, &why), LSMKV_TOO_LARGE);
        CHECK(reply == NULL);
    }
    STATUS(lsmkv_command_packed(db, block, SIZE_MAX, &reply, &why), LSMKV_TOO_LARGE);
    STATUS(lsmkv_command_packed(db, block, sizeof block, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(malformed_packed_commands_run_nothing) {
    lsmkv_db *db = check_open();
    static const char *const LINES[] = {"INCR k", "INCR k"};
    char packed[512], broken[512];
    size_t len = pack(packed, LINES, 2), cut, i;
    for (cut = 1; cut < len; cut++) {
        /* A cut between commands leaves one that is whole. */
        if (cut == len / 2) continue;
        STATUS(lsmkv_command_packed(db, packed, cut, &reply, &why), LSMKV_INVALID);
        CHECK(reply == NULL);
    }
    for (i = 0; i + 4 <= len; i++) {
        memcpy(broken, packed, len);
        memset(broken + i, 0xff, 4);
        if (lsmkv_command_packed(db, broken, len, &reply, NULL) == LSMKV_OK) {
            lsmkv_reply_free(reply);
        }
    }
    STATUS(lsmkv_del(db, S("k"), NULL, NULL), LSMKV_OK);
    memcpy(broken, packed, len);
    memset(broken, 0, 4);
    STATUS(lsmkv_command_packed(db, broken, len, &reply, &why), LSMKV_INVALID);
    NUMBER(lsmkv_exists(db, S("k"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_session_runs_what_it_queued_unless_a_watched_key_changed) {
    lsmkv_db *db = check_open(), *session = NULL;
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("{t}a"), S("1"), NULL), LSMKV_OK);
    REPLY(command(session, "WATCH {t}a {t}b"), "+OK");
    BYTES(lsmkv_get(session, S("{t}a"), &bytes, NULL), "1");
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "INCR {t}a"), "+QUEUED");
    REPLY(command(session, "PING"), "+QUEUED");
    STATUS(lsmkv_get(session, S("{t}a"), &bytes, &why), LSMKV_MISUSE);
    REPLY(command(session, "EXEC"), "[2 +PONG]");
    REPLY(command(session, "WATCH {t}a"), "+OK");
    STATUS(lsmkv_set(db, S("{t}a"), S("7"), NULL), LSMKV_OK);
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "INCR {t}a"), "+QUEUED");
    REPLY(command(session, "EXEC"), "nil");
    /* A key is watched no more after UNWATCH, and DISCARD runs nothing. */
    REPLY(command(session, "WATCH {t}a"), "+OK");
    STATUS(lsmkv_set(db, S("{t}a"), S("8"), NULL), LSMKV_OK);
    REPLY(command(session, "UNWATCH"), "+OK");
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "PING"), "+QUEUED");
    REPLY(command(session, "INCR {t}a"), "+QUEUED");
    REPLY(command(session, "EXEC"), "[+PONG 9]");
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "MULTI"), "!ERR MULTI calls can not be nested");
    REPLY(command(session, "INCR {t}a"), "+QUEUED");
    REPLY(command(session, "DISCARD"), "+OK");
    REPLY(command(session, "EXEC"), "!ERR EXEC without MULTI");
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "EXEC"), "[]");
    BYTES(lsmkv_get(session, S("{t}a"), &bytes, NULL), "9");
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_session_remembers_between_commands) {
    lsmkv_db *db = check_open(), *session = NULL, *one = NULL;
    STATUS(lsmkv_select(db, 1, &one, NULL), LSMKV_OK);
    STATUS(lsmkv_close(one, NULL), LSMKV_OK);
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    REPLY(command(session, "PING"), "+PONG");
    REPLY(command(session, "SELECT 1"), "+OK");
    STATUS(lsmkv_set(session, S("k"), S("1"), NULL), LSMKV_OK);
    NUMBER(lsmkv_exists(db, S("k"), &number, NULL), 0);
    REPLY(command(session, "WATCH k"), "+OK");
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "INCR k"), "+QUEUED");
    STATUS(lsmkv_get(session, S("k"), &bytes, &why), LSMKV_MISUSE);
    REPLY(command(session, "EXEC"), "[2]");
    BYTES(lsmkv_get(session, S("k"), &bytes, NULL), "2");
    REPLY(command(session, "WATCH k"), "+OK");
    REPLY(command(session, "MULTI"), "+OK");
    REPLY(command(session, "INCR k"), "+QUEUED");
    NUMBER(lsmkv_move(db, S("no"), 1, &number, NULL), 0);
    STATUS(lsmkv_swapdb(db, 1, 2, NULL), LSMKV_OK);
    REPLY(command(session, "EXEC"), "nil");
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_reply_has_the_layout_bindings_rely_on);
    RUN(any_command_is_run_by_name);
    RUN(a_reply_is_seen_at_once_and_outlives_the_store);
    RUN(several_commands_are_run_in_one_call);
    RUN(a_transaction_fits_into_one_call);
    RUN(lengths_beyond_all_memory_are_refused);
    RUN(malformed_packed_commands_run_nothing);
    RUN(a_session_runs_what_it_queued_unless_a_watched_key_changed);
    RUN(a_session_remembers_between_commands);
    return END();
}

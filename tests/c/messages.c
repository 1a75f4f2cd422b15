/* Messages and blocking commands: subscribers, waits, and pops that another thread serves. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "redis.h"

static lsmkv_db *session_of(lsmkv_db *db) {
    lsmkv_db *session = NULL;
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    return session;
}

/* Runs a command of words separated by spaces, and frees its reply. */
static void say(lsmkv_db *db, const char *text) {
    const lsmkv_slice *slices = words(text);
    const uint8_t *argv[8];
    size_t lens[8], n = 0;
    const char *at;
    for (at = text; n < 8; at++) {
        argv[n] = slices[n].data;
        lens[n] = slices[n].len;
        n++;
        at = strchr(at, ' ');
        if (at == NULL) break;
    }
    STATUS(lsmkv_command(db, n, argv, lens, &reply, NULL), LSMKV_OK);
    lsmkv_reply_free(reply);
    reply = NULL;
}

static int readable(int fd) {
    struct pollfd it = {0};
    it.fd = fd;
    it.events = POLLIN;
    return poll(&it, 1, 0) == 1;
}

/* A message of another process takes its time. */
#define PATIENCE (check_store == NULL ? 0u : 5000u)

/* A node of a cluster counts its own subscribers alone. */
#define RECEIVERS(call, wanted) \
    if (check_cluster) { \
        STATUS(call, LSMKV_OK); \
    } else { \
        NUMBER(call, wanted); \
    }

STORY(a_session_receives_messages) {
    lsmkv_db *db = check_open(), *session = session_of(db);
    int fd = 0;
    /* On a cluster a session is at one node: that of its first shard channel. */
    say(session, "SSUBSCRIBE shard");
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_TIMEOUT);
    say(session, "SUBSCRIBE news");
    say(session, "PSUBSCRIBE n*");
    STATUS(lsmkv_session_fd(session, &fd, NULL), LSMKV_OK);
    CHECK(fd > 0 && !readable(fd));
    RECEIVERS(lsmkv_publish(db, S("news"), S("hello"), &number, NULL), 2);
    CHECK(check_store != NULL || readable(fd));
    STATUS(lsmkv_session_wait(session, UINT64_MAX, &reply, NULL), LSMKV_OK);
    CHECK(lsmkv_reply_kind(reply, 0) == LSMKV_REPLY_PUSH && lsmkv_reply_len(reply, 0) == 3);
    lsmkv_reply_free(reply);
    REPLY(lsmkv_session_wait(session, PATIENCE, &reply, NULL), "(pmessage n* news hello)");
    NUMBER(lsmkv_spublish(db, S("shard"), S("there"), &number, NULL), 1);
    REPLY(lsmkv_session_wait(session, PATIENCE, &reply, NULL), "(smessage shard there)");
    RECEIVERS(lsmkv_publish(db, S("none"), S("x"), &number, NULL), 1);
    REPLY(lsmkv_session_wait(session, PATIENCE, &reply, NULL), "(pmessage n* none x)");
    CHECK(!readable(fd));
    STATUS(lsmkv_session_wait(session, 1, &reply, &why), LSMKV_TIMEOUT);
    CHECK(reply == NULL);
    if (!check_cluster) {
        REPLY(lsmkv_pubsub_channels(db, S("n*"), &reply, NULL), "[news]");
        REPLY(lsmkv_pubsub_numsub(db, words("news none"), 2, &reply, NULL), "[news 1 none 0]");
        NUMBER(lsmkv_pubsub_numpat(db, &number, NULL), 1);
        REPLY(lsmkv_pubsub_shardchannels(db, S("*"), &reply, NULL), "[shard]");
        REPLY(lsmkv_pubsub_shardnumsub(db, words("shard"), 1, &reply, NULL), "[shard 1]");
    }
    STATUS(lsmkv_session_wait(db, 0, &reply, NULL), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_session_fd(db, &fd, NULL), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_session_wait(session, 0, NULL, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_session_fd(session, NULL, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    if (check_store == NULL) NUMBER(lsmkv_publish(db, S("news"), S("nobody"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(events_of_keys_are_sent_once_they_are_on) {
    lsmkv_db *db = check_open(), *session = session_of(db);
    say(session, "SUBSCRIBE __keyspace@0__:k __keyevent@0__:set");
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_TIMEOUT);
    STATUS(lsmkv_set_keyspace_events(db, "Q", &why), LSMKV_INVALID);
    STATUS(lsmkv_set_keyspace_events(db, NULL, &why), LSMKV_MISUSE);
    STATUS(lsmkv_set_keyspace_events(db, "KE$", NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    REPLY(lsmkv_session_wait(session, 0, &reply, NULL), "(message __keyspace@0__:k set)");
    REPLY(lsmkv_session_wait(session, 0, &reply, NULL), "(message __keyevent@0__:set k)");
    STATUS(lsmkv_set_keyspace_events(db, "", NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_TIMEOUT);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_slow_subscriber_is_cut_off) {
    lsmkv_db *db = check_open(), *session = session_of(db);
    int i;
    STATUS(lsmkv_set_message_limits(db, 1000, 0, 0, NULL), LSMKV_OK);
    say(session, "SUBSCRIBE c");
    for (i = 0; i < 20; i++) STATUS(lsmkv_publish(db, S("c"), S("x"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_session_wait(session, 0, &reply, &why), LSMKV_TOO_LARGE);
    CHECK(strstr(why.msg, "cut off") != NULL);
    NUMBER(lsmkv_publish(db, S("c"), S("x"), &number, NULL), 0);
    say(session, "SUBSCRIBE c");
    NUMBER(lsmkv_publish(db, S("c"), S("y"), &number, NULL), 1);
    REPLY(lsmkv_session_wait(session, 0, &reply, NULL), "(message c y)");
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_session_that_tracks_is_told_of_changes_through_any_handle) {
    lsmkv_db *db = check_open(), *session = session_of(db), *transaction = NULL;
    say(session, "HELLO 3");
    say(session, "CLIENT TRACKING ON");
    say(session, "GET k");
    STATUS(lsmkv_set(db, S("other"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_TIMEOUT);
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    REPLY(lsmkv_session_wait(session, 0, &reply, NULL), "(invalidate [k])");
    /* Told once, and a typed call is no read that counts. */
    BYTES(lsmkv_get(session, S("k"), &bytes, NULL), "v");
    STATUS(lsmkv_set(db, S("k"), S("w"), NULL), LSMKV_OK);
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_TIMEOUT);
    say(session, "GET k");
    STATUS(lsmkv_begin(db, &transaction, NULL), LSMKV_OK);
    STATUS(lsmkv_set(transaction, S("k"), S("x"), NULL), LSMKV_OK);
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_TIMEOUT);
    STATUS(lsmkv_commit(transaction, NULL), LSMKV_OK);
    REPLY(lsmkv_session_wait(session, 0, &reply, NULL), "(invalidate [k])");
    STATUS(lsmkv_close(transaction, NULL), LSMKV_OK);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

static void *waits(void *session) {
    lsmkv_reply *message = NULL;
    long status = lsmkv_session_wait(session, UINT64_MAX, &message, NULL);
    lsmkv_reply_free(message);
    return (void *)status;
}

static void *pops(void *db) {
    lsmkv_reply *popped = NULL;
    lsmkv_slice key = slice_of("never");
    long status = lsmkv_blpop(db, &key, 1, 0.0, &popped, NULL);
    lsmkv_reply_free(popped);
    return (void *)status;
}

STORY(a_close_ends_waits) {
    lsmkv_db *db = check_open(), *session = session_of(db), *other = session_of(db);
    pthread_t first, second, third;
    void *status;
    pthread_create(&first, NULL, waits, session);
    pthread_create(&second, NULL, waits, other);
    pthread_create(&third, NULL, pops, db);
    usleep(100000);
    STATUS(lsmkv_close(other, NULL), LSMKV_OK);
    pthread_join(second, &status);
    CHECK((long)status == LSMKV_CLOSED);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    pthread_join(first, &status);
    CHECK((long)status == LSMKV_CLOSED);
    pthread_join(third, &status);
    CHECK((long)status == LSMKV_CLOSED);
    STATUS(lsmkv_session_wait(session, 0, &reply, NULL), LSMKV_CLOSED);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
}

/* Closes a handle on which a thread waits, while another one waits on the store's own. */
static void close_under_a_pop(lsmkv_db *db, lsmkv_db *closed) {
    pthread_t ended, served;
    void *status;
    pthread_create(&ended, NULL, pops, closed);
    pthread_create(&served, NULL, pops, db);
    usleep(100000);
    STATUS(lsmkv_close(closed, NULL), LSMKV_OK);
    pthread_join(ended, &status);
    CHECK((long)status == LSMKV_CLOSED);
    /* The pop on the store's own handle goes on. */
    NUMBER(lsmkv_rpush(db, S("never"), S("x"), &number, NULL), 1);
    pthread_join(served, &status);
    CHECK((long)status == LSMKV_OK);
}

STORY(the_close_of_a_session_ends_the_pop_that_waits_on_it) {
    lsmkv_db *db = check_open();
    close_under_a_pop(db, session_of(db));
    NUMBER(lsmkv_exists(db, S("never"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(the_close_of_a_database_ends_the_pop_that_waits_on_it) {
    lsmkv_db *db = check_open(), *selected = NULL;
    STATUS(lsmkv_select(db, 1, &selected, NULL), LSMKV_OK);
    close_under_a_pop(db, selected);
    NUMBER(lsmkv_exists(db, S("never"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

/* BLPOP queue 0, packed for lsmkv_command_nowait. */
static const char POP[] = "\3\0\0\0" "\5\0\0\0BLPOP" "\5\0\0\0queue" "\1\0\0\0" "0";
#define POP_LEN (sizeof POP - 1)

STORY(a_session_that_does_not_wait_is_told_when_to_try_again) {
    lsmkv_db *db = check_open(), *session = session_of(db);
    int fd = 0;
    STATUS(lsmkv_session_fd(session, &fd, NULL), LSMKV_OK);
    STATUS(lsmkv_command_nowait(session, POP, POP_LEN, &reply, &why), LSMKV_TIMEOUT);
    CHECK(reply == NULL && !readable(fd));
    NUMBER(lsmkv_rpush(db, S("queue"), S("a"), &number, NULL), 1);
    CHECK(readable(fd));
    /* Nothing was taken yet. */
    NUMBER(lsmkv_llen(db, S("queue"), &number, NULL), 1);
    REPLY(lsmkv_command_nowait(session, POP, POP_LEN, &reply, NULL), "[queue a]");
    CHECK(!readable(fd));
    STATUS(lsmkv_command_nowait(session, POP, POP_LEN, &reply, &why), LSMKV_TIMEOUT);
    /* Another command ends that. */
    say(session, "PING");
    NUMBER(lsmkv_rpush(db, S("queue"), S("b"), &number, NULL), 1);
    CHECK(!readable(fd));
    STATUS(lsmkv_command_nowait(db, POP, POP_LEN, &reply, NULL), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_command_nowait(session, POP, POP_LEN - 1, &reply, NULL), LSMKV_INVALID);
    STATUS(lsmkv_command_nowait(session, "", 0, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_command_nowait(session, NULL, 1, &reply, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_command_nowait(session, POP, POP_LEN, NULL, NULL), LSMKV_MISUSE);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    NUMBER(lsmkv_llen(db, S("queue"), &number, NULL), 1);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(pops_take_what_is_there_or_end_with_their_time) {
    lsmkv_db *db = check_open();
    NUMBER(lsmkv_rpush_many(db, S("l"), words("a b c d e f g"), 7, &number, NULL), 7);
    REPLY(lsmkv_blpop(db, words("none l"), 2, 1, &reply, NULL), "[l a]");
    REPLY(lsmkv_brpop(db, words("l"), 1, 0, &reply, NULL), "[l g]");
    BYTES(lsmkv_blmove(db, S("l"), S("m"), LSMKV_LEFT, LSMKV_RIGHT, 1, &bytes, NULL), "b");
    BYTES(lsmkv_brpoplpush(db, S("l"), S("m"), 1, &bytes, NULL), "f");
    REPLY(lsmkv_blmpop(db, words("none l"), 2, LSMKV_LEFT, 2, 1, &reply, NULL), "[l [c d]]");
    STATUS(lsmkv_zadd(db, S("z"), 1, S("x"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zadd(db, S("z"), 2, S("y"), NULL, NULL), LSMKV_OK);
    STATUS(lsmkv_zadd(db, S("z"), 3, S("w"), NULL, NULL), LSMKV_OK);
    REPLY(lsmkv_bzpopmin(db, words("z"), 1, 1, &reply, NULL), "[z x ~1]");
    REPLY(lsmkv_bzpopmax(db, words("z"), 1, 1, &reply, NULL), "[z w ~3]");
    REPLY(lsmkv_bzmpop(db, words("z"), 1, LSMKV_LEAST, 5, 1, &reply, NULL), "[z [[y ~2]]]");
    STATUS(lsmkv_blpop(db, words("none"), 1, 0.01, &reply, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_blmove(db, S("none"), S("m"), 0, 0, 0.01, &bytes, NULL), LSMKV_NOT_FOUND);
    STATUS(lsmkv_bzpopmin(db, words("l"), 1, 1, &reply, NULL), LSMKV_WRONGTYPE);
    STATUS(lsmkv_blpop(db, words("l"), 1, -1, &reply, NULL), LSMKV_OUT_OF_RANGE);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

static void *pushes(void *db) {
    usleep(50000);
    lsmkv_rpush(db, S("queue"), S("job"), NULL, NULL);
    return NULL;
}

STORY(a_pop_is_served_by_a_push_of_another_thread) {
    lsmkv_db *db = check_open();
    pthread_t thread;
    pthread_create(&thread, NULL, pushes, db);
    REPLY(lsmkv_blpop(db, words("queue"), 1, 30, &reply, NULL), "[queue job]");
    pthread_join(thread, NULL);
    NUMBER(lsmkv_exists(db, S("queue"), &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_session_receives_messages);
    RUN(events_of_keys_are_sent_once_they_are_on);
    RUN(a_slow_subscriber_is_cut_off);
    /* Elsewhere it is the server that knows who tracks, and its other clients that write. */
    if (check_store == NULL) RUN(a_session_that_tracks_is_told_of_changes_through_any_handle);
    RUN(a_close_ends_waits);
    RUN(the_close_of_a_session_ends_the_pop_that_waits_on_it);
    RUN(the_close_of_a_database_ends_the_pop_that_waits_on_it);
    RUN(a_session_that_does_not_wait_is_told_when_to_try_again);
    RUN(pops_take_what_is_there_or_end_with_their_time);
    RUN(a_pop_is_served_by_a_push_of_another_thread);
    return END();
}

/*
 * A remote store that refuses, and one whose server dies: the program, which leaves SIGPIPE as it is,
 * lives on.
 */
#include "redis.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

STORY(a_wrong_password_or_host_is_a_status_in_time) {
    static const char *const logins[] = {"", ":wrong@", "nobody:secret@"};
    const char *port = getenv("LSMKV_TEST_SERVER_PORT");
    lsmkv_options *options = lsmkv_options_new();
    lsmkv_db *db = NULL;
    lsmkv_status status;
    char address[128];
    time_t begun = time(NULL);
    size_t i;
    CHECK(port != NULL);
    STATUS(lsmkv_options_set(options, "connect_timeout_ms", "1000", &why), LSMKV_OK);
    for (i = 0; i < sizeof logins / sizeof *logins; i++) {
        snprintf(address, sizeof address, "redis://%s127.0.0.1:%s", logins[i], port);
        STATUS(lsmkv_open(address, options, &db, &why), LSMKV_INVALID);
        CHECK(db == NULL && strstr(why.msg, "refuses the login") != NULL);
        CHECK(strstr(why.msg, "secret") == NULL);
    }
    /* As the resolver of the machine says so, or is silent. */
    status = lsmkv_open("redis://no.such.host.invalid", options, &db, &why);
    CHECK(db == NULL && (status == LSMKV_IO || status == LSMKV_TIMEOUT));
    CHECK(strstr(why.msg, "no.such.host.invalid") != NULL);
    CHECK(time(NULL) - begun < 10);
    lsmkv_options_free(options);
}

STORY(the_death_of_a_server_is_a_status_and_no_signal) {
    const char *pid = getenv("LSMKV_TEST_SERVER_PID");
    lsmkv_db *db = check_open(), *session = NULL;
    int i;
    CHECK(pid != NULL && signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    STATUS(lsmkv_set(session, S("k"), S("v"), NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("v"), NULL), LSMKV_OK);
    CHECK(kill((pid_t)atoi(pid), SIGKILL) == 0);
    usleep(100000);
    for (i = 0; i < 3; i++) {
        STATUS(lsmkv_set(db, S("k"), S("v"), &why), LSMKV_IO);
        STATUS(lsmkv_get(session, S("k"), &bytes, &why), LSMKV_IO);
    }
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_wrong_password_or_host_is_a_status_in_time);
    RUN(the_death_of_a_server_is_a_status_and_no_signal);
    return END();
}

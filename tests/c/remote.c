/* A remote store whose server dies: the program, which leaves SIGPIPE as it is, lives on. */
#include "redis.h"

#include <signal.h>
#include <unistd.h>

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
    RUN(the_death_of_a_server_is_a_status_and_no_signal);
    return END();
}

/*
 * A store that this program serves to others: clients on sockets and calls of the program see the
 * same. The program leaves SIGPIPE at its default, which ends it.
 */
#include "redis.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static lsmkv_server *server;
static char socket_path[4096], address[4200];

/* The socket is beside the stores: the name of a story would make its path too long. */
static lsmkv_db *serves(void) {
    lsmkv_db *db = check_open();
    snprintf(socket_path, sizeof socket_path, "%s/s", check_scratch);
    snprintf(address, sizeof address, "unix:%s", socket_path);
    STATUS(lsmkv_serve(db, address, NULL, &server, &why), LSMKV_OK);
    return db;
}

static int connected(void) {
    struct sockaddr_un to = {0};
    struct timeval limit = {10, 0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    to.sun_family = AF_UNIX;
    strncpy(to.sun_path, socket_path, sizeof to.sun_path - 1);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    close(fd);
    return -1;
}

static int sends(int fd, const char *text) {
    return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Whether exactly this arrives. An empty text stands for the end of the stream. */
static int arrives(int fd, const char *wanted) {
    char got[512] = {0};
    size_t at = 0, len = strlen(wanted);
    while (at < len) {
        ssize_t n = recv(fd, got + at, len - at, 0);
        if (n <= 0) break;
        at += (size_t)n;
    }
    if (len == 0) return recv(fd, got, 1, 0) == 0;
    if (strcmp(got, wanted) != 0) printf("    arrived: %s\n", got);
    return strcmp(got, wanted) == 0;
}

STORY(clients_and_callers_see_the_same_keys_messages_and_pops) {
    lsmkv_db *db = serves(), *session = NULL;
    int client = connected(), other = connected();
    static const uint8_t *const subscribe[] = {(const uint8_t *)"SUBSCRIBE", (const uint8_t *)"news"};
    static const size_t lens[] = {9, 4};
    int32_t port = -1;
    CHECK(client >= 0 && other >= 0);
    CHECK(sends(client, "SET k from-client\r\n") && arrives(client, "+OK\r\n"));
    STATUS(lsmkv_get(db, S("k"), &bytes, NULL), LSMKV_OK);
    CHECK(bytes.len == 11 && memcmp(bytes.data, "from-client", 11) == 0);
    lsmkv_buf_release(&bytes);
    STATUS(lsmkv_set(db, S("k"), S("from-program"), NULL), LSMKV_OK);
    CHECK(sends(client, "GET k\r\n") && arrives(client, "$12\r\nfrom-program\r\n"));

    CHECK(sends(client, "SUBSCRIBE news\r\n"));
    CHECK(arrives(client, "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"));
    STATUS(lsmkv_session(db, &session, NULL), LSMKV_OK);
    STATUS(lsmkv_command(session, 2, subscribe, lens, &reply, NULL), LSMKV_OK);
    lsmkv_reply_free(reply);
    STATUS(lsmkv_publish(db, S("news"), S("hello"), &number, NULL), LSMKV_OK);
    CHECK(number == 2);
    CHECK(arrives(client, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"));
    STATUS(lsmkv_session_wait(session, 5000, &reply, NULL), LSMKV_OK);
    lsmkv_reply_free(reply);
    CHECK(sends(other, "PUBLISH news again\r\n") && arrives(other, ":2\r\n"));
    STATUS(lsmkv_session_wait(session, 5000, &reply, NULL), LSMKV_OK);
    lsmkv_reply_free(reply);
    STATUS(lsmkv_close(session, NULL), LSMKV_OK);

    CHECK(sends(other, "BLPOP queue 0\r\n"));
    usleep(50000);
    STATUS(lsmkv_rpush(db, S("queue"), S("job"), &number, NULL), LSMKV_OK);
    CHECK(arrives(other, "*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n"));

    STATUS(lsmkv_server_port(server, &port, NULL), LSMKV_OK);
    CHECK(port == 0);
    STATUS(lsmkv_server_address(server, &bytes, NULL), LSMKV_OK);
    CHECK(bytes.len > 8 && memcmp(bytes.data, "unix:///", 8) == 0);
    lsmkv_buf_release(&bytes);
    STATUS(lsmkv_server_stop(server, NULL), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("still open"), NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    close(client);
    close(other);
}

static void *pops(void *db) {
    lsmkv_slice key = slice_of("queue");
    lsmkv_reply *popped = NULL;
    lsmkv_status status = lsmkv_blpop(db, &key, 1, 0, &popped, NULL);
    lsmkv_reply_free(popped);
    return (void *)(intptr_t)status;
}

STORY(stopping_ends_the_waits_of_clients_and_not_those_of_the_program) {
    lsmkv_db *db = serves();
    int client = connected();
    pthread_t popper;
    void *status = NULL;
    CHECK(sends(client, "BLPOP other 0\r\n"));
    CHECK(pthread_create(&popper, NULL, pops, db) == 0);
    usleep(100000);
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    CHECK(arrives(client, ""));
    CHECK(connected() < 0 && access(socket_path, F_OK) != 0);
    STATUS(lsmkv_rpush(db, S("other"), S("x"), &number, NULL), LSMKV_OK);
    CHECK(number == 1);
    STATUS(lsmkv_rpush(db, S("queue"), S("x"), &number, NULL), LSMKV_OK);
    pthread_join(popper, &status);
    STATUS((lsmkv_status)(intptr_t)status, LSMKV_OK);
    /* A second server after the first, and two at once. */
    STATUS(lsmkv_serve(db, address, NULL, &server, &why), LSMKV_OK);
    {
        lsmkv_server *second = NULL;
        int32_t port = 0;
        STATUS(lsmkv_serve(db, "tcp:127.0.0.1:0", NULL, &second, &why), LSMKV_OK);
        STATUS(lsmkv_server_port(second, &port, &why), LSMKV_OK);
        CHECK(port > 0);
        STATUS(lsmkv_server_stop(second, &why), LSMKV_OK);
    }
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    close(client);
}

STORY(closing_the_store_stops_its_servers) {
    lsmkv_db *db = serves();
    int client = connected();
    int32_t port;
    CHECK(sends(client, "SET k v\r\n") && arrives(client, "+OK\r\n"));
    STATUS(lsmkv_close(db, &why), LSMKV_OK);
    CHECK(arrives(client, "") && connected() < 0);
    STATUS(lsmkv_server_port(server, &port, &why), LSMKV_OK);
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    STATUS(lsmkv_server_stop(server, &why), LSMKV_MISUSE);
    STATUS(lsmkv_server_port(server, &port, &why), LSMKV_MISUSE);
    STATUS(lsmkv_server_stop(NULL, &why), LSMKV_OK);
    close(client);
    db = check_open();
    STATUS(lsmkv_get(db, S("k"), &bytes, NULL), LSMKV_OK);
    lsmkv_buf_release(&bytes);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(what_cannot_be_served_is_a_status_that_says_why) {
    static const char *const wrong[] = {"",    "/path", "udp:127.0.0.1:1", "unix:", "tcp:127.0.0.1",
                                        "tcp:127.0.0.1:70000", "tcp::1", "tcp:0.0.0.0:0"};
    lsmkv_db *db = serves(), *other = NULL;
    lsmkv_server *first = server, *second = NULL;
    char longer[300], taken[64];
    int32_t port = 0;
    size_t i;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        STATUS(lsmkv_serve(db, wrong[i], NULL, &second, &why), LSMKV_INVALID);
        CHECK(second == NULL && strlen(why.msg) > 40);
    }
    CHECK(strstr(why.msg, "server_password") != NULL);
    STATUS(lsmkv_serve(db, address, NULL, &second, &why), LSMKV_BUSY);
    CHECK(why.os_errno == EADDRINUSE && strstr(why.msg, socket_path) != NULL);
    STATUS(lsmkv_serve(db, "tcp:127.0.0.1:0", NULL, &second, &why), LSMKV_OK);
    STATUS(lsmkv_server_port(second, &port, &why), LSMKV_OK);
    snprintf(taken, sizeof taken, "tcp:127.0.0.1:%d", (int)port);
    STATUS(lsmkv_serve(db, taken, NULL, &server, &why), LSMKV_BUSY);
    CHECK(server == NULL && why.os_errno == EADDRINUSE);
    STATUS(lsmkv_server_stop(second, &why), LSMKV_OK);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    memcpy(longer, "unix:/tmp/", 10);
    STATUS(lsmkv_serve(db, longer, NULL, &second, &why), LSMKV_INVALID);
    CHECK(strstr(why.msg, "107") != NULL);
    STATUS(lsmkv_serve(db, "unix:/does/not/exist/s", NULL, &second, &why), LSMKV_IO);
    CHECK(why.os_errno == ENOENT);
    STATUS(lsmkv_serve(db, "unix:/proc/s", NULL, &second, &why), LSMKV_IO);
    STATUS(lsmkv_serve(db, NULL, NULL, &second, &why), LSMKV_MISUSE);
    STATUS(lsmkv_serve(db, address, NULL, NULL, &why), LSMKV_MISUSE);
    STATUS(lsmkv_serve(NULL, address, NULL, &second, &why), LSMKV_MISUSE);
    STATUS(lsmkv_snapshot(db, &other, NULL), LSMKV_OK);
    STATUS(lsmkv_serve(other, address, NULL, &second, &why), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_close(other, NULL), LSMKV_OK);
    STATUS(lsmkv_begin(db, &other, NULL), LSMKV_OK);
    STATUS(lsmkv_serve(other, address, NULL, &second, &why), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_close(other, NULL), LSMKV_OK);
    STATUS(lsmkv_batch(db, 0, &other, NULL), LSMKV_OK);
    STATUS(lsmkv_serve(other, address, NULL, &second, &why), LSMKV_UNSUPPORTED);
    STATUS(lsmkv_close(other, NULL), LSMKV_OK);
    /* A store is no server, and a server is no store. */
    STATUS(lsmkv_serve(db, "tcp:127.0.0.1:0", NULL, &second, &why), LSMKV_OK);
    STATUS(lsmkv_server_stop((lsmkv_server *)db, &why), LSMKV_MISUSE);
    STATUS(lsmkv_set((lsmkv_db *)second, S("k"), S("v"), &why), LSMKV_MISUSE);
    STATUS(lsmkv_server_address((lsmkv_server *)db, &bytes, &why), LSMKV_MISUSE);
    STATUS(lsmkv_server_stop(second, &why), LSMKV_OK);
    STATUS(lsmkv_set(db, S("k"), S("v"), &why), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    STATUS(lsmkv_serve(db, address, NULL, &second, &why), LSMKV_MISUSE);
    STATUS(lsmkv_server_stop(first, &why), LSMKV_OK);
}

STORY(the_socket_of_a_dead_server_is_replaced_and_no_other_file) {
    lsmkv_db *db = serves();
    struct sockaddr_un at = {0};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    FILE *file;
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    at.sun_family = AF_UNIX;
    strncpy(at.sun_path, socket_path, sizeof at.sun_path - 1);
    /* A socket that is closed and not removed is what a killed server leaves. */
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0);
    close(fd);
    CHECK(connected() < 0);
    STATUS(lsmkv_serve(db, address, NULL, &server, &why), LSMKV_OK);
    fd = connected();
    CHECK(fd >= 0 && sends(fd, "PING\r\n") && arrives(fd, "+PONG\r\n"));
    close(fd);
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    file = fopen(socket_path, "w");
    CHECK(file != NULL && fputs("kept", file) >= 0 && fclose(file) == 0);
    STATUS(lsmkv_serve(db, address, NULL, &server, &why), LSMKV_BUSY);
    CHECK(why.os_errno == EADDRINUSE && strstr(why.msg, socket_path) != NULL);
    CHECK(unlink(socket_path) == 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_password_is_asked_for) {
    lsmkv_db *db = check_open();
    lsmkv_options *options = lsmkv_options_new();
    int client;
    snprintf(socket_path, sizeof socket_path, "%s/s", check_scratch);
    snprintf(address, sizeof address, "unix:%s", socket_path);
    STATUS(lsmkv_options_set(options, "server_password", "secret", &why), LSMKV_OK);
    STATUS(lsmkv_options_set(options, "server_max_clients", "0", &why), LSMKV_INVALID);
    STATUS(lsmkv_options_set(options, "server_threads", "2", &why), LSMKV_OK);
    STATUS(lsmkv_serve(db, address, options, &server, &why), LSMKV_OK);
    lsmkv_options_free(options);
    client = connected();
    CHECK(sends(client, "GET k\r\n") && arrives(client, "-NOAUTH Authentication required.\r\n"));
    CHECK(sends(client, "AUTH secret\r\n") && arrives(client, "+OK\r\n"));
    CHECK(sends(client, "GET k\r\n") && arrives(client, "$-1\r\n"));
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    close(client);
}

STORY(a_client_that_leaves_early_raises_no_signal_and_a_client_can_stop_the_server) {
    static char value[1 << 20];
    lsmkv_db *db = serves();
    int i, client;
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    memset(value, 'v', sizeof value);
    STATUS(lsmkv_set(db, S("large"), value, sizeof value, NULL), LSMKV_OK);
    for (i = 0; i < 20; i++) {
        client = connected();
        CHECK(sends(client, "GET large\r\nGET large\r\nGET large\r\n"));
        usleep(i * 500);
        close(client);
    }
    client = connected();
    CHECK(sends(client, "PING\r\n") && arrives(client, "+PONG\r\n"));
    CHECK(sends(client, "SHUTDOWN\r\n") && arrives(client, ""));
    close(client);
    STATUS(lsmkv_set(db, S("k"), S("still open"), NULL), LSMKV_OK);
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_forked_child_keeps_no_client_and_no_address) {
    lsmkv_db *db = serves();
    int client = connected(), go[2], status = -1;
    char byte = 'x';
    pid_t child;
    CHECK(sends(client, "PING\r\n") && arrives(client, "+PONG\r\n") && pipe(go) == 0);
    child = fork();
    if (child == 0) {
        lsmkv_status stopped = lsmkv_server_stop(server, NULL);
        close(go[1]);
        close(client);
        while (read(go[0], &byte, 1) > 0) {
        }
        /* Another program ends the child: a checker would count what the parent has allocated. */
        execlp(stopped == LSMKV_FORKED ? "true" : "false", "child", (char *)NULL);
        _exit(1);
    }
    close(go[0]);
    CHECK(sends(client, "PING\r\n") && arrives(client, "+PONG\r\n"));
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    /* The child lives, and would keep the connection if it had a copy of it. */
    CHECK(arrives(client, ""));
    CHECK(waitpid(child, &status, WNOHANG) == 0);
    STATUS(lsmkv_serve(db, address, NULL, &server, &why), LSMKV_OK);
    close(go[1]);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    STATUS(lsmkv_server_stop(server, &why), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
    close(client);
}

#ifdef WITHOUT_SERVER

STORY(a_library_without_servers_says_so) {
    lsmkv_db *db = check_open();
    STATUS(lsmkv_serve(db, "tcp:127.0.0.1:0", NULL, &server, &why), LSMKV_UNSUPPORTED);
    CHECK(server == NULL && strstr(why.msg, "feature server") != NULL);
    STATUS(lsmkv_server_stop(NULL, &why), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_library_without_servers_says_so);
    return END();
}

#else

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(clients_and_callers_see_the_same_keys_messages_and_pops);
    RUN(stopping_ends_the_waits_of_clients_and_not_those_of_the_program);
    RUN(closing_the_store_stops_its_servers);
    RUN(what_cannot_be_served_is_a_status_that_says_why);
    RUN(the_socket_of_a_dead_server_is_replaced_and_no_other_file);
    RUN(a_password_is_asked_for);
    RUN(a_client_that_leaves_early_raises_no_signal_and_a_client_can_stop_the_server);
    RUN(a_forked_child_keeps_no_client_and_no_address);
    return END();
}

#endif

/* Scripts, messages and waits: in process through the C functions, and over a Unix socket to lsmkv serve
 * or redis-server. Prints one number. Usage: messages script|script-of SOCKET|publish SOCKET|wake */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <lsmkv.h>

enum { CALLS = 100000, SUBSCRIBERS = 1000, MESSAGES = 500, WAKES = 3000, PAYLOAD = 64 };
static const char script[] = "redis.call('SET',KEYS[1],ARGV[1]) return redis.call('GET',KEYS[1])";

static void fail(const char *what) {
    fprintf(stderr, "messages: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_us(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static lsmkv_db *open_memory(void) {
    lsmkv_db *db = NULL;
    if (lsmkv_open(":memory:", NULL, &db, NULL) < 0) fail("lsmkv_open");
    return db;
}

/* Calls a second of a script of two commands in process. */
static void script_here(void) {
    lsmkv_db *db = open_memory();
    lsmkv_buf digest;
    lsmkv_slice key = {(const uint8_t *)"key", 3}, arg = {(const uint8_t *)"value", 5};
    double begun;
    int i;
    if (lsmkv_script_load(db, script, strlen(script), &digest, NULL) < 0) fail("lsmkv_script_load");
    begun = now_us();
    for (i = 0; i < CALLS; i++) {
        lsmkv_reply *reply = NULL;
        if (lsmkv_evalsha(db, (const char *)digest.data, digest.len, &key, 1, &arg, 1, &reply, NULL) < 0)
            fail("lsmkv_evalsha");
        lsmkv_reply_free(reply);
    }
    printf("%.0f\n", CALLS / (now_us() - begun) * 1e6);
    lsmkv_buf_release(&digest);
    lsmkv_close(db, NULL);
}

static int connected(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    return fd;
}

static void send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = write(fd, bytes, length);
        if (sent <= 0) fail("write");
        bytes += sent, length -= (size_t)sent;
    }
}

/* Reads until the bytes end with a line end; the answers asked for here have no other at a read's end. */
static size_t receive(int fd, char *into, size_t room) {
    size_t length = 0;
    do {
        ssize_t got = read(fd, into + length, room - 1 - length);
        if (got <= 0) fail("read");
        length += (size_t)got;
    } while (into[length - 1] != '\n');
    into[length] = 0;
    return length;
}

/* Calls a second of the script over a socket, each after the reply of the one before. */
static void script_of(const char *path) {
    char request[512], reply[512], digest[41];
    int fd = connected(path), i, length;
    double begun;
    length = snprintf(request, sizeof request, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                      strlen(script), script);
    send_all(fd, request, (size_t)length);
    receive(fd, reply, sizeof reply);
    if (sscanf(reply, "$40\r\n%40s", digest) != 1) fail(reply);
    length = snprintf(request, sizeof request,
                      "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$3\r\nkey\r\n$5\r\nvalue\r\n", digest);
    begun = now_us();
    for (i = 0; i < CALLS; i++) {
        size_t got = 0;
        send_all(fd, request, (size_t)length);
        while (got < strlen("$5\r\nvalue\r\n")) got += receive(fd, reply, sizeof reply);
    }
    printf("%.0f\n", CALLS / (now_us() - begun) * 1e6);
}

/* Messages a second that reach a thousand subscribers. The next is published after the reply of the one
 * before; the time ends when all subscribers have all messages. */
static void publish(const char *path) {
    static char bytes[1 << 16];
    char request[256], payload[PAYLOAD + 1], message[256];
    struct epoll_event events[256], event = {.events = EPOLLIN};
    int loop = epoll_create1(0), publisher = connected(path), i, n, length, sent = 0, answered = 0;
    size_t missing;
    double begun;
    memset(payload, 'x', PAYLOAD), payload[PAYLOAD] = 0;
    for (i = 0; i < SUBSCRIBERS; i++) {
        int fd = connected(path);
        send_all(fd, "SUBSCRIBE c\r\n", 13);
        receive(fd, bytes, sizeof bytes);
        fcntl(fd, F_SETFL, O_NONBLOCK);
        event.data.fd = fd;
        if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
    }
    fcntl(publisher, F_SETFL, O_NONBLOCK);
    event.data.fd = publisher;
    if (epoll_ctl(loop, EPOLL_CTL_ADD, publisher, &event) < 0) fail("epoll_ctl");
    length = snprintf(request, sizeof request, "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$%d\r\n%s\r\n", PAYLOAD, payload);
    missing = (size_t)snprintf(message, sizeof message, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", PAYLOAD,
                               payload) *
              SUBSCRIBERS * MESSAGES;
    begun = now_us();
    while (missing > 0 || answered < MESSAGES) {
        if (sent == answered && sent < MESSAGES) send_all(publisher, request, (size_t)length), sent++;
        n = epoll_wait(loop, events, 256, 10000);
        if (n <= 0) fail("epoll_wait");
        for (i = 0; i < n; i++) {
            ssize_t got = read(events[i].data.fd, bytes, sizeof bytes);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0) fail("read");
            if (events[i].data.fd != publisher) missing -= (size_t)got;
            else answered++;
        }
    }
    printf("%.0f\n", (double)SUBSCRIBERS * MESSAGES / (now_us() - begun) * 1e6);
}

static lsmkv_db *shared;
static double woken[WAKES];

static void *pop(void *unused) {
    lsmkv_slice key = {(const uint8_t *)"k", 1};
    int i;
    for (i = 0; i < WAKES; i++) {
        lsmkv_reply *reply = NULL;
        if (lsmkv_blpop(shared, &key, 1, 0, &reply, NULL) < 0) fail("lsmkv_blpop");
        woken[i] = now_us();
        lsmkv_reply_free(reply);
    }
    return unused;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median and the 99th percentile, in microseconds, from a push to the return of the pop that waits in
 * another thread. */
static void wake(void) {
    static double pushed[WAKES];
    const struct timespec pause = {0, 500000};
    lsmkv_slice element = {(const uint8_t *)"x", 1};
    pthread_t popper;
    int i;
    shared = open_memory();
    if (pthread_create(&popper, NULL, pop, NULL) != 0) fail("pthread_create");
    for (i = 0; i < WAKES; i++) {
        nanosleep(&pause, NULL);
        pushed[i] = now_us();
        if (lsmkv_rpush(shared, "k", 1, &element, 1, NULL, NULL) < 0) fail("lsmkv_rpush");
    }
    pthread_join(popper, NULL);
    for (i = 0; i < WAKES; i++) woken[i] -= pushed[i];
    qsort(woken, WAKES, sizeof *woken, ascending);
    printf("%.1f %.1f\n", woken[WAKES / 2], woken[WAKES * 99 / 100]);
    lsmkv_close(shared, NULL);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (argc == 2 && strcmp(what, "script") == 0) script_here();
    else if (argc == 3 && strcmp(what, "script-of") == 0) script_of(argv[2]);
    else if (argc == 3 && strcmp(what, "publish") == 0) publish(argv[2]);
    else if (argc == 2 && strcmp(what, "wake") == 0) wake();
    else fail("usage: messages script|script-of SOCKET|publish SOCKET|wake");
    return 0;
}

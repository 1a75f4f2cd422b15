/*
 * A store that this program serves with TLS, and opens again by its address. The names of the files
 * with certificates are in the environment.
 */
#include "redis.h"

#include <signal.h>

static lsmkv_server *server;
static char address[256];

static lsmkv_options *with(lsmkv_options *options, const char *name, const char *value) {
    CHECK(value != NULL);
    STATUS(lsmkv_options_set(options, name, value, &why), LSMKV_OK);
    return options;
}

/* Serves a store with the certificate of the environment; clients need none. */
static lsmkv_db *serves(void) {
    lsmkv_db *db = check_open();
    lsmkv_options *options = lsmkv_options_new();
    with(options, "server_tls_cert_file", getenv("LSMKV_TEST_CERT"));
    with(options, "server_tls_key_file", getenv("LSMKV_TEST_KEY"));
    with(options, "server_tls_auth_clients", "no");
    STATUS(lsmkv_serve(db, "tls:127.0.0.1:0", options, &server, &why), LSMKV_OK);
    lsmkv_options_free(options);
    STATUS(lsmkv_server_address(server, &bytes, NULL), LSMKV_OK);
    snprintf(address, sizeof address, "%.*s", (int)bytes.len, (const char *)bytes.data);
    lsmkv_buf_release(&bytes);
    CHECK(strncmp(address, "rediss://127.0.0.1:", 19) == 0);
    return db;
}

STORY(an_authority_that_is_not_trusted_is_a_status_with_the_way_out) {
    lsmkv_db *db = serves(), *remote = NULL;
    STATUS(lsmkv_open(address, NULL, &remote, &why), LSMKV_INVALID);
    CHECK(remote == NULL);
    CHECK(strstr(why.msg, "tls_ca_file") != NULL);
    STATUS(lsmkv_server_stop(server, NULL), LSMKV_OK);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_store_is_served_and_opened_with_tls) {
    lsmkv_db *db = serves(), *remote = NULL;
    lsmkv_options *options = with(lsmkv_options_new(), "tls_ca_file", getenv("LSMKV_TEST_CA"));
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    STATUS(lsmkv_open(address, options, &remote, &why), LSMKV_OK);
    STATUS(lsmkv_set(remote, S("k"), S("over TLS"), &why), LSMKV_OK);
    STATUS(lsmkv_get(db, S("k"), &bytes, &why), LSMKV_OK);
    CHECK(bytes.len == 8 && memcmp(bytes.data, "over TLS", 8) == 0);
    lsmkv_buf_release(&bytes);
    /* The server ends while the connection is open: a status and no signal. */
    STATUS(lsmkv_server_stop(server, NULL), LSMKV_OK);
    STATUS(lsmkv_set(remote, S("k"), S("v"), &why), LSMKV_IO);
    STATUS(lsmkv_close(remote, NULL), LSMKV_OK);
    lsmkv_options_free(options);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_server_without_its_files_is_refused) {
    lsmkv_db *db = check_open();
    lsmkv_server *none = NULL;
    STATUS(lsmkv_serve(db, "tls:127.0.0.1:0", NULL, &none, &why), LSMKV_INVALID);
    CHECK(none == NULL && strstr(why.msg, "server_tls_cert_file") != NULL);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(an_authority_that_is_not_trusted_is_a_status_with_the_way_out);
    RUN(a_store_is_served_and_opened_with_tls);
    RUN(a_server_without_its_files_is_refused);
    return END();
}

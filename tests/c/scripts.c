/* Scripts and functions: every function, on every handle that takes commands. */
#include "redis.h"

#define ADD "return redis.call('INCRBY', KEYS[1], ARGV[1])"

/* One key as a slice; valid until the next call. */
static const lsmkv_slice *one_key(const char *key) {
    static lsmkv_slice slice;
    slice = slice_of(key);
    return &slice;
}

STORY(scripts_run_by_text_and_by_digest) {
    lsmkv_db *db = check_open();
    REPLY(lsmkv_eval(db, S(ADD), one_key("n"), 1, words("5"), 1, &reply, NULL), "5");
    REPLY(lsmkv_eval(db, S("return {1, 'two', {3}}"), NULL, 0, NULL, 0, &reply, NULL),
          "[1 two [3]]");
    STATUS(lsmkv_eval(db, S("return nil"), NULL, 0, NULL, 0, &reply, NULL), LSMKV_NOT_FOUND);
    BYTES(lsmkv_script_load(db, S("return 1"), &bytes, NULL),
          "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    REPLY(lsmkv_evalsha(db, S("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"), NULL, 0, NULL, 0, &reply,
                        NULL),
          "1");
    REPLY(lsmkv_evalsha_ro(db, S("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"), NULL, 0, NULL, 0,
                           &reply, NULL),
          "1");
    REPLY(lsmkv_eval_ro(db, S("return redis.call('GET', KEYS[1])"), one_key("n"), 1, NULL, 0, &reply,
                        NULL),
          "5");
    db = reopened(db);
    REPLY(lsmkv_eval(db, S(ADD), one_key("n"), 1, words("2"), 1, &reply, NULL), "7");
    /* A server that goes on running still knows the script. */
    if (check_store != NULL) check_empty_store();
    STATUS(lsmkv_evalsha(db, S("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"), NULL, 0, NULL, 0,
                         &reply, &why),
           LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(a_script_that_fails_leaves_nothing) {
    lsmkv_db *db = check_open();
    STATUS(lsmkv_eval(db, S("redis.call('SET', KEYS[1], 'x') error('half way')"), one_key("k"), 1, NULL,
                      0, &reply, &why),
           LSMKV_INVALID);
    CHECK(strstr(why.msg, "half way") != NULL);
    STATUS(lsmkv_eval(db, S("this is no Lua"), NULL, 0, NULL, 0, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_eval_ro(db, S("return redis.call('SET', KEYS[1], 'x')"), one_key("k"), 1, NULL, 0,
                         &reply, &why),
           LSMKV_INVALID);
    STATUS(lsmkv_eval(db, NULL, 3, NULL, 0, NULL, 0, &reply, &why), LSMKV_MISUSE);
    STATUS(lsmkv_eval(db, S(ADD), NULL, 2, NULL, 0, &reply, &why), LSMKV_MISUSE);
    /* Redis does not undo what such a script has written. */
    if (check_store == NULL) NUMBER(lsmkv_dbsize(db, &number, NULL), 0);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

STORY(functions_stay_in_the_store) {
    static const char library[] =
        "#!lua name=lib\n"
        "redis.register_function('add', function(keys, args)\n"
        "  return redis.call('INCRBY', keys[1], args[1]) end)\n"
        "redis.register_function{function_name='get', flags={'no-writes'},\n"
        "  callback=function(keys) return redis.call('GET', keys[1]) end}\n";
    lsmkv_db *db = check_open();
    const uint8_t *argv[3];
    size_t lens[3];
    argv[0] = (const uint8_t *)"FUNCTION";
    argv[1] = (const uint8_t *)"LOAD";
    argv[2] = (const uint8_t *)library;
    lens[0] = 8;
    lens[1] = 4;
    lens[2] = strlen(library);
    REPLY(lsmkv_command(db, 3, argv, lens, &reply, NULL), "lib");
    db = reopened(db);
    REPLY(lsmkv_fcall(db, S("add"), one_key("n"), 1, words("4"), 1, &reply, NULL), "4");
    REPLY(lsmkv_fcall_ro(db, S("get"), one_key("n"), 1, NULL, 0, &reply, NULL), "4");
    STATUS(lsmkv_fcall_ro(db, S("add"), one_key("n"), 1, words("4"), 1, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_fcall(db, S("nosuch"), NULL, 0, NULL, 0, &reply, &why), LSMKV_INVALID);
    STATUS(lsmkv_close(db, NULL), LSMKV_OK);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(scripts_run_by_text_and_by_digest);
    RUN(a_script_that_fails_leaves_nothing);
    RUN(functions_stay_in_the_store);
    return END();
}

/* A program with functions named like Lua's: scripts of the library must not call them. */
#include <lsmkv.h>
#include <stdlib.h>
#include <string.h>

int lua_calls;

void *lua_newstate(void) { lua_calls++; return NULL; }
void lua_pushlstring(void) { lua_calls++; }
int lua_pcall(void) { lua_calls++; return 1; }
int luaL_loadbuffer(void) { lua_calls++; return 1; }
void *luaL_newstate(void) { lua_calls++; return NULL; }

int main(void) {
    static const char script[] = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
    lsmkv_db *db = NULL;
    lsmkv_reply *reply = NULL;
    lsmkv_slice key = { (const uint8_t *)"n", 1 }, arg = { (const uint8_t *)"41", 2 };
    if (lsmkv_open(":memory:", NULL, &db, NULL) != LSMKV_OK) return 1;
    if (lsmkv_eval(db, script, strlen(script), &key, 1, &arg, 1, &reply, NULL) != LSMKV_OK) return 2;
    lsmkv_reply_free(reply);
    if (lua_calls != 0) return 3;
    return lsmkv_close(db, NULL) == LSMKV_OK ? 0 : 4;
}

// node-redis: commands, transactions, scripts, messages.
"use strict";
const assert = require("assert");
const { createClient, defineScript } = require("redis");
const { main, once } = require("./scenario");

async function connected(url, options = {}) {
  return createClient({ url, ...options }).on("error", () => {}).connect();
}

main({
  async commands(url) {
    const db = await connected(url);
    assert.equal(await db.set("k", "v", { expiration: { type: "EX", value: 100 } }), "OK");
    assert.equal(await db.get("k"), "v");
    await db.hSet("h", { x: "1", y: "2" });
    assert.deepEqual({ ...(await db.hGetAll("h")) }, { x: "1", y: "2" });
    assert.deepEqual(await db.multi().set("n", "1").incr("n").exec(), ["OK", 2]);
    const other = await connected(url);
    await db.watch("n");
    await other.set("n", "10");
    await assert.rejects(db.multi().incr("n").exec(), /watch/i);
    const found = [];
    for await (const keys of db.scanIterator()) found.push(...keys);
    assert.deepEqual(found.sort(), ["h", "k", "n"]);
    await assert.rejects(db.lPush("k", "x"), /WRONGTYPE/);
  },

  async script(url) {
    const addTo = defineScript({
      NUMBER_OF_KEYS: 1,
      SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
      parseCommand(parser, key, n) {
        parser.pushKey(key);
        parser.push(String(n));
      },
      transformReply: (reply) => reply,
    });
    const db = await connected(url, { scripts: { addTo } });
    assert.equal(await db.addTo("n", 5), 5);
    assert.equal(await db.addTo("n", 2), 7);
    const listed = await db.eval("return {1, 'a', false}", { keys: [], arguments: [] });
    assert.deepEqual(listed, [1, "a", null]);
  },

  async pubsub(url) {
    const db = await connected(url);
    const messages = await connected(url);
    const message = once((done) => messages.subscribe("news", (...found) => done(found)));
    const matched = once((done) => messages.pSubscribe("n*", (...found) => done(found)));
    const shard = once((done) => messages.sSubscribe("shard", (...found) => done(found)));
    await messages.ping();
    assert.equal(await db.publish("news", "hello"), 2);
    assert.equal(await db.sPublish("shard", "part"), 1);
    assert.deepEqual(await message, ["hello", "news"]);
    assert.deepEqual(await matched, ["hello", "news"]);
    assert.deepEqual(await shard, ["part", "shard"]);
    assert.equal(await messages.ping(), "PONG");
  },
});

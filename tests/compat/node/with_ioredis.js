// ioredis: commands, pipelines, scripts, messages, blocked pops.
"use strict";
const assert = require("assert");
const Redis = require("ioredis");
const { main, once, until } = require("./scenario");

main({
  async commands(url) {
    const db = new Redis(url, { connectionName: "story" });
    assert.equal(await db.set("k", "v", "EX", 100), "OK");
    assert.equal(await db.get("k"), "v");
    await db.hset("h", { x: 1, y: 2 });
    assert.deepEqual(await db.hgetall("h"), { x: "1", y: "2" });
    assert.deepEqual(await db.multi().set("n", 1).incr("n").exec(), [[null, "OK"], [null, 2]]);
    const found = [];
    for await (const keys of db.scanStream({ count: 2 })) found.push(...keys);
    assert.deepEqual(found.sort(), ["h", "k", "n"]);
    const piped = await db.pipeline().lpush("k", "x").get("k").exec();
    assert.match(String(piped[0][0]), /WRONGTYPE/);
    assert.deepEqual(piped[1], [null, "v"]);
    const taken = db.duplicate().blpop("queue", 20);
    await until(async () => /blocked_clients:1/.test(await db.info("clients")));
    await db.rpush("queue", "job");
    assert.deepEqual(await taken, ["queue", "job"]);
  },

  async script(url) {
    const db = new Redis(url);
    const lua = "return {KEYS[1], ARGV[1], redis.call('INCRBY', KEYS[1], ARGV[1])}";
    db.defineCommand("addTo", { numberOfKeys: 1, lua });
    assert.deepEqual(await db.addTo("n", 5), ["n", "5", 5]);
    assert.deepEqual(await db.addTo("n", 2), ["n", "2", 7]);
    assert.deepEqual(await db.pipeline().addTo("n", 1).get("n").exec(), [
      [null, ["n", "1", 8]],
      [null, "8"],
    ]);
  },

  async pubsub(url) {
    const db = new Redis(url);
    const messages = new Redis(url);
    assert.equal(await messages.subscribe("news", "sport"), 2);
    assert.equal(await messages.psubscribe("n*"), 3);
    const message = once((done) => messages.on("message", (...found) => done(found)));
    const matched = once((done) => messages.on("pmessage", (...found) => done(found)));
    assert.equal(await db.publish("news", "hello"), 2);
    assert.deepEqual(await message, ["news", "hello"]);
    assert.deepEqual(await matched, ["n*", "news", "hello"]);
    assert.equal(await messages.unsubscribe("news", "sport"), 1);
    assert.equal(await db.publish("news", "hello"), 1);
  },
});

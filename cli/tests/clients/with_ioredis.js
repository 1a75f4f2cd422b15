// A typical application with ioredis: with_ioredis.js PORT.
"use strict";
const assert = require("assert");
const Redis = require("ioredis");

const port = Number(process.argv[2]);

async function values(db) {
  assert.equal(await db.set("k", "v", "EX", 100), "OK");
  assert.equal(await db.get("k"), "v");
  assert.equal(await db.hset("h", { x: 1, y: 2 }), 2);
  assert.deepEqual(await db.hgetall("h"), { x: "1", y: "2" });
  assert.equal(await db.rpush("l", "a", "b"), 2);
  assert.deepEqual(await db.lrange("l", 0, -1), ["a", "b"]);
  assert.equal(await db.zadd("z", 1.5, "m"), 1);
  assert.deepEqual(await db.zrange("z", 0, -1, "WITHSCORES"), ["m", "1.5"]);
  assert.deepEqual(await db.getBuffer("k"), Buffer.from("v"));
  const found = [];
  for await (const keys of db.scanStream({ count: 2 })) found.push(...keys);
  assert.deepEqual(found.sort(), ["h", "k", "l", "z"]);
}

async function together(db) {
  const replies = await db.multi().set("n", 1).incr("n").exec();
  assert.deepEqual(replies, [[null, "OK"], [null, 2]]);
  const pipeline = db.pipeline();
  for (let n = 0; n < 1000; n++) pipeline.set(`p${n}`, n);
  assert.equal((await pipeline.exec()).filter(([error]) => error).length, 0);
  await assert.rejects(db.lpush("k", "x"), /WRONGTYPE/);
}

async function waiting(db) {
  const taker = db.duplicate();
  const taken = taker.blpop("queue", 20);
  while (!/blocked_clients:1/.test(await db.info("clients")));
  await db.rpush("queue", "job");
  assert.deepEqual(await taken, ["queue", "job"]);
  assert.equal(await taker.blpop("queue", 0.05), null);
  taker.disconnect();
}

(async () => {
  const db = new Redis({ port, connectionName: "story", enableReadyCheck: true });
  await db.flushall();
  await values(db);
  await together(db);
  await waiting(db);
  assert.equal(await db.client("GETNAME"), "story");
  await db.quit();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});

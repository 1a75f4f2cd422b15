// connect-redis, Keyv, rate-limiter-flexible, redlock, socket.io's adapter.
"use strict";
const assert = require("assert");
const http = require("http");
const { main, once, sleep } = require("./scenario");

async function nodeRedis(url) {
  return require("redis").createClient({ url }).on("error", () => {}).connect();
}

// Listens on a free port; gives the address.
function listen(server) {
  return new Promise((done) => {
    server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${server.address().port}`));
  });
}

async function limited(limiter) {
  const consumed = async (key) => {
    try {
      return (await limiter.consume(key)).remainingPoints;
    } catch (refused) {
      if (refused instanceof Error) throw refused;
      assert.ok(refused.msBeforeNext > 0 && refused.msBeforeNext <= 2000);
      return "refused";
    }
  };
  assert.deepEqual(
    [await consumed("ada"), await consumed("ada"), await consumed("ada"), await consumed("grace")],
    [1, 0, "refused", 1],
  );
  await sleep(2100);
  assert.equal(await consumed("ada"), 1);
}

main({
  async session(url) {
    const express = require("express");
    const session = require("express-session");
    const { RedisStore } = require("connect-redis");
    const db = await nodeRedis(url);
    const app = express();
    const store = new RedisStore({ client: db, prefix: "app:", ttl: 100 });
    app.use(session({ store, resave: false, saveUninitialized: false, secret: "secret" }));
    app.get("/visit", (request, reply) => {
      request.session.visits = (request.session.visits || 0) + 1;
      reply.send(String(request.session.visits));
    });
    app.get("/leave", (request, reply) => request.session.destroy(() => reply.send("left")));
    const address = await listen(http.createServer(app));
    const first = await fetch(`${address}/visit`);
    const headers = { cookie: first.headers.get("set-cookie").split(";")[0] };
    assert.equal(await first.text(), "1");
    assert.equal(await (await fetch(`${address}/visit`, { headers })).text(), "2");
    assert.equal(await (await fetch(`${address}/visit`)).text(), "1");
    assert.equal((await store.ids()).length, 2);
    await fetch(`${address}/leave`, { headers });
    assert.equal(await (await fetch(`${address}/visit`, { headers })).text(), "1");
    await store.clear();
    assert.equal(await store.length(), 0);
  },

  async keyv(url) {
    const { createKeyv } = require("@keyv/redis");
    const keyv = createKeyv(url, { namespace: "app", throwOnErrors: true });
    await keyv.set("k", { a: [1, 2] });
    await keyv.set("short", 1, 500);
    assert.deepEqual(await keyv.get("k"), { a: [1, 2] });
    assert.deepEqual(await keyv.get(["k", "none"]), [{ a: [1, 2] }, undefined]);
    assert.equal(await keyv.has("k"), true);
    await sleep(600);
    assert.equal(await keyv.get("short"), undefined);
    const found = [];
    for await (const [key] of keyv.iterator()) found.push(key);
    assert.deepEqual(found, ["k"]);
    assert.equal(await keyv.delete("k"), true);
    await keyv.set("other", 1);
    await keyv.clear();
    assert.equal(await keyv.get("other"), undefined);
  },

  async rate_limit_ioredis(url) {
    const Redis = require("ioredis");
    const { RateLimiterRedis } = require("rate-limiter-flexible");
    await limited(new RateLimiterRedis({ storeClient: new Redis(url), points: 2, duration: 2 }));
  },

  async rate_limit_node_redis(url) {
    const { RateLimiterRedis } = require("rate-limiter-flexible");
    const storeClient = await nodeRedis(url);
    await limited(new RateLimiterRedis({ storeClient, useRedisPackage: true, points: 2, duration: 2 }));
  },

  async redlock(url) {
    const Redis = require("ioredis");
    const Redlock = require("redlock");
    const db = new Redis(url);
    const locks = new Redlock([db], { retryCount: 0 });
    let reason;
    locks.on("clientError", (error) => (reason = error));
    const acquire = (...args) =>
      locks.lock(...args).catch((error) => {
        throw reason || error;
      });
    let lock = await acquire(["account:1", "account:2"], 2000);
    await assert.rejects(locks.lock("account:1", 2000), /LockError|unable to achieve/i);
    lock = await lock.extend(5000);
    assert.ok((await db.pttl("account:2")) > 2500);
    await lock.unlock();
    assert.equal(await db.exists("account:1", "account:2"), 0);
    lock = await acquire("account:1", 2000);
    await db.set("account:1", "of somebody else");
    await assert.rejects(lock.unlock(), /LockError|unable to/i);
    assert.equal(await db.get("account:1"), "of somebody else");
  },

  async socket_io(url) {
    const { Server } = require("socket.io");
    const { createAdapter } = require("@socket.io/redis-adapter");
    const { io } = require("socket.io-client");
    const clients = [];
    const servers = [];
    for (let n = 0; n < 2; n++) {
      const [publisher, subscriber] = [await nodeRedis(url), await nodeRedis(url)];
      const web = http.createServer();
      const server = new Server(web, { adapter: createAdapter(publisher, subscriber) });
      server.on("connection", (socket) => socket.join("room"));
      const client = io(await listen(web));
      await once((done) => client.on("connect", done));
      servers.push(server);
      clients.push(client);
    }
    await sleep(300);
    const news = clients.map((client) => once((done) => client.on("news", done)));
    servers[0].to("room").emit("news", { n: 1 });
    assert.deepEqual(await Promise.all(news), [{ n: 1 }, { n: 1 }]);
    assert.equal((await servers[0].in("room").fetchSockets()).length, 2);
    const seen = once((done) => servers[1].on("greeting", done));
    servers[0].serverSideEmit("greeting", "hello");
    assert.equal(await seen, "hello");
  },
});

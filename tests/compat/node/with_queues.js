// BullMQ, Bull, Bee-Queue: jobs, delayed jobs, events.
"use strict";
const assert = require("assert");
const { main, once, until } = require("./scenario");

function connection(url) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

// With BullMQ: runs a story with a queue and a worker.
async function withBullMQ(url, story) {
  const { Queue, Worker } = require("bullmq");
  const queue = new Queue("jobs", { connection: connection(url) });
  let tries = 0;
  const worker = new Worker(
    "jobs",
    async (job) => {
      if (job.name === "fails once" && ++tries === 1) throw new Error("again");
      return job.data.x * 2;
    },
    { connection: connection(url) },
  );
  // A worker that cannot work ends the scenario with its error.
  const broken = new Promise((_, fail) => worker.on("error", fail).once("closed", fail));
  queue.on("error", () => {});
  await Promise.race([story(queue, worker), broken]);
}

const finished = (worker) => once((done) => worker.on("completed", (job, result) => done(result)));

main({
  async bullmq(url) {
    await withBullMQ(url, async (queue, worker) => {
      let result = finished(worker);
      await queue.add("double", { x: 21 });
      assert.equal(await result, 42);
      result = finished(worker);
      await queue.add("fails once", { x: 1 }, { attempts: 2 });
      assert.equal(await result, 2);
      assert.equal(await queue.getCompletedCount(), 2);
    });
  },

  async bullmq_delayed(url) {
    await withBullMQ(url, async (queue, worker) => {
      const result = finished(worker);
      const begun = Date.now();
      await queue.add("double", { x: 2 }, { delay: 1500 });
      assert.equal(await queue.getDelayedCount(), 1);
      assert.equal(await result, 4);
      assert.ok(Date.now() - begun >= 1400, "it ran too early");
    });
  },

  async bullmq_events(url) {
    await withBullMQ(url, async (queue) => {
      const { QueueEvents } = require("bullmq");
      const events = new QueueEvents("jobs", { connection: connection(url) });
      events.on("error", () => {});
      await events.waitUntilReady();
      const job = await queue.add("double", { x: 4 });
      assert.equal(await job.waitUntilFinished(events, 10_000), 8);
    });
  },

  async bull(url) {
    const Bull = require("bull");
    const queue = new Bull("jobs", url);
    const broken = new Promise((_, fail) => queue.on("error", fail));
    let tries = 0;
    queue.process(async (job) => {
      if (job.data.fails && ++tries === 1) throw new Error("again");
      return job.data.x * 2;
    });
    const story = async () => {
      const jobs = await Promise.all([1, 2, 3].map((x) => queue.add({ x })));
      assert.deepEqual(await Promise.all(jobs.map((job) => job.finished())), [2, 4, 6]);
      const again = await queue.add({ x: 5, fails: true }, { attempts: 2 });
      assert.equal(await again.finished(), 10);
      const begun = Date.now();
      const later = await queue.add({ x: 4 }, { delay: 1500 });
      assert.equal(await later.finished(), 8);
      assert.ok(Date.now() - begun >= 1400, "it ran too early");
    };
    await Promise.race([story(), broken]);
  },

  async bee_queue(url) {
    const BeeQueue = require("bee-queue");
    const options = { redis: connection(url), activateDelayedJobs: true };
    const [worker, queue] = [new BeeQueue("jobs", options), new BeeQueue("jobs", options)];
    const broken = new Promise((_, fail) => [worker, queue].map((q) => q.on("error", fail)));
    const story = async () => {
      await worker.ready();
      await queue.ready();
      worker.process(async (job) => job.data.x * 2);
      const result = (job) =>
        once((done) => {
          job.on("succeeded", done);
          job.save();
        });
      assert.equal(await result(queue.createJob({ x: 21 })), 42);
      const begun = Date.now();
      assert.equal(await result(queue.createJob({ x: 2 }).delayUntil(begun + 1500)), 4);
      assert.ok(Date.now() - begun >= 1400, "it ran too early");
      const health = await until(async () => (await queue.checkHealth()).succeeded === 2);
      assert.ok(health);
    };
    await Promise.race([story(), broken]);
  },
});

// What the scenarios of this directory share.
//
// A file `with_X.js` exports one function per scenario. tests/compat/run.py calls it as
//
//     node with_X.js SCENARIO redis://127.0.0.1:PORT/0
//
// with NODE_PATH naming the installed packages. A scenario ends if it saw the effect that it names,
// and throws otherwise.
"use strict";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Gives a promise of what a callback is called with first, which fails after some seconds.
function once(register, seconds = 15) {
  return new Promise((done, fail) => {
    const error = new Error(`nothing came within ${seconds} seconds`);
    const timer = setTimeout(() => fail(error), seconds * 1000);
    register((value) => {
      clearTimeout(timer);
      done(value);
    });
  });
}

// Waits until the condition holds; gives what it gave.
async function until(condition, seconds = 15) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not so after ${seconds} seconds`);
    await sleep(20);
  }
}

function failed(error) {
  console.error(error);
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${JSON.stringify(error)}`;
  const lines = text.split("\n").filter((line) => line.trim());
  console.log(`FAILED ${lines.join(" ").slice(0, 300)}`);
  process.exit(1);
}

function main(scenarios) {
  const [name, url] = process.argv.slice(2);
  process.on("unhandledRejection", failed);
  process.on("uncaughtException", failed);
  scenarios[name](url).then(() => process.exit(0), failed);
}

module.exports = { main, once, sleep, until };

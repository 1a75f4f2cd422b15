// The binding for Node, on a store in the directory that is the first argument.
'use strict';

const assert = require('assert');
const lsmkv = require('../../bindings/node/lsmkv.js');

const directory = process.argv[2];
let db = lsmkv.open(directory, { sync: 'always' });

assert.strictEqual(db.hset('user:1', 'name', 'alice', 'visits', 1), 2);
assert.strictEqual(db.hincrby('user:1', 'visits', 4), 5);
assert.strictEqual(db.hgetall('user:1').get('name').toString(), 'alice');
db.rpush('queue', 'a', Buffer.from([0, 255]), 'c');
assert.deepStrictEqual(db.lrange('queue', 1, -1), [Buffer.from([0, 255]), Buffer.from('c')]);
assert.strictEqual(db.get('none'), null);
db.zadd('board', 12.5, 'alice', 7, 'bob');
assert.strictEqual(db.zscore('board', 'alice'), 12.5);
assert.deepStrictEqual(db.smembers('none'), new Set());

const then = db.snapshot();
db.set('a', 10);
db.set('b', 0);
assert.strictEqual(then.get('a'), null);
then.close();

let runs = 0;
const moved = db.transact(t => {
  const left = t.decrby('a', 3);
  if (++runs === 1) db.set('a', 100); // in between: the commit conflicts
  t.incrby('b', 3);
  return left;
});
assert.strictEqual(runs, 2);
assert.strictEqual(moved, 97);
assert.throws(() => db.transact(t => { t.set('a', 1); throw new RangeError('no'); }), RangeError);

assert.throws(() => db.lpush('user:1', 'x'), error =>
  error instanceof lsmkv.ReplyError && error.message.startsWith('WRONGTYPE'));
assert.throws(() => lsmkv.open(directory), error =>
  error instanceof lsmkv.LsmkvError && error.code === -17);
assert.throws(() => lsmkv.open(':memory:', { sink: 'off' }), error => error.code === -2);
db.close();

db = lsmkv.open(directory);
assert.deepStrictEqual(db.mget('a', 'b').map(String), ['97', '3']);
db.close();
console.log('ok: node');

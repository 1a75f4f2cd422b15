// lsmkv from Node: every command as a method, by name, with the replies of Redis.
//
//     const lsmkv = require('lsmkv');
//     const db = lsmkv.open('/path/to/store', { sync: 'always' });
//     db.hset('user:1', 'name', 'alice');
//     db.transact(t => { t.decrby('a', 5); t.incrby('b', 5); });
//     db.close();
//
// Strings, numbers and Buffers go in; Buffers, numbers, arrays, Maps, Sets and null come out. Calls
// block. The library is $LSMKV_LIBRARY, or the system's liblsmkv.so.0.
'use strict';

const koffi = require('koffi');

const lib = koffi.load(process.env.LSMKV_LIBRARY || 'liblsmkv.so.0');
koffi.struct('lsmkv_err', {
  code: 'int32_t', os_errno: 'int32_t', msg: koffi.array('char', 248, 'String'),
});
koffi.struct('lsmkv_node', {
  kind: 'int32_t', flags: 'int32_t', num: 'int64_t', off: 'uint64_t', len: 'uint64_t',
});
const out = '_Out_ void **out, _Out_ lsmkv_err *err';
const c = {
  abi: lib.func('uint32_t lsmkv_abi_version()'),
  newOptions: lib.func('void *lsmkv_options_new()'),
  freeOptions: lib.func('void lsmkv_options_free(void *options)'),
  setOption: lib.func(
    'int32_t lsmkv_options_set(void *options, const char *name, const char *value, _Out_ lsmkv_err *err)'),
  open: lib.func(`int32_t lsmkv_open(const char *path, void *options, ${out})`),
  close: lib.func('int32_t lsmkv_close(void *db, _Out_ lsmkv_err *err)'),
  snapshot: lib.func(`int32_t lsmkv_snapshot(void *db, ${out})`),
  begin: lib.func(`int32_t lsmkv_begin(void *db, ${out})`),
  commit: lib.func('int32_t lsmkv_commit(void *db, _Out_ lsmkv_err *err)'),
  packed: lib.func(`int32_t lsmkv_command_packed(void *db, const void *commands, size_t len, ${out})`),
  view: lib.func('int32_t lsmkv_reply_view(void *reply, _Out_ void **nodes, _Out_ size_t *n, ' +
    '_Out_ void **arena, _Out_ size_t *arena_len)'),
  freeReply: lib.func('void lsmkv_reply_free(void *reply)'),
};
if (c.abi() !== 0) throw new Error('the library has another ABI version than this binding');

const CONFLICT = -11;

/** A failure of the store; `code` is the status. */
class LsmkvError extends Error {
  constructor(err) {
    super(err.msg);
    this.code = err.code;
  }
}
/** An error of a command, with the text Redis gives it. */
class ReplyError extends Error {}

function checked(call, ...args) {
  const err = {};
  if (call(...args, err) < 0) throw new LsmkvError(err);
}
function given(call, ...args) {
  const result = [null];
  checked(call, ...args, result);
  return result[0];
}

function packed(words) {
  const parts = words.map(word => (Buffer.isBuffer(word) ? word : Buffer.from(String(word))));
  const number = n => { const bytes = Buffer.alloc(4); bytes.writeUInt32LE(n); return bytes; };
  return Buffer.concat([number(parts.length), ...parts.flatMap(part => [number(part.length), part])]);
}

function decoded(reply) {
  const [nodesAt, n, arenaAt, arenaLen] = [[null], [0], [null], [0]];
  c.view(reply, nodesAt, n, arenaAt, arenaLen);
  const nodes = koffi.decode(nodesAt[0], koffi.array('lsmkv_node', n[0]));
  const arena = Buffer.from(arenaLen[0] ? koffi.view(arenaAt[0], Number(arenaLen[0])) : []);
  let next = 0;
  function node() {
    const { kind, num, off, len } = nodes[next++];
    const text = () => arena.subarray(Number(off), Number(off) + Number(len));
    const children = () => Array.from({ length: Number(num) }, node);
    switch (kind) {
      case 0: return null;
      case 1: case 11: case 12: return text().toString();
      case 2: return new ReplyError(text().toString());
      case 3: return Number.isSafeInteger(Number(num)) ? Number(num) : num;
      case 4: return Buffer.from(text());
      case 5: return new Float64Array(BigInt64Array.of(BigInt(num)).buffer)[0];
      case 6: return Number(num) !== 0;
      case 8: {
        const flat = children();
        const pairs = flat.flatMap((key, i) => (i % 2 ? [] : [[String(key), flat[i + 1]]]));
        return new Map(pairs);
      }
      case 9: return new Set(children().map(String));
      default: return children();
    }
  }
  return node();
}

/** A store, a snapshot of one, or a transaction: any command is a method. */
class Handle {
  constructor(db) {
    this.db = db;
    // Every other property is a command.
    return new Proxy(this, {
      get: (self, name) => (name in self ? self[name] : (...args) => self.command(name, ...args)),
    });
  }
  command(...words) {
    const bytes = packed(words);
    const reply = given(c.packed, this.db, bytes, bytes.length);
    try {
      const [answer] = decoded(reply);
      if (answer instanceof ReplyError) throw answer;
      return answer;
    } finally {
      c.freeReply(reply);
    }
  }
  snapshot() { return new Handle(given(c.snapshot, this.db)); }
  /** Runs the body in a transaction and commits it; again after conflicts. */
  transact(body, attempts = 100) {
    for (let left = attempts; ; left--) {
      const transaction = new Handle(given(c.begin, this.db));
      try {
        const result = body(transaction);
        checked(c.commit, transaction.db);
        return result;
      } catch (error) {
        if (error.code !== CONFLICT || left <= 1) throw error;
      } finally {
        transaction.close();
      }
    }
  }
  close() {
    const { db } = this;
    this.db = null;
    checked(c.close, db);
  }
}

function open(path, options = {}) {
  const all = c.newOptions();
  try {
    for (const [name, value] of Object.entries(options)) {
      checked(c.setOption, all, name, String(value));
    }
    return new Handle(given(c.open, path, all));
  } finally {
    c.freeOptions(all);
  }
}

module.exports = { open, LsmkvError, ReplyError };

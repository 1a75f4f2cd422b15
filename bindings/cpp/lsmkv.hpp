// lsmkv for C++17 and later: move-only RAII over the C ABI in lsmkv.h, header only.
//
//     lsmkv::Db db("/path/to/store", {{"sync", "always"}});
//     db.set("key", "value");
//     if (auto value = db.get("key")) std::cout << value->view();
//     db.hset("user:1", {{"name", "alice"}, {"city", "Paris"}});
//     for (auto [field, value] : db.hgetall("user:1").pairs()) ...
//     db.transact([](lsmkv::Transaction &t) { t.decrby("a", 5); t.incrby("b", 5); });
//
// Commands   Every command function of lsmkv.h is a method of that name, on each handle that
//            accepts it: reads on Snapshot, writes on Batch, both on the others. A parameter of
//            several keys or values is an initializer list or a container. A method keeps the
//            suffix `_many` if there is also a form for one.
// Failures   throw lsmkv::Error, whose code() is the status. The form with `try_` before its name
//            does not throw: it returns a Result with the status, and the value or the message.
//            A missing key is no failure: such methods return a std::optional.
// Bytes      go in as std::string_view and are used up before the call returns. They come out
//            pinned, not copied: a Value or Reply owns them, and its views are valid as long as it
//            lives, even after the store is closed.
// Threads    Any number of threads may use a Db or Snapshot at once, one at a time the others.
#ifndef LSMKV_HPP
#define LSMKV_HPP

#include "lsmkv/db.hpp"

namespace lsmkv {

/// Returns the version of the loaded library.
inline std::string_view version() noexcept { return lsmkv_version(); }

}  // namespace lsmkv

#endif  // LSMKV_HPP

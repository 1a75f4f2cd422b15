// lsmkv for C++17 and later: move-only RAII over the C ABI in lsmkv.h, header only.
//
//     lsmkv::Db db("/path/to/store", {{"sync", "always"}});
//     db.set("key", "value");
//     if (auto value = db.get("key")) std::cout << value->view();
//
// Keys and values are any bytes. Failures throw lsmkv::Error, whose code() is the status; a
// missing key is no failure. A Db is used from any number of threads at once; moving, assigning
// and destroying it are for one thread alone.
#ifndef LSMKV_HPP
#define LSMKV_HPP

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "lsmkv.h"

namespace lsmkv {

/// A failed call: what() says what to do, code() is what to branch on.
class Error : public std::runtime_error {
public:
    explicit Error(const lsmkv_err &err)
        : std::runtime_error(err.msg), code_(err.code), os_errno_(err.os_errno) {}

    /// One of the negative LSMKV_ constants.
    lsmkv_status code() const noexcept { return code_; }
    /// The operating system's error number, or 0.
    int os_errno() const noexcept { return os_errno_; }

private:
    lsmkv_status code_;
    int os_errno_;
};

namespace detail {

/// Throws if the call failed; else its outcome.
inline lsmkv_status checked(lsmkv_status status, const lsmkv_err &err) {
    if (status < 0) throw Error(err);
    return status;
}

}  // namespace detail

/// A value pinned in the library's memory: valid until it is destroyed, also after the Db is.
class Value {
public:
    Value() noexcept = default;
    Value(Value &&other) noexcept : buf_(std::exchange(other.buf_, lsmkv_buf{})) {}
    Value &operator=(Value &&other) noexcept {
        if (this != &other) {
            lsmkv_buf_release(&buf_);
            buf_ = std::exchange(other.buf_, lsmkv_buf{});
        }
        return *this;
    }
    Value(const Value &) = delete;
    Value &operator=(const Value &) = delete;
    ~Value() { lsmkv_buf_release(&buf_); }

    /// The bytes, for as long as this lives.
    std::string_view view() const noexcept {
        return {reinterpret_cast<const char *>(buf_.data), buf_.len};
    }
    /// A copy of the bytes.
    std::string str() const { return std::string(view()); }
    std::size_t size() const noexcept { return buf_.len; }

private:
    friend class Db;
    lsmkv_buf buf_{};
};

/// An option by name; lsmkv_options_info lists them.
using Option = std::pair<const char *, const char *>;

/// An open store.
class Db {
public:
    /// Opens the store in a directory, or an empty one in memory for ":memory:".
    explicit Db(const std::string &path, std::initializer_list<Option> options = {}) {
        Options given;
        for (const auto &[name, value] : options) given.set(name, value);
        lsmkv_err err;
        detail::checked(lsmkv_open(path.c_str(), given.handle, &db_, &err), err);
    }
    Db(Db &&other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
    Db &operator=(Db &&other) noexcept {
        if (this != &other) {
            lsmkv_close(db_, nullptr);
            db_ = std::exchange(other.db_, nullptr);
        }
        return *this;
    }
    Db(const Db &) = delete;
    Db &operator=(const Db &) = delete;
    /// Closes without a report; call close() to hear of a failing flush.
    ~Db() { lsmkv_close(db_, nullptr); }

    /// Flushes, and releases the directory. The Db is closed whether or not it throws.
    void close() {
        lsmkv_err err;
        detail::checked(lsmkv_close(std::exchange(db_, nullptr), &err), err);
    }

    /// Gives a key a value.
    void set(std::string_view key, std::string_view value) {
        lsmkv_err err;
        detail::checked(
            lsmkv_set(db_, key.data(), key.size(), value.data(), value.size(), &err), err);
    }

    /// The value of a key, pinned and not copied; nothing if there is none.
    std::optional<Value> get(std::string_view key) const {
        lsmkv_err err;
        Value value;
        const auto status = lsmkv_get(db_, key.data(), key.size(), &value.buf_, &err);
        if (detail::checked(status, err) == LSMKV_NOT_FOUND) return std::nullopt;
        return value;
    }

    /// Removes a key; whether it existed.
    bool del(std::string_view key) {
        lsmkv_err err;
        int64_t deleted = 0;
        detail::checked(lsmkv_del(db_, key.data(), key.size(), &deleted, &err), err);
        return deleted != 0;
    }

    /// Whether a key exists.
    bool exists(std::string_view key) const {
        lsmkv_err err;
        int64_t found = 0;
        detail::checked(lsmkv_exists(db_, key.data(), key.size(), &found, &err), err);
        return found != 0;
    }

    /// Makes every write that has returned durable, whatever the sync mode.
    void sync() { upkeep(lsmkv_sync); }
    /// Writes the buffers in memory to tables.
    void flush() { upkeep(lsmkv_flush); }
    /// Merges all tables and drops what is dead.
    void compact() { upkeep(lsmkv_compact); }
    /// Tries at once to write again after LSMKV_FULL.
    void resume() { upkeep(lsmkv_resume); }

    /// The handle, for calls of the C ABI. Still belongs to this Db.
    lsmkv_db *handle() const noexcept { return db_; }

private:
    struct Options {
        Options() : handle(lsmkv_options_new()) {}
        Options(const Options &) = delete;
        Options &operator=(const Options &) = delete;
        ~Options() { lsmkv_options_free(handle); }
        void set(const char *name, const char *value) {
            lsmkv_err err;
            detail::checked(lsmkv_options_set(handle, name, value, &err), err);
        }
        lsmkv_options *handle;
    };

    void upkeep(lsmkv_status (*call)(lsmkv_db *, lsmkv_err *)) {
        lsmkv_err err;
        detail::checked(call(db_, &err), err);
    }

    lsmkv_db *db_ = nullptr;
};

/// The version of the library that is loaded.
inline std::string_view version() { return lsmkv_version(); }

}  // namespace lsmkv

#endif  // LSMKV_HPP

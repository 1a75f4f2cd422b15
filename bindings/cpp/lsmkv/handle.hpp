// The base of every handle: ownership of one lsmkv_db, and commands by name.
#ifndef LSMKV_HANDLE_HPP
#define LSMKV_HANDLE_HPP

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"
#include "input.hpp"
#include "iterator.hpp"
#include "reply.hpp"
#include "value.hpp"

namespace lsmkv {

/// Owns a handle of the C ABI. It moves, does not copy, and closes at the end.
class Handle {
public:
    Handle(Handle &&other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept {
        if (this != &other) {
            lsmkv_close(db_, nullptr);
            db_ = std::exchange(other.db_, nullptr);
        }
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    /// Closes without a report. Call close() to learn of a failed flush.
    ~Handle() { lsmkv_close(db_, nullptr); }

    /// Closes the handle. The handle of an opened store flushes and releases the directory. The
    /// handle is closed even if this throws.
    void close() { try_close().value(); }
    Result<void> try_close() noexcept {
        return Result<void>::of(
            [&](lsmkv_err *err) { return lsmkv_close(std::exchange(db_, nullptr), err); });
    }

    /// The handle for calls of the C ABI. This object keeps ownership.
    lsmkv_db *handle() const noexcept { return db_; }
    /// Whether there is an open handle: false after close() and after a move.
    explicit operator bool() const noexcept { return db_ != nullptr; }

protected:
    Handle() noexcept = default;
    explicit Handle(lsmkv_db *db) noexcept : db_(db) {}

private:
    lsmkv_db *db_ = nullptr;
};

namespace detail {

/// Takes ownership of handles that C functions return.
template <typename T>
struct HandleOutput {
    using type = lsmkv_db *;
    static T made(lsmkv_status, lsmkv_db *output) noexcept { return T(output); }
};

}  // namespace detail

/// Several commands for one call of command().
class Packed {
public:
    /// Adds a command: its name and its arguments.
    Packed &add(const Strings &words) {
        number(words.size());
        for (std::size_t i = 0; i < words.size(); ++i) {
            const lsmkv_slice &word = words.data()[i];
            number(word.len);
            if (word.len > 0) bytes_.append(reinterpret_cast<const char *>(word.data), word.len);
        }
        return *this;
    }
    void clear() noexcept { bytes_.clear(); }
    std::string_view bytes() const noexcept { return bytes_; }

private:
    void number(std::size_t n) {
        // A longer text cannot be a command: the call refuses the block.
        const auto low = n > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(n);
        for (unsigned shift = 0; shift < 32; shift += 8) {
            bytes_.push_back(static_cast<char>((low >> shift) & 0xffU));
        }
    }
    std::string bytes_;
};

/// Runs any command by name, like Redis. An error of the command is a reply that is_error().
template <typename Self>
class Named {
public:
    /// Runs one command: `db.command({"ZADD", "board", "12", "alice"})`.
    Reply command(const Strings &words) { return try_command(words).value(); }
    Result<Reply> try_command(const Strings &words) {
        std::vector<const std::uint8_t *> argv;
        std::vector<std::size_t> lens;
        for (std::size_t i = 0; i < words.size(); ++i) {
            argv.push_back(words.data()[i].data);
            lens.push_back(words.data()[i].len);
        }
        return Result<Reply>::of([&](lsmkv_reply **out, lsmkv_err *err) {
            return lsmkv_command(raw(), argv.size(), argv.data(), lens.data(), out, err);
        });
    }

    /// Runs several commands in one call. Returns an array with one reply per command.
    Reply command(const Packed &commands) { return try_command(commands).value(); }
    Result<Reply> try_command(const Packed &commands) noexcept {
        return Result<Reply>::of([&](lsmkv_reply **out, lsmkv_err *err) {
            const auto bytes = commands.bytes();
            return lsmkv_command_packed(raw(), bytes.data(), bytes.size(), out, err);
        });
    }

private:
    lsmkv_db *raw() const noexcept { return static_cast<const Self *>(this)->handle(); }
};

/// Walks over keys.
template <typename Self>
class Walks {
public:
    /// Walks over the keys within the bounds in byte order, as they are now. Flags:
    /// LSMKV_ITER_REVERSE, LSMKV_ITER_VALUES, LSMKV_ITER_NO_FILL.
    Iterator iterate(const Bounds &bounds = {}, std::uint32_t flags = 0) const {
        return try_iterate(bounds, flags).value();
    }
    Result<Iterator> try_iterate(const Bounds &bounds = {},
                                 std::uint32_t flags = 0) const noexcept {
        return Result<Iterator>::of([&](lsmkv_iter **out, lsmkv_err *err) {
            return lsmkv_iter_new(static_cast<const Self *>(this)->handle(),
                                  detail::MaybeSlice(bounds.lo), detail::MaybeSlice(bounds.hi),
                                  flags, out, err);
        });
    }
};

/// Commits or rolls back a transaction or a batch.
template <typename Self>
class Commits {
public:
    /// Makes all writes visible at once. Throws Error LSMKV_CONFLICT if another commit changed a
    /// key that the transaction read or wrote: begin again.
    void commit() { try_commit().value(); }
    Result<void> try_commit() noexcept {
        return Result<void>::of([&](lsmkv_err *err) { return lsmkv_commit(raw(), err); });
    }
    /// Commits, and waits at most `limit` for other writers. Then throws Error LSMKV_TIMEOUT, and
    /// the commit can be repeated.
    void commit(std::chrono::milliseconds limit) { try_commit(limit).value(); }
    Result<void> try_commit(std::chrono::milliseconds limit) noexcept {
        const auto ms = limit.count() < 0 ? 0 : static_cast<std::uint64_t>(limit.count());
        return Result<void>::of(
            [&](lsmkv_err *err) { return lsmkv_commit_timeout(raw(), ms, err); });
    }
    /// Commits without waiting for the device. Returns a ticket for Db::wait.
    std::uint64_t commit_async() { return try_commit_async().value(); }
    Result<std::uint64_t> try_commit_async() noexcept {
        return Result<std::uint64_t>::of([&](std::uint64_t *ticket, lsmkv_err *err) {
            return lsmkv_commit_async(raw(), ticket, err);
        });
    }
    /// Discards all writes.
    void rollback() { try_rollback().value(); }
    Result<void> try_rollback() noexcept {
        return Result<void>::of([&](lsmkv_err *err) { return lsmkv_rollback(raw(), err); });
    }

private:
    lsmkv_db *raw() const noexcept { return static_cast<const Self *>(this)->handle(); }
};

}  // namespace lsmkv

#endif  // LSMKV_HANDLE_HPP

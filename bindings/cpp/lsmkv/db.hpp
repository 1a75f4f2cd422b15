// The handles: Db, Snapshot, Transaction, Batch, Session.
#ifndef LSMKV_DB_HPP
#define LSMKV_DB_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>

#include "commands.hpp"
#include "handle.hpp"
#include "options.hpp"
#include "server.hpp"

namespace lsmkv {

/// A read-only view of the store at one moment. Any number of threads may use it at once.
class Snapshot : public Handle, public Reads<Snapshot>, public Walks<Snapshot> {
public:
    Snapshot() noexcept = default;
    explicit Snapshot(lsmkv_db *db) noexcept : Handle(db) {}

    /// Returns a view of another database, at the moment of this snapshot.
    inline Snapshot select(std::uint32_t number) const;
};

/// A transaction. Commands see the store as it was at the beginning, plus the transaction's own
/// writes. Others see nothing before the commit. One thread at a time may use it.
class Transaction : public Handle,
                    public Reads<Transaction>,
                    public Writes<Transaction>,
                    public Named<Transaction>,
                    public Walks<Transaction>,
                    public Commits<Transaction> {
public:
    Transaction() noexcept = default;
    explicit Transaction(lsmkv_db *db) noexcept : Handle(db) {}

    /// Returns a handle on another database, within this transaction.
    inline Transaction select(std::uint32_t number);
};

/// Stores write commands and runs them together at the commit: all, or none if one fails. Before
/// that their results are 0 or empty. One thread at a time may use it.
class Batch : public Handle,
              public Writes<Batch>,
              public Named<Batch>,
              public Commits<Batch> {
public:
    Batch() noexcept = default;
    explicit Batch(lsmkv_db *db) noexcept : Handle(db) {}

    /// Removes all commands. A committed batch can then be used again.
    void clear() { try_clear().value(); }
    Result<void> try_clear() noexcept {
        return Result<void>::of([&](lsmkv_err *err) { return lsmkv_batch_clear(handle(), err); });
    }
    /// Sets the priority of the commands that follow; a new batch has 0. Higher priorities run
    /// first.
    void priority(std::int32_t priority) { try_priority(priority).value(); }
    Result<void> try_priority(std::int32_t priority) noexcept {
        return Result<void>::of(
            [&](lsmkv_err *err) { return lsmkv_batch_priority(handle(), priority, err); });
    }
};

/// A connection to the store. command() accepts MULTI, EXEC, WATCH, SELECT and the other connection
/// commands, and keeps their state. One thread at a time may use it.
class Session : public Handle,
                public Reads<Session>,
                public Writes<Session>,
                public Named<Session>,
                public Walks<Session> {
public:
    Session() noexcept = default;
    explicit Session(lsmkv_db *db) noexcept : Handle(db) {}

    /// Waits until a message arrives for the session, after SUBSCRIBE by command(), for at most
    /// this many milliseconds. Returns nothing if none has arrived.
    std::optional<Reply> wait(std::uint64_t timeout_ms = UINT64_MAX) {
        auto message = try_wait(timeout_ms);
        if (message.status() == LSMKV_TIMEOUT) return std::nullopt;
        return std::move(message).value();
    }
    Result<Reply> try_wait(std::uint64_t timeout_ms = UINT64_MAX) noexcept {
        return Result<Reply>::of([&](lsmkv_reply **out, lsmkv_err *err) {
            return lsmkv_session_wait(handle(), timeout_ms, out, err);
        });
    }

    /// Runs one command and does not wait: `session.command_nowait(Packed().add({"BLPOP", "q", "0"}))`.
    /// Returns nothing if the command would wait for an element, such as BLPOP on empty lists; fd()
    /// is readable when it is worth another try. The next command on the session ends that.
    std::optional<Reply> command_nowait(const Packed &command) {
        auto reply = try_command_nowait(command);
        if (reply.status() == LSMKV_TIMEOUT) return std::nullopt;
        return std::move(reply).value();
    }
    Result<Reply> try_command_nowait(const Packed &command) noexcept {
        return Result<Reply>::of([&](lsmkv_reply **out, lsmkv_err *err) {
            const auto bytes = command.bytes();
            return lsmkv_command_nowait(handle(), bytes.data(), bytes.size(), out, err);
        });
    }

    /// A descriptor that is readable while wait() would return at once, or while a command that
    /// command_nowait() did not finish can be tried again. It belongs to the session.
    int fd() {
        std::int32_t descriptor = -1;
        Result<void>::of([&](lsmkv_err *err) {
            return lsmkv_session_fd(handle(), &descriptor, err);
        }).value();
        return descriptor;
    }
};

class Db;

namespace detail {

template <>
struct Output<Snapshot> : HandleOutput<Snapshot> {};
template <>
struct Output<Transaction> : HandleOutput<Transaction> {};
template <>
struct Output<Batch> : HandleOutput<Batch> {};
template <>
struct Output<Session> : HandleOutput<Session> {};
template <>
struct Output<Db> : HandleOutput<Db> {};

template <typename T, typename Call>
Result<T> opened(Call call) noexcept {
    return Result<T>::of([&](lsmkv_db **out, lsmkv_err *err) { return call(out, err); });
}

}  // namespace detail

inline Snapshot Snapshot::select(std::uint32_t number) const {
    return detail::opened<Snapshot>([&](lsmkv_db **out, lsmkv_err *err) {
               return lsmkv_select(handle(), number, out, err);
           })
        .value();
}

inline Transaction Transaction::select(std::uint32_t number) {
    return detail::opened<Transaction>([&](lsmkv_db **out, lsmkv_err *err) {
               return lsmkv_select(handle(), number, out, err);
           })
        .value();
}

/// An open store, or another database or sync mode of one. Any number of threads may use it at
/// once, but only one may move, assign or destroy it. After the Db that opened the store is closed,
/// objects made from it return LSMKV_CLOSED.
class Db : public Handle,
           public Reads<Db>,
           public Writes<Db>,
           public Named<Db>,
           public Walks<Db> {
public:
    /// Creates an empty Db. Every call is LSMKV_MISUSE until another Db is moved here.
    Db() noexcept = default;
    explicit Db(lsmkv_db *db) noexcept : Handle(db) {}
    /// Opens the store in a directory, or an empty store in memory for ":memory:".
    explicit Db(const std::string &path, const Options &options = {})
        : Db(try_open(path, options).value()) {}
    static Result<Db> try_open(const std::string &path, const Options &options = {}) noexcept {
        return detail::opened<Db>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_open(path.c_str(), options.handle(), out, err);
        });
    }

    /// Makes a snapshot of the store as it is now.
    Snapshot snapshot() const { return try_snapshot().value(); }
    Result<Snapshot> try_snapshot() const noexcept {
        return detail::opened<Snapshot>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_snapshot(handle(), out, err);
        });
    }
    /// Returns a handle on another database of the store.
    Db select(std::uint32_t number) const { return try_select(number).value(); }
    Result<Db> try_select(std::uint32_t number) const noexcept {
        return detail::opened<Db>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_select(handle(), number, out, err);
        });
    }
    /// Returns a handle whose writes are as durable as `mode` says: "always", "interval" or "off".
    Db with_sync(const std::string &mode) const { return try_with_sync(mode).value(); }
    Result<Db> try_with_sync(const std::string &mode) const noexcept {
        return detail::opened<Db>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_with_sync(handle(), mode.c_str(), out, err);
        });
    }
    /// Makes a session, with connection state of its own.
    Session session() { return try_session().value(); }
    Result<Session> try_session() noexcept {
        return detail::opened<Session>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_session(handle(), out, err);
        });
    }
    /// Serves the store to other processes on "unix:PATH", "tcp:HOST:PORT" or "tls:HOST:PORT";
    /// port 0 takes a free one. Of the options, those that begin with server_ apply.
    Server serve(const std::string &address, const Options &options = {}) {
        return try_serve(address, options).value();
    }
    Result<Server> try_serve(const std::string &address, const Options &options = {}) noexcept {
        return Result<Server>::of([&](lsmkv_server **out, lsmkv_err *err) {
            return lsmkv_serve(handle(), address.c_str(), options.handle(), out, err);
        });
    }
    /// Makes an empty batch. The only flag is LSMKV_STRICT.
    Batch batch(std::uint32_t flags = 0) { return try_batch(flags).value(); }
    Result<Batch> try_batch(std::uint32_t flags = 0) noexcept {
        return detail::opened<Batch>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_batch(handle(), flags, out, err);
        });
    }
    /// Begins a transaction. transact() also commits it, and retries after conflicts.
    Transaction begin() { return try_begin().value(); }
    Result<Transaction> try_begin() noexcept {
        return detail::opened<Transaction>([&](lsmkv_db **out, lsmkv_err *err) {
            return lsmkv_begin(handle(), out, err);
        });
    }

    /// Runs `body(Transaction &)` in a transaction, commits it, and returns the result of the body.
    /// After a conflict it runs the body again, up to `attempts` times in all, then throws
    /// Error LSMKV_CONFLICT. An exception of the body rolls back.
    template <typename Body>
    auto transact(Body &&body, unsigned attempts = 100)
        -> std::decay_t<std::invoke_result_t<Body &, Transaction &>> {
        for (unsigned left = attempts;; --left) {
            Transaction transaction = begin();
            try {
                return committed(body, transaction);
            } catch (const Error &error) {
                if (error.code() != LSMKV_CONFLICT || left <= 1) throw;
            }
            std::this_thread::yield();
        }
    }

    /// Waits up to `timeout` for the writes of a ticket. Returns whether they are durable.
    bool wait(std::uint64_t ticket, std::chrono::milliseconds timeout) const {
        const auto result = try_wait(ticket, timeout);
        if (result.status() != LSMKV_TIMEOUT) result.value();
        return result.ok();
    }
    /// Waits up to `timeout` for the writes of a ticket. The status is LSMKV_TIMEOUT, an error, if
    /// they are not durable.
    Result<void> try_wait(std::uint64_t ticket, std::chrono::milliseconds timeout) const noexcept {
        const auto ms = timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count());
        return Result<void>::of(
            [&](lsmkv_err *err) { return lsmkv_wait(handle(), ticket, ms, err); });
    }

    /// Turns on key events for all handles of the store: letters of "KEg$lshzxetdmnA", as in Redis's
    /// notify-keyspace-events; "" turns them off.
    void set_keyspace_events(const std::string &classes) {
        try_set_keyspace_events(classes).value();
    }
    Result<void> try_set_keyspace_events(const std::string &classes) noexcept {
        return Result<void>::of([&](lsmkv_err *err) {
            return lsmkv_set_keyspace_events(handle(), classes.c_str(), err);
        });
    }
    /// Sets how much may wait for a subscriber before it is cut off: more than hard_bytes at once, or
    /// more than soft_bytes for soft_seconds. 0 bytes are no limit.
    void set_message_limits(std::size_t hard_bytes, std::size_t soft_bytes,
                            std::uint64_t soft_seconds) {
        try_set_message_limits(hard_bytes, soft_bytes, soft_seconds).value();
    }
    Result<void> try_set_message_limits(std::size_t hard_bytes, std::size_t soft_bytes,
                                        std::uint64_t soft_seconds) noexcept {
        return Result<void>::of([&](lsmkv_err *err) {
            return lsmkv_set_message_limits(handle(), hard_bytes, soft_bytes, soft_seconds, err);
        });
    }

    /// Makes every write that has returned durable, whatever the sync mode.
    void sync() { try_sync().value(); }
    Result<void> try_sync() noexcept { return upkeep(lsmkv_sync); }
    /// Flushes the memtables to tables.
    void flush() { try_flush().value(); }
    Result<void> try_flush() noexcept { return upkeep(lsmkv_flush); }
    /// Merges all tables and drops obsolete data.
    void compact() { try_compact().value(); }
    Result<void> try_compact() noexcept { return upkeep(lsmkv_compact); }
    /// Moves a store opened read_only beside a writer on to what the writer has committed by now.
    void refresh() { try_refresh().value(); }
    Result<void> try_refresh() noexcept { return upkeep(lsmkv_refresh); }
    /// Retries writing at once after LSMKV_FULL.
    void resume() { try_resume().value(); }
    Result<void> try_resume() noexcept { return upkeep(lsmkv_resume); }

    /// Copies the store to a directory that must not exist.
    void checkpoint(const std::string &directory) const { try_checkpoint(directory).value(); }
    Result<void> try_checkpoint(const std::string &directory) const noexcept {
        return Result<void>::of([&](lsmkv_err *err) {
            return lsmkv_checkpoint(handle(), directory.c_str(), err);
        });
    }
    /// Checks the store. Returns an array of the problems found, empty if it is sound.
    Reply check() const { return try_check().value(); }
    Result<Reply> try_check() const noexcept { return report(lsmkv_check); }
    /// Returns statistics: a map of names to integers or doubles.
    Reply stats() const { return try_stats().value(); }
    Result<Reply> try_stats() const noexcept { return report(lsmkv_stats); }

private:
    template <typename Body>
    static auto committed(Body &body, Transaction &transaction)
        -> std::decay_t<std::invoke_result_t<Body &, Transaction &>> {
        if constexpr (std::is_void_v<std::invoke_result_t<Body &, Transaction &>>) {
            body(transaction);
            transaction.commit();
        } else {
            auto result = body(transaction);
            transaction.commit();
            return result;
        }
    }
    Result<void> upkeep(lsmkv_status (*call)(lsmkv_db *, lsmkv_err *)) noexcept {
        return Result<void>::of([&](lsmkv_err *err) { return call(handle(), err); });
    }
    Result<Reply> report(lsmkv_status (*call)(lsmkv_db *, lsmkv_reply **,
                                              lsmkv_err *)) const noexcept {
        return Result<Reply>::of(
            [&](lsmkv_reply **out, lsmkv_err *err) { return call(handle(), out, err); });
    }
};

}  // namespace lsmkv

#endif  // LSMKV_DB_HPP

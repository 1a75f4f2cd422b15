// A store served to other processes: auto server = db.serve("unix:/path/to/socket");
#ifndef LSMKV_SERVER_HPP
#define LSMKV_SERVER_HPP

#include <cstdint>
#include <string>
#include <utility>

#include "error.hpp"
#include "value.hpp"

namespace lsmkv {

/// A server that Db::serve has started. Destroying it stops it: clients are disconnected, the store
/// stays open. Closing the store stops it too.
class Server {
public:
    Server() noexcept = default;
    /// Takes ownership of a server of the C ABI.
    explicit Server(lsmkv_server *server) noexcept : server_(server) {}
    Server(Server &&other) noexcept : server_(std::exchange(other.server_, nullptr)) {}
    Server &operator=(Server &&other) noexcept {
        std::swap(server_, other.server_);
        return *this;
    }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;
    ~Server() { lsmkv_server_stop(server_, nullptr); }

    /// Where it listens, as an address that Db opens in another process.
    std::string address() const {
        const Value found = Result<Value>::of([&](lsmkv_buf *out, lsmkv_err *err) {
                                return lsmkv_server_address(server_, out, err);
                            }).value();
        return std::string(found.view());
    }
    /// The TCP port; 0 on a Unix socket.
    std::int32_t port() const {
        return Result<std::int32_t>::of([&](std::int32_t *out, lsmkv_err *err) {
                   return lsmkv_server_port(server_, out, err);
               })
            .value();
    }
    /// Stops it. A second call does nothing.
    void stop() { try_stop().value(); }
    Result<void> try_stop() noexcept {
        lsmkv_server *server = std::exchange(server_, nullptr);
        return Result<void>::of([&](lsmkv_err *err) { return lsmkv_server_stop(server, err); });
    }

private:
    lsmkv_server *server_ = nullptr;
};

namespace detail {

template <>
struct Output<Server> {
    using type = lsmkv_server *;
    static Server made(lsmkv_status, lsmkv_server *output) noexcept { return Server(output); }
};

}  // namespace detail

}  // namespace lsmkv

#endif  // LSMKV_SERVER_HPP

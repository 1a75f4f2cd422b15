// Results of calls: numbers, and bytes pinned in the library's memory.
#ifndef LSMKV_VALUE_HPP
#define LSMKV_VALUE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "error.hpp"

namespace lsmkv {

/// Bytes pinned in the library's memory, not copied. They are valid until this is destroyed, even
/// after the store is closed.
class Value {
public:
    Value() noexcept = default;
    /// Takes ownership of a buffer of the C ABI.
    explicit Value(const lsmkv_buf &buf) noexcept : buf_(buf) {}
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

    /// The bytes, valid as long as this lives.
    std::string_view view() const noexcept {
        return {reinterpret_cast<const char *>(buf_.data), buf_.len};
    }
    /// Returns a copy of the bytes.
    std::string str() const { return std::string(view()); }
    const char *data() const noexcept { return reinterpret_cast<const char *>(buf_.data); }
    std::size_t size() const noexcept { return buf_.len; }
    bool empty() const noexcept { return buf_.len == 0; }

private:
    lsmkv_buf buf_{};
};

/// The result of SET: whether the key has the new value, and the old value if there was one.
struct Replaced {
    bool done = false;
    std::optional<Value> old;
};

namespace detail {

/// Outputs that need no conversion.
template <typename T>
struct Plain {
    using type = T;
    static T made(lsmkv_status, T output) noexcept { return output; }
};
template <>
struct Output<std::int64_t> : Plain<std::int64_t> {};
template <>
struct Output<std::uint64_t> : Plain<std::uint64_t> {};
template <>
struct Output<std::int32_t> : Plain<std::int32_t> {};
template <>
struct Output<double> : Plain<double> {};

/// C represents a boolean as a number.
template <>
struct Output<bool> {
    using type = std::int64_t;
    static bool made(lsmkv_status, std::int64_t output) noexcept { return output != 0; }
};

template <>
struct Output<Value> {
    using type = lsmkv_buf;
    static Value made(lsmkv_status, const lsmkv_buf &output) noexcept { return Value(output); }
};

struct MemberOutput {
    lsmkv_buf member;
    double score;
};
template <>
struct Output<std::pair<Value, double>> {
    using type = MemberOutput;
    static std::pair<Value, double> made(lsmkv_status, const MemberOutput &output) noexcept {
        return {Value(output.member), output.score};
    }
};

template <>
struct Output<Replaced> {
    using type = lsmkv_buf;
    static Replaced made(lsmkv_status status, const lsmkv_buf &output) noexcept {
        Replaced replaced{status == LSMKV_OK, std::nullopt};
        if (output.data != nullptr) replaced.old.emplace(output);
        return replaced;
    }
};

/// A value, unless the status says that there is none.
template <typename T>
struct Output<std::optional<T>> {
    using type = typename Output<T>::type;
    static std::optional<T> made(lsmkv_status status, const type &output) noexcept {
        if (status != LSMKV_OK) return std::nullopt;
        return Output<T>::made(status, output);
    }
};
/// On a batch the status is OK, but there is no value yet.
template <>
struct Output<std::optional<Value>> {
    using type = lsmkv_buf;
    static std::optional<Value> made(lsmkv_status, const lsmkv_buf &output) noexcept {
        if (output.data == nullptr) return std::nullopt;
        return std::optional<Value>(std::in_place, output);
    }
};

/// A length. It may exceed the caller's buffer (LSMKV_TOO_SMALL).
template <>
struct Output<std::optional<std::size_t>> {
    using type = std::size_t;
    static std::optional<std::size_t> made(lsmkv_status status, std::size_t output) noexcept {
        if (status < 0 || status == LSMKV_NOT_FOUND) return std::nullopt;
        return output;
    }
};

}  // namespace detail
}  // namespace lsmkv

#endif  // LSMKV_VALUE_HPP

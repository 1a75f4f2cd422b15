// The outcome of a call: methods throw Error, and their `try_` forms return Result.
#ifndef LSMKV_ERROR_HPP
#define LSMKV_ERROR_HPP

#include <lsmkv.h>

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace lsmkv {

/// A failed call. People read what(); code branches on code().
class Error : public std::runtime_error {
public:
    explicit Error(const lsmkv_err &err)
        : std::runtime_error(err.msg), code_(err.code), os_errno_(err.os_errno) {}
    Error(lsmkv_status code, const char *message)
        : std::runtime_error(message), code_(code), os_errno_(0) {}

    /// One of the negative LSMKV_ constants.
    lsmkv_status code() const noexcept { return code_; }
    /// The operating system's error number, or 0.
    int os_errno() const noexcept { return os_errno_; }

private:
    lsmkv_status code_;
    int os_errno_;
};

namespace detail {

/// Turns the output of a C function into a T. Each type has a specialisation beside it.
template <typename T>
struct Output;

}  // namespace detail

/// The status of a call, with its value if ok(), otherwise with a message.
template <typename T>
class [[nodiscard]] Result {
public:
    /// Makes the result of a call that fills an output. `call(output, err)` returns the status.
    template <typename Call>
    static Result of(Call call) {
        Result result;
        typename detail::Output<T>::type output{};
        const lsmkv_status status = call(&output, &result.err_);
        result.value_ = detail::Output<T>::made(status, output);
        return result;
    }
    /// Makes a failure that was found before the call.
    static Result failed(lsmkv_status status, const char *message) {
        Result result;
        result.err_ = lsmkv_err{};
        result.err_.code = status;
        std::strncpy(result.err_.msg, message, sizeof result.err_.msg - 1);
        return result;
    }

    /// LSMKV_OK, an outcome such as LSMKV_NOT_FOUND, or a negative number.
    lsmkv_status status() const noexcept { return err_.code; }
    /// Whether there is a value.
    bool ok() const noexcept { return err_.code >= 0; }
    explicit operator bool() const noexcept { return ok(); }
    /// What happened and what to do about it; empty if ok().
    const char *message() const noexcept { return err_.msg; }
    /// The full detail of a failure.
    const lsmkv_err &detail() const noexcept { return err_; }

    /// Returns the value; throws Error if there is none.
    T value() && {
        check();
        return std::move(value_);
    }
    T &value() & {
        check();
        return value_;
    }
    const T &value() const & {
        check();
        return value_;
    }
    /// The value, empty if there is none.
    T &operator*() noexcept { return value_; }
    const T &operator*() const noexcept { return value_; }
    T *operator->() noexcept { return &value_; }
    const T *operator->() const noexcept { return &value_; }

private:
    Result() = default;
    void check() const {
        if (!ok()) throw Error(err_);
    }

    // Not initialised: every call fills it.
    lsmkv_err err_;
    T value_{};
};

/// The status of a call without a value.
template <>
class [[nodiscard]] Result<void> {
public:
    template <typename Call>
    static Result of(Call call) {
        Result result;
        call(&result.err_);
        return result;
    }

    lsmkv_status status() const noexcept { return err_.code; }
    bool ok() const noexcept { return err_.code >= 0; }
    explicit operator bool() const noexcept { return ok(); }
    const char *message() const noexcept { return err_.msg; }
    const lsmkv_err &detail() const noexcept { return err_; }

    /// Throws Error if the call failed.
    void value() const {
        if (!ok()) throw Error(err_);
    }

private:
    Result() = default;
    lsmkv_err err_;
};

}  // namespace lsmkv

#endif  // LSMKV_ERROR_HPP

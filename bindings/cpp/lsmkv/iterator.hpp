// Walks over the keys of a store as a range: for (const auto &entry : db.iterate()) ...
#ifndef LSMKV_ITERATOR_HPP
#define LSMKV_ITERATOR_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "error.hpp"
#include "reply.hpp"

namespace lsmkv {

/// The key at which a walk is. The bytes are valid until the walk moves on.
struct Entry {
    std::string_view key;
    /// The type: LSMKV_STRING, LSMKV_HASH and so on.
    std::int32_t type = 0;
    /// The value of a string, if LSMKV_ITER_VALUES was given.
    std::string_view value;
};

/// A walk over keys, once, from its position to the end. One thread at a time may use it. It keeps
/// the files that it reads, and may outlive the store (LSMKV_CLOSED).
class Iterator {
public:
    Iterator() noexcept = default;
    /// Takes ownership of an iterator of the C ABI.
    explicit Iterator(lsmkv_iter *iter) noexcept : iter_(iter) {}
    Iterator(Iterator &&other) noexcept
        : iter_(std::exchange(other.iter_, nullptr)), entry_(other.entry_) {}
    Iterator &operator=(Iterator &&other) noexcept {
        if (this != &other) {
            lsmkv_iter_free(iter_);
            iter_ = std::exchange(other.iter_, nullptr);
            entry_ = other.entry_;
        }
        return *this;
    }
    Iterator(const Iterator &) = delete;
    Iterator &operator=(const Iterator &) = delete;
    ~Iterator() { lsmkv_iter_free(iter_); }

    /// Moves to the next key. Returns false at the end, and throws on damage, so false always means
    /// the end.
    bool next() {
        lsmkv_err err;
        const lsmkv_status status = advance(&err);
        if (status < 0) throw Error(err);
        return status == LSMKV_OK;
    }
    /// Moves to the next key. The status is LSMKV_DONE at the end.
    Result<void> try_next() noexcept {
        return Result<void>::of([&](lsmkv_err *err) { return advance(err); });
    }
    /// The current key, after next() returned true.
    const Entry &entry() const noexcept { return entry_; }

    /// Returns several keys in one call: an array of alternating key and type, or key, type and
    /// value. Returns nothing at the end.
    std::optional<Reply> next_chunk(std::size_t max_items, std::size_t max_bytes = 1 << 20) {
        return try_next_chunk(max_items, max_bytes).value();
    }
    Result<std::optional<Reply>> try_next_chunk(std::size_t max_items,
                                                std::size_t max_bytes = 1 << 20) noexcept {
        return Result<std::optional<Reply>>::of([&](lsmkv_reply **out, lsmkv_err *err) {
            return lsmkv_iter_next_chunk(iter_, max_items, max_bytes, out, err);
        });
    }

    struct Sentinel {};
    class Position {
    public:
        using iterator_concept = std::input_iterator_tag;
        using iterator_category = std::input_iterator_tag;
        using value_type = Entry;
        using difference_type = std::ptrdiff_t;
        using pointer = const Entry *;
        using reference = const Entry &;

        Position() noexcept = default;
        explicit Position(Iterator *walk) : walk_(walk) { ++*this; }
        const Entry &operator*() const noexcept { return walk_->entry_; }
        const Entry *operator->() const noexcept { return &walk_->entry_; }
        Position &operator++() {
            if (!walk_->next()) walk_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const Position &at, Sentinel) noexcept { return !at.walk_; }
        friend bool operator!=(const Position &at, Sentinel) noexcept { return at.walk_; }
        friend bool operator==(Sentinel, const Position &at) noexcept { return !at.walk_; }
        friend bool operator!=(Sentinel, const Position &at) noexcept { return at.walk_; }

    private:
        Iterator *walk_ = nullptr;
    };
    Position begin() { return Position(this); }
    Sentinel end() const noexcept { return {}; }

private:
    lsmkv_status advance(lsmkv_err *err) noexcept {
        lsmkv_slice key{}, value{};
        entry_ = Entry();
        const lsmkv_status status = lsmkv_iter_next(iter_, &key, &entry_.type, &value, err);
        entry_.key = {reinterpret_cast<const char *>(key.data), key.len};
        entry_.value = {reinterpret_cast<const char *>(value.data), value.len};
        return status;
    }

    lsmkv_iter *iter_ = nullptr;
    Entry entry_;
};

namespace detail {

template <>
struct Output<Iterator> {
    using type = lsmkv_iter *;
    static Iterator made(lsmkv_status, lsmkv_iter *output) noexcept { return Iterator(output); }
};

}  // namespace detail
}  // namespace lsmkv

#endif  // LSMKV_ITERATOR_HPP

// Parameters with several keys or values, from initializer lists or containers. They only point at
// the caller's bytes and live for one call.
#ifndef LSMKV_INPUT_HPP
#define LSMKV_INPUT_HPP

#include <lsmkv.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace lsmkv {
namespace detail {

inline lsmkv_slice slice(std::string_view bytes) noexcept {
    return {reinterpret_cast<const std::uint8_t *>(bytes.data()), bytes.size()};
}

template <typename Container>
using ElementOf = decltype(*std::begin(std::declval<const Container &>()));

/// Bytes or nothing, where C takes a pointer to a slice or NULL.
class MaybeSlice {
public:
    explicit MaybeSlice(const std::optional<std::string_view> &bytes) noexcept
        : given_(bytes.has_value()), slice_(slice(bytes.value_or(std::string_view()))) {}
    operator const lsmkv_slice *() const noexcept { return given_ ? &slice_ : nullptr; }

private:
    bool given_;
    lsmkv_slice slice_;
};

}  // namespace detail

/// Several keys, fields, members or values: `{"a", "b"}`, or a container of strings.
class Strings {
public:
    Strings() = default;
    Strings(std::initializer_list<std::string_view> items) { fill(items); }
    template <typename Container,
              typename = std::enable_if_t<std::is_convertible<detail::ElementOf<Container>,
                                                              std::string_view>::value>>
    Strings(const Container &items) {
        fill(items);
    }

    const lsmkv_slice *data() const noexcept { return slices_.data(); }
    std::size_t size() const noexcept { return slices_.size(); }

private:
    template <typename Items>
    void fill(const Items &items) {
        for (const auto &item : items) slices_.push_back(detail::slice(item));
    }
    std::vector<lsmkv_slice> slices_;
};

/// Several pairs of bytes: `{{"name", "alice"}, {"city", "Paris"}}`, or a map.
class Pairs {
public:
    using Pair = std::pair<std::string_view, std::string_view>;

    Pairs(std::initializer_list<Pair> items) { fill(items); }
    template <typename Container,
              typename = std::enable_if_t<
                  std::is_convertible<detail::ElementOf<Container>, Pair>::value>>
    Pairs(const Container &items) {
        fill(items);
    }

    const lsmkv_slice *data() const noexcept { return slices_.data(); }
    /// The number of pairs; data() holds twice as many slices.
    std::size_t size() const noexcept { return slices_.size() / 2; }

private:
    template <typename Items>
    void fill(const Items &items) {
        for (const auto &[first, second] : items) {
            slices_.push_back(detail::slice(first));
            slices_.push_back(detail::slice(second));
        }
    }
    std::vector<lsmkv_slice> slices_;
};

/// Several members with their scores: `{{12, "alice"}, {7.5, "bob"}}`, or a container of them.
class Scored {
public:
    using Pair = std::pair<double, std::string_view>;

    Scored(std::initializer_list<Pair> items) { fill(items); }
    template <typename Container,
              typename = std::enable_if_t<
                  std::is_convertible<detail::ElementOf<Container>, Pair>::value>>
    Scored(const Container &items) {
        fill(items);
    }

    const lsmkv_slice *data() const noexcept { return slices_.data(); }
    std::size_t size() const noexcept { return slices_.size(); }
    const double *scores() const noexcept { return scores_.data(); }

private:
    template <typename Items>
    void fill(const Items &items) {
        for (const auto &[score, member] : items) {
            scores_.push_back(score);
            slices_.push_back(detail::slice(member));
        }
    }
    std::vector<lsmkv_slice> slices_;
    std::vector<double> scores_;
};

/// Several Ts in contiguous memory: an initializer list, a vector, an array.
template <typename T>
class List {
public:
    List() = default;
    List(std::initializer_list<T> items) noexcept : List(items.begin(), items.end()) {}
    template <typename Container,
              typename = std::enable_if_t<std::is_convertible<
                  decltype(std::data(std::declval<const Container &>())), const T *>::value>>
    List(const Container &items) noexcept : data_(std::data(items)), size_(std::size(items)) {}

    /// NULL if there are none.
    const T *data() const noexcept { return size_ == 0 ? nullptr : data_; }
    std::size_t size() const noexcept { return size_; }

private:
    List(const T *begin, const T *end) noexcept
        : data_(begin), size_(static_cast<std::size_t>(end - begin)) {}

    const T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// The keys from `lo` to `hi`, `hi` excluded. An absent bound leaves that end open.
struct Bounds {
    std::optional<std::string> lo{};
    std::optional<std::string> hi{};

    /// The bounds of the keys that begin with these bytes.
    static Bounds prefix(std::string_view bytes) {
        std::string end(bytes);
        while (!end.empty() && end.back() == '\xff') end.pop_back();
        if (end.empty()) return {std::string(bytes), std::nullopt};
        end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
        return {std::string(bytes), std::move(end)};
    }
};

}  // namespace lsmkv

#endif  // LSMKV_INPUT_HPP

// Options of a store, by name.
#ifndef LSMKV_OPTIONS_HPP
#define LSMKV_OPTIONS_HPP

#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"

namespace lsmkv {

/// The description of an option.
struct OptionInfo {
    std::string_view name;
    std::string_view default_value;
    std::string_view doc;
};

/// Options for opening: `{{"sync", "always"}, {"memory_budget", "64MiB"}}`. Others have their
/// defaults. An unknown name or value throws Error, which names the nearest one.
class Options {
public:
    Options() : options_(lsmkv_options_new()) {
        if (options_ == nullptr) throw std::bad_alloc();
    }
    Options(std::initializer_list<std::pair<const char *, const char *>> all) : Options() {
        for (const auto &[name, value] : all) set(name, value);
    }
    Options(Options &&other) noexcept : options_(std::exchange(other.options_, nullptr)) {}
    Options &operator=(Options &&other) noexcept {
        std::swap(options_, other.options_);
        return *this;
    }
    Options(const Options &) = delete;
    Options &operator=(const Options &) = delete;
    ~Options() { lsmkv_options_free(options_); }

    Options &set(const std::string &name, const std::string &value) {
        try_set(name, value).value();
        return *this;
    }
    Result<void> try_set(const std::string &name, const std::string &value) noexcept {
        return Result<void>::of([&](lsmkv_err *err) {
            return lsmkv_options_set(options_, name.c_str(), value.c_str(), err);
        });
    }

    /// Returns every option.
    static std::vector<OptionInfo> all() {
        std::vector<OptionInfo> found;
        const char *name, *value, *doc;
        while (lsmkv_options_info(found.size(), &name, &value, &doc) == LSMKV_OK) {
            found.push_back({name, value, doc});
        }
        return found;
    }

    /// The options for calls of the C ABI. This object keeps ownership.
    const lsmkv_options *handle() const noexcept { return options_; }

private:
    lsmkv_options *options_;
};

}  // namespace lsmkv

#endif  // LSMKV_OPTIONS_HPP

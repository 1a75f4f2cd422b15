// What the programs share: answers as text, and the status that a call throws.
#ifndef LSMKV_TEST_SHOW_HPP
#define LSMKV_TEST_SHOW_HPP

#include "../c/place.h"

#include <lsmkv.hpp>
#include <string>

#include "../c/check.h"

/// nil, 7, ~1.5, +OK, !ERR text, text, [array], {key value}, <set>.
static std::string show(const lsmkv::Node &node) {
    using lsmkv::Kind;
    switch (node.kind()) {
        case Kind::nil: return "nil";
        case Kind::integer: return std::to_string(node.integer());
        case Kind::status: return "+" + node.str();
        case Kind::error: return "!" + node.str();
        case Kind::string: return node.str();
        case Kind::real: {
            char text[32];
            snprintf(text, sizeof text, "~%g", node.real());
            return text;
        }
        default: break;
    }
    const char *marks = node.kind() == Kind::map ? "{}" : node.kind() == Kind::set ? "<>" : "[]";
    std::string text(1, marks[0]);
    const char *between = "";
    for (const auto child : node) {
        text += between + show(child);
        between = " ";
    }
    return text + marks[1];
}
static std::string show(const std::optional<lsmkv::Value> &value) {
    return value ? value->str() : "nil";
}
static std::string show(const lsmkv::Value &value) { return value.str(); }
static std::string show(const std::optional<lsmkv::Reply> &reply) {
    return reply ? show(*reply) : "none";
}

static void check_shown(const std::string &found, const char *wanted, const char *text,
                        const char *file, int line) {
    if (found != wanted) {
        printf("    %s:%d: %s gave %s, not %s\n", file, line, text, found.c_str(), wanted);
        check_story_failed = 1;
    }
}
#define SHOWS(call, wanted) check_shown(show(call), (wanted), #call, __FILE__, __LINE__)

template <typename Call>
static lsmkv_status thrown_by(Call call) {
    try {
        call();
    } catch (const lsmkv::Error &error) {
        return error.what()[0] == 0 ? LSMKV_OK : error.code();
    }
    return LSMKV_OK;
}

#endif

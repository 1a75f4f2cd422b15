// The C++ binding: ownership, values, exceptions.
#include <lsmkv.hpp>
#include <type_traits>

#include "../c/check.h"

static_assert(!std::is_copy_constructible<lsmkv::Db>::value, "a handle has one owner");
static_assert(std::is_nothrow_move_constructible<lsmkv::Db>::value, "");
static_assert(!std::is_copy_constructible<lsmkv::Value>::value, "a pin has one owner");

template <typename Call>
static lsmkv_status thrown_by(Call call) {
    try {
        call();
    } catch (const lsmkv::Error &error) {
        return error.what()[0] == 0 ? LSMKV_OK : error.code();
    }
    return LSMKV_OK;
}

STORY(values_are_set_read_and_deleted_and_survive_reopening) {
    {
        lsmkv::Db db(check_dir, {{"sync", "always"}, {"memory_budget", "32MiB"}});
        db.set("k", "v");
        db.set(std::string_view("a\0b", 3), "");
        CHECK(db.get("k")->view() == "v");
        CHECK(!db.get("none"));
        CHECK(db.exists("k") && !db.exists("none"));
        db.sync();
        db.flush();
    }
    lsmkv::Db db(check_dir);
    CHECK(db.get("k")->str() == "v");
    CHECK(db.get(std::string_view("a\0b", 3))->size() == 0);
    db.compact();
    db.resume();
    CHECK(db.del("k"));
    CHECK(!db.del("k"));
    db.close();
}

STORY(failures_are_exceptions_with_the_status) {
    lsmkv::Db db(check_dir);
    STATUS(thrown_by([] { lsmkv::Db again(check_dir); }), LSMKV_BUSY);
    STATUS(thrown_by([] { lsmkv::Db(":memory:", {{"sink", "off"}}); }), LSMKV_INVALID);
    db.close();
    STATUS(thrown_by([&] { db.set("k", "v"); }), LSMKV_MISUSE);
    db.close();
}

STORY(handles_and_values_move) {
    lsmkv::Db one(":memory:");
    one.set("k", std::string(5000, 'x'));
    lsmkv::Db two = std::move(one);
    CHECK(one.handle() == nullptr);
    lsmkv::Value value = std::move(*two.get("k"));
    lsmkv::Value other;
    other = std::move(value);
    CHECK(value.size() == 0);
    two = lsmkv::Db(":memory:");
    CHECK(!two.get("k"));
    CHECK(other.view() == std::string(5000, 'x'));
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(values_are_set_read_and_deleted_and_survive_reopening);
    RUN(failures_are_exceptions_with_the_status);
    RUN(handles_and_values_move);
    return END();
}

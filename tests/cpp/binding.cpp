// The C++ binding: ownership, values, replies, results, exceptions.
#include <iterator>
#include <map>
#include <type_traits>
#include <vector>

#include "show.hpp"

// Templates are compiled where they are used: this uses all of them.
template class lsmkv::Reads<lsmkv::Db>;
template class lsmkv::Writes<lsmkv::Db>;

template <typename T>
constexpr bool has_one_owner = !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                               std::is_nothrow_move_constructible_v<T> &&
                               std::is_nothrow_move_assignable_v<T>;
static_assert(has_one_owner<lsmkv::Db> && has_one_owner<lsmkv::Snapshot>, "");
static_assert(has_one_owner<lsmkv::Transaction> && has_one_owner<lsmkv::Batch>, "");
static_assert(has_one_owner<lsmkv::Session> && has_one_owner<lsmkv::Iterator>, "");
static_assert(has_one_owner<lsmkv::Value> && has_one_owner<lsmkv::Reply>, "");
static_assert(has_one_owner<lsmkv::Options>, "");
static_assert(sizeof(lsmkv::Db) == sizeof(lsmkv_db *), "a handle is a pointer");

#if __cplusplus >= 202002L && __has_include(<ranges>)
#include <ranges>
#ifdef __cpp_lib_ranges
static_assert(std::ranges::forward_range<lsmkv::Reply>);
static_assert(std::ranges::forward_range<lsmkv::PairRange<lsmkv::Reply>>);
static_assert(std::ranges::input_range<lsmkv::Iterator>);
#endif
#endif

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
    CHECK(db.get(std::string_view("a\0b", 3))->empty());
    db.compact();
    db.resume();
    CHECK(db.del("k") == 1);
    CHECK(db.del("k") == 0);
    db.close();
}

STORY(a_reader_beside_the_writer_moves_on_when_asked) {
    lsmkv::Db db(check_dir);
    db.set("k", "1");
    lsmkv::Db reader(check_dir, {{"read_only", "on"}});
    db.set("k", "2");
    SHOWS(reader.get("k"), check_store == NULL || check_shared ? "1" : "2");
    reader.refresh();
    CHECK(reader.get("k")->str() == "2");
    db.refresh();
    STATUS(thrown_by([&] { reader.set("k", "3"); }), LSMKV_READONLY);
}

STORY(failures_are_exceptions_with_the_status) {
    lsmkv::Db db(check_dir);
    /* A remote store can be opened any number of times. */
    STATUS(thrown_by([] { lsmkv::Db again(check_dir); }), check_store == NULL ? LSMKV_BUSY : LSMKV_OK);
    STATUS(thrown_by([] { lsmkv::Db(":memory:", {{"sink", "off"}}); }), LSMKV_INVALID);
    db.set("text", "abc");
    STATUS(thrown_by([&] { db.incr("text"); }), LSMKV_NOT_INTEGER);
    STATUS(thrown_by([&] { db.lrange("text", 0, 1); }), LSMKV_WRONGTYPE);
    db.close();
    STATUS(thrown_by([&] { db.set("k", "v"); }), LSMKV_MISUSE);
    db.close();
}

STORY(results_carry_the_status_and_the_value_or_the_message) {
    auto opened = lsmkv::Db::try_open(check_dir);
    CHECK(opened.ok() && opened.status() == LSMKV_OK && opened.message()[0] == 0);
    lsmkv::Db db = std::move(opened).value();
    if (check_store == NULL) {
        const auto refused = lsmkv::Db::try_open(check_dir);
        CHECK(!refused && refused.status() == LSMKV_BUSY && refused.message()[0] != 0);
        STATUS(thrown_by([&] { refused.value(); }), LSMKV_BUSY);
    }

    CHECK(db.try_set("k", "v"));
    const auto found = db.try_get("k");
    CHECK(found && *found && found->value().view() == "v");
    const auto missing = db.try_get("none");
    CHECK(missing && !*missing && missing.status() == LSMKV_NOT_FOUND);
    const auto wrong = db.try_hget("k", "f");
    CHECK(!wrong && !*wrong && wrong.status() == LSMKV_WRONGTYPE);
    CHECK(wrong.detail().code == LSMKV_WRONGTYPE);
    CHECK(db.try_close());
}

STORY(handles_values_and_replies_move) {
    lsmkv::Db one(check_dir);
    one.set("k", std::string(5000, 'x'));
    lsmkv::Db two = std::move(one);
    CHECK(one.handle() == nullptr && !one && two);
    lsmkv::Value value = std::move(*two.get("k"));
    lsmkv::Value other;
    other = std::move(value);
    CHECK(value.size() == 0);
    two.rpush_many("l", {"a", "b"});
    lsmkv::Reply reply = two.lrange("l", 0, -1);
    lsmkv::Reply moved = std::move(reply);
    CHECK(reply.is_nil() && reply.empty());
    reply = std::move(moved);
    two = lsmkv::Db(":memory:");
    CHECK(!two.get("k"));
    CHECK(other.view() == std::string(5000, 'x'));
    SHOWS(reply, "[a b]");
}

STORY(lists_of_arguments_come_from_anywhere) {
    lsmkv::Db db(check_dir);
    const std::map<std::string, std::string> fields{{"name", "alice"}, {"city", "Paris"}};
    CHECK(db.hset("h", fields) == 2);
    CHECK(db.hset("h", {{"name", "bob"}}) == 0);
    SHOWS(db.hmget("h", {"name", "none", "city"}), "[bob nil Paris]");
    const std::vector<std::string> members{"a", "b"};
    CHECK(db.sadd_many("s", members) == 2);
    const std::string_view more[] = {"b", "c"};
    CHECK(db.sadd_many("s", more) == 1);
    const std::map<double, std::string> board{{1.5, "x"}, {2, "y"}};
    CHECK(db.zadd("z", board) == 2);
    CHECK(db.zadd("z", {{3, "y"}, {4, "w"}}) == 1);
    SHOWS(db.zrange_opt("z", 0, -1, LSMKV_WITHSCORES), "[x ~1.5 y ~3 w ~4]");
    STATUS(thrown_by([&] { db.del_many({}); }), LSMKV_INVALID);
}

STORY(replies_are_ranges) {
    lsmkv::Db db(check_dir);
    db.rpush_many("l", {"a", "", "c"});
    std::string joined;
    for (const auto item : db.lrange("l", 0, -1)) joined += "<" + item.str() + ">";
    CHECK(joined == "<a><><c>");
    const lsmkv::Reply list = db.lrange("l", 0, -1);
    CHECK(list.size() == 3 && list[2].view() == "c" && list.strings().size() == 3);
    CHECK(std::distance(list.begin(), list.end()) == 3);
    CHECK(list.begin()->view() == "a");
    STATUS(thrown_by([&] { list[3]; }), LSMKV_OUT_OF_RANGE);
    STATUS(thrown_by([&] { list.integer(); }), LSMKV_INVALID);
    STATUS(thrown_by([&] { list.pairs(); }), LSMKV_INVALID);

    db.hset("h", {{"f", "1"}, {"g", "2"}});
    std::map<std::string, std::string> copied;
    for (const auto [field, value] : db.hgetall("h").pairs()) copied[field.str()] = value.str();
    CHECK(copied == (std::map<std::string, std::string>{{"f", "1"}, {"g", "2"}}));
    CHECK(db.hgetall("none").empty() && db.hgetall("none").pairs().size() == 0);
    const auto maybe = db.mget({"none"})[0].maybe();
    CHECK(!maybe);
}

STORY(nested_replies_are_walked_past) {
    lsmkv::Db db(check_dir);
    db.rpush_many("l", {"a", "b"});
    lsmkv::Packed several;
    several.add({"LRANGE", "l", "0", "-1"}).add({"NO", "SUCH"}).add({"LLEN", "l"});
    const lsmkv::Reply all = db.command(several);
    CHECK(all.size() == 3 && all[2].integer() == 2);
    SHOWS(all[0], "[a b]");
    CHECK(all[1].is_error());
    STATUS(thrown_by([&] { all[1].integer(); }), LSMKV_INVALID);
    STATUS(thrown_by([&] { all[1].checked(); }), LSMKV_INVALID);
    SHOWS(db.command({"ZADD", "z", "1", "m"}), "1");
    STATUS(db.try_command(lsmkv::Strings()).status(), LSMKV_INVALID);
    SHOWS(db.session().try_command({"PING"}).value(), "+PONG");
}

STORY(options_are_listed_and_checked) {
    const auto all = lsmkv::Options::all();
    bool found = false;
    for (const auto &option : all) found = found || (option.name == "sync" && !option.doc.empty());
    CHECK(found);
    lsmkv::Options options;
    options.set("sync", "off").set("databases", "2");
    CHECK(!options.try_set("sync", "sometimes"));
    lsmkv::Db db(":memory:", options);
    STATUS(thrown_by([&] { db.select(2); }), LSMKV_OUT_OF_RANGE);
    CHECK(lsmkv::version() == LSMKV_VERSION);
}

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(values_are_set_read_and_deleted_and_survive_reopening);
    RUN(a_reader_beside_the_writer_moves_on_when_asked);
    RUN(failures_are_exceptions_with_the_status);
    RUN(results_carry_the_status_and_the_value_or_the_message);
    RUN(handles_values_and_replies_move);
    RUN(lists_of_arguments_come_from_anywhere);
    RUN(replies_are_ranges);
    RUN(nested_replies_are_walked_past);
    RUN(options_are_listed_and_checked);
    return END();
}

// The handles of the C++ binding: databases, snapshots, transactions, batches, sessions, walks.
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "show.hpp"

using std::chrono::milliseconds;

STORY(a_snapshot_stays_as_it_is) {
    lsmkv::Db db(check_dir);
    db.set("k", "old");
    const lsmkv::Snapshot then = db.snapshot();
    db.set("k", "new");
    db.select(3).set("k", "three");
    SHOWS(then.get("k"), "old");
    SHOWS(then.select(3).get("k"), "nil");
    SHOWS(db.get("k"), "new");
    db.close();
    STATUS(then.try_get("k").status(), LSMKV_CLOSED);
}

STORY(a_transaction_is_seen_at_its_commit_or_never) {
    lsmkv::Db db(check_dir);
    {
        lsmkv::Transaction forgotten = db.begin();
        forgotten.set("k", "v");
        SHOWS(forgotten.get("k"), "v");
    }
    SHOWS(db.get("k"), "nil");
    lsmkv::Transaction kept = db.begin();
    kept.set("k", "v");
    kept.select(1).set("k", "one");
    kept.commit(milliseconds(1000));
    STATUS(kept.try_commit().status(), LSMKV_CLOSED);
    lsmkv::Transaction undone = db.begin();
    undone.set("k", "w");
    undone.rollback();
    STATUS(undone.try_get("k").status(), LSMKV_CLOSED);
    db.close();
    lsmkv::Db again(check_dir);
    SHOWS(again.get("k"), "v");
    SHOWS(again.select(1).get("k"), "one");
}

STORY(a_transaction_that_was_overtaken_conflicts) {
    lsmkv::Db db(check_dir);
    db.set("k", "1");
    lsmkv::Transaction late = db.begin();
    late.incr("k");
    db.set("k", "5");
    STATUS(late.try_commit().status(), LSMKV_CONFLICT);
    SHOWS(db.get("k"), "5");
}

STORY(transact_runs_again_after_a_conflict) {
    lsmkv::Db db(check_dir);
    db.set("k", "1");
    int runs = 0;
    const auto sum = db.transact([&](lsmkv::Transaction &txn) {
        const auto now = txn.incr("k");
        if (++runs < 3) db.set("k", "10");
        return now;
    });
    CHECK(runs == 3 && sum == 11);
    SHOWS(db.get("k"), "11");

    runs = 0;
    STATUS(thrown_by([&] {
               db.transact(
                   [&](lsmkv::Transaction &txn) {
                       txn.incr("k");
                       db.set("k", std::to_string(++runs));
                   },
                   4);
           }),
           LSMKV_CONFLICT);
    CHECK(runs == 4);
}

STORY(what_the_body_of_transact_throws_rolls_back) {
    lsmkv::Db db(check_dir);
    bool caught = false;
    try {
        db.transact([](lsmkv::Transaction &txn) {
            txn.set("k", "v");
            throw std::logic_error("no");
        });
    } catch (const std::logic_error &) {
        caught = true;
    }
    CHECK(caught && !db.get("k"));
}

STORY(threads_that_transact_lose_no_update) {
    lsmkv::Db db(check_dir);
    db.mset({{"from", "400"}, {"to", "0"}});
    /* If the store has no transactions, this says so, and not a thread. */
    db.begin().rollback();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int n = 0; n < 50; ++n) {
                db.transact(
                    [](lsmkv::Transaction &txn) {
                        const auto left = std::stoll(txn.get("from")->str());
                        txn.set("from", std::to_string(left - 1));
                        txn.incr("to");
                    },
                    1000000);
            }
        });
    }
    for (auto &thread : threads) thread.join();
    SHOWS(db.mget({"from", "to"}), "[200 200]");
}

STORY(a_batch_runs_at_its_commit_and_can_be_used_again) {
    lsmkv::Db db(check_dir);
    db.set("text", "abc");
    lsmkv::Batch batch = db.batch();
    batch.rpush_many("l", {"a", "b"});
    CHECK(batch.hset("h", {{"f", "1"}, {"g", "2"}}) == 0);
    CHECK(!batch.getdel("text"));
    CHECK(batch.command({"SET", "named", "1"}).is_nil());
    CHECK(db.llen("l") == 0);
    batch.commit();
    SHOWS(db.lrange("l", 0, -1), "[a b]");
    CHECK(db.hlen("h") == 2 && !db.get("text"));
    SHOWS(db.get("named"), "1");

    batch.clear();
    batch.set("k", "low");
    batch.priority(1);
    batch.set("k", "high");
    const auto ticket = batch.commit_async();
    CHECK(db.wait(ticket, milliseconds(60000)));
    SHOWS(db.get("k"), "low");

    lsmkv::Batch wrong = db.batch(LSMKV_STRICT);
    wrong.set("a", "1");
    wrong.del("none");
    STATUS(thrown_by([&] { wrong.commit(); }), LSMKV_NO_SUCH_KEY);
    CHECK(!db.get("a"));
}

STORY(a_session_remembers_as_a_connection_does) {
    lsmkv::Db db(check_dir);
    lsmkv::Session session = db.session();
    session.command({"SELECT", "2"});
    session.set("k", "two");
    session.command({"WATCH", "k"});
    session.command({"MULTI"});
    SHOWS(session.command({"INCR", "n"}), "+QUEUED");
    SHOWS(session.command({"EXEC"}), "[1]");
    CHECK(!db.get("k"));
    SHOWS(db.select(2).get("k"), "two");
}

STORY(events_of_keys_and_limits_of_messages_are_set) {
    lsmkv::Db db(check_dir);
    lsmkv::Session session = db.session();
    db.set_keyspace_events("K$");
    STATUS(db.try_set_keyspace_events("Q").status(), LSMKV_INVALID);
    session.command({"PSUBSCRIBE", "__key*"});
    db.set("k", "v");
    db.lpush("l", "v");
    SHOWS(session.wait(0), "[pmessage __key* __keyspace@0__:k set]");
    CHECK(!session.wait(0));
    db.set_keyspace_events("");
    db.set("k", "w");
    CHECK(!session.wait(0));
    session.command({"SUBSCRIBE", "c"});
    db.set_message_limits(1000, 0, 0);
    for (int i = 0; i < 100; i++) db.publish("c", "message");
    STATUS(session.try_wait(0).status(), LSMKV_TOO_LARGE);
    db.set_message_limits(0, 0, 0);
    session.command({"SUBSCRIBE", "c"});
    for (int i = 0; i < 1000; i++) db.publish("c", "message");
    SHOWS(session.wait(0), "[message c message]");
}

STORY(a_session_that_does_not_wait_is_told_when_to_try_again) {
    lsmkv::Db db(check_dir);
    lsmkv::Session session = db.session();
    lsmkv::Packed pop;
    pop.add({"BLPOP", "queue", "0"});
    struct pollfd ready = {session.fd(), POLLIN, 0};
    STATUS(session.try_command_nowait(pop).status(), LSMKV_TIMEOUT);
    CHECK(!session.command_nowait(pop) && poll(&ready, 1, 0) == 0);
    db.rpush("queue", "a");
    CHECK(poll(&ready, 1, 5000) == 1 && db.llen("queue") == 1);
    SHOWS(session.command_nowait(pop), "[queue a]");
    CHECK(!session.command_nowait(pop));
    pop.add({"PING"});
    STATUS(thrown_by([&] { session.command_nowait(pop); }), LSMKV_INVALID);
}

STORY(a_walk_is_a_range_over_keys) {
    lsmkv::Db db(check_dir);
    db.mset({{"a", "1"}, {"b:1", "2"}, {"b:2", "3"}, {"c", "4"}});
    db.hset("b:h", "f", "v");
    std::string seen;
    for (const auto &entry : db.iterate()) seen += std::string(entry.key) + " ";
    CHECK(seen == "a b:1 b:2 b:h c ");
    seen.clear();
    for (const auto &[key, type, value] :
         db.iterate(lsmkv::Bounds::prefix("b:"), LSMKV_ITER_VALUES | LSMKV_ITER_REVERSE)) {
        seen += std::string(key) + "=" + std::string(value) + (type == LSMKV_HASH ? "h " : " ");
    }
    CHECK(seen == "b:h=h b:2=3 b:1=2 ");
    auto walk = db.iterate({"b", "b:2"});
    CHECK(walk.next() && walk.entry().key == "b:1");
    CHECK(!walk.next() && !walk.next());
    STATUS(walk.try_next().status(), LSMKV_DONE);
    auto chunks = db.snapshot().iterate();
    SHOWS(chunks.next_chunk(2), "[a 1 b:1 1]");
    lsmkv::Iterator moved = std::move(chunks);
    SHOWS(moved.next_chunk(10), "[b:2 1 b:h 2 c 1]");
    SHOWS(moved.next_chunk(10), "none");
    STATUS(db.try_iterate({}, 1U << 30).status(), LSMKV_INVALID);
}

STORY(a_prefix_ends_where_its_bytes_do) {
    using lsmkv::Bounds;
    CHECK(*Bounds::prefix("a").hi == "b");
    CHECK(*Bounds::prefix("a\xff\xff").hi == "b");
    CHECK(*Bounds::prefix("\x7f").hi == "\x80");
    CHECK(!Bounds::prefix("\xff").hi && *Bounds::prefix("\xff").lo == "\xff");
    CHECK(!Bounds::prefix("").hi);
}

STORY(a_walk_outlives_its_store) {
    lsmkv::Db db(check_dir);
    db.set("k", "v");
    lsmkv::Iterator walk = db.iterate();
    db.close();
    STATUS(thrown_by([&] { walk.next(); }), LSMKV_CLOSED);
}

STORY(a_checkpoint_is_a_store_and_reports_are_replies) {
    lsmkv::Db db(check_dir);
    db.with_sync("off").set("k", "v");
    const std::string copy = std::string(check_dir) + "-copy";
    db.checkpoint(copy);
    CHECK(!db.try_checkpoint(copy));
    CHECK(db.check().empty());
    bool numbers = true;
    for (const auto [name, value] : db.stats().pairs()) {
        numbers = numbers && !name.view().empty() && value.real() >= 0;
    }
    CHECK(numbers && db.stats().size() > 0);
    SHOWS(lsmkv::Db(copy).get("k"), "v");
    CHECK(!db.try_with_sync("sometimes"));
}

#if !defined(WITHOUT_SERVER) && !defined(WITHOUT_REMOTE)

STORY(a_store_is_served_until_the_server_stops_or_the_store_closes) {
    lsmkv::Db db(check_dir);
    const std::string socket = std::string(check_scratch) + "/cpp.sock";
    lsmkv::Server server = db.serve("unix:" + socket, {{"server_threads", "1"}});
    CHECK(server.address().rfind("unix:///", 0) == 0 && server.port() == 0);
    STATUS(db.try_serve("unix:" + socket).status(), LSMKV_BUSY);
    STATUS(db.try_serve("nowhere").status(), LSMKV_INVALID);
    lsmkv::Db client(server.address());
    client.set("k", "from the client");
    SHOWS(db.get("k"), "from the client");
    db.set("k", "from the program");
    SHOWS(client.get("k"), "from the program");
    lsmkv::Server moved = std::move(server);
    moved.stop();
    moved.stop();
    STATUS(client.try_get("k").status(), LSMKV_IO);
    {
        lsmkv::Server brief = db.serve("tcp:127.0.0.1:0");
        CHECK(brief.port() > 0);
    }
    lsmkv::Server last = db.serve("tcp:127.0.0.1:0");
    db.close();
    STATUS(last.try_stop().status(), LSMKV_OK);
}

#endif

int main(int argc, char **argv) {
    BEGIN(argc, argv);
    RUN(a_snapshot_stays_as_it_is);
    RUN(a_transaction_is_seen_at_its_commit_or_never);
    RUN(a_transaction_that_was_overtaken_conflicts);
    RUN(transact_runs_again_after_a_conflict);
    RUN(what_the_body_of_transact_throws_rolls_back);
    RUN(threads_that_transact_lose_no_update);
    RUN(a_batch_runs_at_its_commit_and_can_be_used_again);
    RUN(a_session_remembers_as_a_connection_does);
    RUN(events_of_keys_and_limits_of_messages_are_set);
    RUN(a_session_that_does_not_wait_is_told_when_to_try_again);
    RUN(a_walk_is_a_range_over_keys);
    RUN(a_prefix_ends_where_its_bytes_do);
    RUN(a_walk_outlives_its_store);
    RUN(a_checkpoint_is_a_store_and_reports_are_replies);
#if !defined(WITHOUT_SERVER) && !defined(WITHOUT_REMOTE)
    RUN(a_store_is_served_until_the_server_stops_or_the_store_closes);
#endif
    return END();
}

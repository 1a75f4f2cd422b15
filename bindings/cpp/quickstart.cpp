// A tour of the C++ binding. Build: c++ -std=c++17 quickstart.cpp -llsmkv; run: ./a.out [DIRECTORY]
#include <iostream>
#include <lsmkv.hpp>

static void strings_and_hashes(lsmkv::Db &db) {
    db.setex("greeting", 3600, "hello");
    std::cout << "  a string:      " << db.get("greeting")->view() << ", expires in "
              << db.ttl("greeting") << " s\n";

    db.hset("user:1", {{"name", "alice"}, {"visits", "1"}});
    db.hincrby("user:1", "visits", 1);
    std::cout << "  a hash:        name " << db.hget("user:1", "name")->view() << ", visits "
              << db.hget("user:1", "visits")->view() << '\n';
}

static void lists_and_leaderboards(lsmkv::Db &db) {
    db.del("queue");
    db.rpush_many("queue", {"first", "second", "third"});
    std::cout << "  a list:        took " << db.lpop("queue")->view() << ", left";
    for (const auto item : db.lrange("queue", 0, -1)) std::cout << ' ' << item.view();

    db.zadd("board", {{12, "alice"}, {17.5, "bob"}});
    std::cout << "\n  a leaderboard:";
    const auto board = db.zrange_opt("board", 0, -1, LSMKV_REV | LSMKV_WITHSCORES);
    for (const auto [member, score] : board.pairs()) {
        std::cout << ' ' << member.view() << ' ' << score.real();
    }
    std::cout << '\n';
}

static void transactions_and_snapshots(lsmkv::Db &db) {
    db.mset({{"savings", "100"}, {"checking", "0"}});
    const lsmkv::Snapshot before = db.snapshot();
    // Runs again if another writer committed first.
    db.transact([](lsmkv::Transaction &txn) {
        txn.decrby("savings", 5);
        txn.incrby("checking", 5);
    });
    std::cout << "  a transaction: savings " << db.get("savings")->view() << ", checking "
              << db.get("checking")->view() << '\n';
    std::cout << "  a snapshot:    savings were " << before.get("savings")->view() << '\n';
}

int main(int argc, char **argv) try {
    const std::string path = argc > 1 ? argv[1] : "store";
    std::cout << "lsmkv " << lsmkv::version() << " from C++, store in " << path << '\n';
    {
        lsmkv::Db db(path, {{"sync", "always"}});
        strings_and_hashes(db);
        lists_and_leaderboards(db);
        transactions_and_snapshots(db);
    }
    lsmkv::Db db(path);
    std::cout << "  opened again: ";
    for (const auto &entry : db.iterate()) std::cout << ' ' << entry.key;
    std::cout << '\n';
    db.close();
    return 0;
} catch (const lsmkv::Error &error) {
    std::cerr << "lsmkv: " << error.what() << " (status " << error.code() << ")\n";
    return 1;
}

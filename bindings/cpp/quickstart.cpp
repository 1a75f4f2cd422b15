// A tour of the C++ binding. Build: c++ -std=c++17 quickstart.cpp -llsmkv; run: ./a.out DIRECTORY
#include <iostream>
#include <lsmkv.hpp>

int main(int argc, char **argv) try {
    const std::string path = argc > 1 ? argv[1] : ":memory:";
    std::cout << "lsmkv " << lsmkv::version() << " from C++, store in " << path << '\n';
    {
        lsmkv::Db db(path, {{"sync", "always"}});
        db.set("greeting", "hello from C++");
        std::cout << "  set greeting\n";
        std::cout << "  get greeting = " << db.get("greeting")->view() << '\n';
        std::cout << "  del greeting: " << db.del("greeting") << " key removed\n";
        if (!db.get("greeting")) std::cout << "  get greeting: not found\n";
        db.set("visitor", "C++");
    }
    lsmkv::Db db(path);
    if (auto visitor = db.get("visitor")) {
        std::cout << "  after reopening: visitor = " << visitor->view() << '\n';
    }
    db.close();
    return 0;
} catch (const lsmkv::Error &error) {
    std::cerr << "lsmkv: " << error.what() << " (status " << error.code() << ")\n";
    return 1;
}

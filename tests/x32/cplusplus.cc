/*
 * built: static, dynamic
 * core
 * flags: -fnon-call-exceptions
 *
 * C++: exceptions through frames and threads, streams, threads, storage of a thread, and the order of
 * destructors.
 */
#include "transcript.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csetjmp>
#include <fcntl.h>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

struct Named {
    const char *name;
    explicit Named(const char *name) : name(name) {}
    ~Named() { say("~%s", name); }
};
struct Half {
    void *at = ::operator new(0x7ffffff0u);
    ~Half() { ::operator delete(at); }
};
static Named global("global");
static std::atomic<int> left{0};
struct Counted {
    int value = 3;
    ~Counted() { left++; }
};
static thread_local Counted counted;

[[gnu::noinline]] static int thrower(int level) {
    Named here(level % 2 ? "odd" : "even");
    if (level == 0)
        throw std::out_of_range("thrown from the depth");
    return thrower(level - 1) + 1;
}
static void handler(int) { throw std::runtime_error("from a handler"); }

int main() {
    try {
        thrower(3);
    } catch (const std::logic_error &error) {
        say("caught %s", error.what());
    }
    try {
        try {
            throw 5;
        } catch (int value) {
            say("caught %d", value);
            std::throw_with_nested(std::runtime_error("outer"));
        }
    } catch (const std::exception &error) {
        say("caught %s", error.what());
        try {
            std::rethrow_if_nested(error);
        } catch (int inner) {
            say("inside was %d", inner);
        }
    }
    std::ostringstream text;
    text << std::hex << 255 << ' ' << 1.5 << ' ' << true << ' ' << sizeof(long) << ' ' << std::string(3, 'x');
    say("%s", text.str().c_str());
    std::cout << "on cout" << std::endl;
    std::cerr << "on cerr\n";
    std::map<int, std::unique_ptr<Named>> map;
    for (int i = 0; i < 3; i++)
        map[i] = std::make_unique<Named>("in a map");
    map.erase(1);
    std::vector<std::thread> threads;
    std::mutex mutex;
    int sum = 0;
    for (int i = 0; i < 50; i++)
        threads.emplace_back([&, i] {
            counted.value += i;
            try {
                if (i % 5 == 0)
                    throw i;
            } catch (int value) {
                std::lock_guard<std::mutex> guard(mutex);
                sum += value;
            }
            std::lock_guard<std::mutex> guard(mutex);
            sum += counted.value;
        });
    for (auto &thread : threads)
        thread.join();
    say("sum %d, left %d", sum, left.load());
    auto later = std::async(std::launch::async, []() -> int { throw std::runtime_error("in the future"); });
    try {
        later.get();
    } catch (const std::runtime_error &error) {
        say("caught %s", error.what());
    }
    std::condition_variable condition;
    std::unique_lock<std::mutex> lock(mutex);
    auto status = condition.wait_for(lock, std::chrono::milliseconds(20));
    say("waited: %s", status == std::cv_status::timeout ? "timeout" : "woken");
    auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    say("slept: %d", std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
    /* Together they are more than there are addresses, on a machine of any size. */
    try {
        Half one, two;
        say("got both");
    } catch (const std::bad_alloc &) {
        say("bad_alloc");
    }
    /* Unwound through the signal frame: needs the frame's layout to be the kernel's. */
    signal(SIGSEGV, handler);
    try {
        *(volatile int *)8 = 1;
    } catch (const std::runtime_error &error) {
        say("caught %s", error.what());
    }
    pid_t child = fork();
    if (child == 0) {
        close(2);
        open("/dev/null", O_WRONLY);
        throw 7;
    }
    ended("nobody catches", child);
    say("end of main");
    return 0;
}

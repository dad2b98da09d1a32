// std::thread, std::async, condition variables, shared mutexes, call_once, thread_local, exceptions from
// threads.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <numeric>
#include <queue>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

template <class Value> class Channel {
  public:
    void put(Value value) {
        std::lock_guard lock(mutex);
        values.push(value);
        filled.notify_one();
    }
    Value take() {
        std::unique_lock lock(mutex);
        filled.wait(lock, [this] { return !values.empty(); });
        Value value = values.front();
        values.pop();
        return value;
    }

  private:
    std::mutex mutex;
    std::condition_variable filled;
    std::queue<Value> values;
};

thread_local int own = 7;

int main() {
    Channel<int> tasks;
    Channel<long long> results;
    std::vector<std::thread> workers;
    for (int i = 0; i < 8; i++)
        workers.emplace_back([&] {
            for (int task; (task = tasks.take()) >= 0;)
                results.put(1LL * task * task);
        });
    for (int i = 0; i < 20000; i++)
        tasks.put(i);
    long long sum = 0;
    for (int i = 0; i < 20000; i++)
        sum += results.take();
    for (int i = 0; i < 8; i++)
        tasks.put(-1);
    for (auto &worker : workers)
        worker.join();
    std::cout << "squares: " << sum << '\n';

    std::vector<std::future<long long>> parts;
    for (long long part = 0; part < 40; part++)
        parts.push_back(std::async(std::launch::async, [part] {
            std::vector<long long> all(1000);
            std::iota(all.begin(), all.end(), part * 1000);
            return std::accumulate(all.begin(), all.end(), 0LL);
        }));
    long long total = 0;
    for (auto &part : parts)
        total += part.get();
    std::cout << "async: " << total << '\n';
    auto fails = std::async(std::launch::async, []() -> int { throw std::runtime_error("from a thread"); });
    try {
        fails.get();
    } catch (const std::exception &error) {
        std::cout << "exception: " << error.what() << '\n';
    }

    std::shared_mutex shared;
    std::atomic<int> reads{0};
    int value = 0;
    std::once_flag once;
    std::vector<std::thread> both;
    for (int i = 0; i < 6; i++)
        both.emplace_back([&, i] {
            std::call_once(once, [] { std::cout << "once\n"; });
            for (int j = 0; j < 2000; j++)
                if (i == 0) {
                    std::unique_lock lock(shared);
                    value++;
                } else {
                    std::shared_lock lock(shared);
                    reads += value >= 0;
                }
            own += i;
        });
    for (auto &one : both)
        one.join();
    std::cout << "written " << value << ", read " << reads << ", own " << own << '\n';
    std::mutex held;
    std::unique_lock lock(held);
    std::condition_variable never;
    std::cout << (never.wait_for(lock, std::chrono::milliseconds(5)) == std::cv_status::timeout
                      ? "timeout"
                      : "no timeout")
              << '\n';
    std::promise<int> promise;
    std::thread([&] { promise.set_value_at_thread_exit(5); }).detach();
    std::cout << "promise: " << promise.get_future().get() << '\n';
}

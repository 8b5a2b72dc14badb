// Throws many exceptions: through many frames, rethrown, nested, across threads, through function
// try blocks, noexcept boundaries and constructors. Destructors run code, and throw and catch
// inside. Prints sums that depend on every exception.
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#define KEPT __attribute__((noinline))

static std::atomic<long> destroyed{0};

struct Guard {
    long value;
    explicit Guard(long value) : value(value)
    {
    }
    KEPT ~Guard()
    {
        try {
            if (value % 3 == 0) {
                throw std::logic_error("inside a destructor");
            }
        } catch (const std::logic_error &error) {
            destroyed += static_cast<long>(std::string(error.what()).size());
        }
        destroyed += value % 7;
    }
};

struct Base : std::runtime_error {
    using std::runtime_error::runtime_error;
    virtual long weight() const
    {
        return 1;
    }
};
struct Side {
    virtual ~Side() = default;
    long side = 5;
};
struct Derived : Base, virtual Side {
    explicit Derived(const std::string &what) : Base(what)
    {
    }
    long weight() const override
    {
        return 10 + side;
    }
};

KEPT static long descend(long depth, long seed)
{
    Guard guard(depth + seed);
    std::vector<std::string> texts(static_cast<size_t>(depth % 3 + 1), std::to_string(seed));
    if (depth == 0) {
        switch (seed % 5) {
        case 0:
            throw Derived("derived " + texts[0]);
        case 1:
            throw Base("base " + texts[0]);
        case 2:
            throw seed;
        case 3:
            throw texts[0];
        default:
            return seed;
        }
    }
    return descend(depth - 1, seed) + static_cast<long>(texts.size());
}

struct Member {
    Guard guard;
    long value;
    explicit Member(long seed)
    try : guard(seed), value(descend(3, seed)) {
    } catch (const Base &) {
        throw;
    }
};

KEPT static long one(long seed)
{
    try {
        try {
            return descend(seed % 17, seed) + Member(seed).value;
        } catch (const Side &side) {
            throw;
        } catch (const std::string &text) {
            std::throw_with_nested(std::out_of_range("nested " + text));
        }
    } catch (const Derived &error) {
        return error.weight() + dynamic_cast<const Side &>(error).side;
    } catch (const Base &error) {
        return error.weight() * 3;
    } catch (const std::out_of_range &error) {
        try {
            std::rethrow_if_nested(error);
        } catch (const std::string &text) {
            return static_cast<long>(text.size()) + 100;
        }
    } catch (long value) {
        return value % 11;
    }
    return -1;
}

KEPT static long library_errors(long seed)
{
    long sum = 0;
    try {
        std::string("short").at(static_cast<size_t>(seed + 10));
    } catch (const std::exception &error) {
        sum += error.what()[0];
    }
    try {
        sum += std::stol("no number");
    } catch (const std::invalid_argument &) {
        sum += 2;
    }
    try {
        std::map<long, long>{{1, 2}}.at(seed + 2);
    } catch (const std::out_of_range &) {
        sum += 3;
    }
    try {
        std::function<long(long)> none;
        sum += none(seed);
    } catch (const std::bad_function_call &) {
        sum += 5;
    }
    try {
        std::istringstream stream("text");
        stream.exceptions(std::ios::failbit);
        stream >> sum;
    } catch (const std::ios_base::failure &) {
        sum += 6;
    }
    return sum;
}

static long worker(long number, long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++) {
        sum += one(i * 4 + number) + library_errors(i);
    }
    return sum;
}

KEPT static long across(long seed)
{
    std::promise<long> promise;
    std::future<long> future = promise.get_future();
    std::thread thread([&promise, seed] {
        try {
            promise.set_value(descend(9, seed));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    });
    thread.join();
    try {
        return future.get();
    } catch (const Base &error) {
        return error.weight();
    } catch (...) {
        return 2;
    }
}

int main(int count, char **words)
{
    const long rounds = count > 1 ? std::stol(words[1]) : 1000;
    std::vector<std::future<long>> futures;
    long sum = 0;
    for (long i = 0; i < 4; i++) {
        futures.push_back(std::async(std::launch::async, worker, i, rounds));
    }
    for (auto &future : futures) {
        sum += future.get();
    }
    for (long i = 0; i < 100; i++) {
        sum += across(i);
    }
    std::printf("sum %ld, destroyed %ld\n", sum, destroyed.load());
    std::fflush(stdout);
    std::set_terminate([] {
        std::puts("terminated");
        std::fflush(stdout);
        std::_Exit(42);
    });
    []() noexcept { descend(5, 5); }();
    return 0;
}

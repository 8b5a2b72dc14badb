// Exceptions of every shape, in front of exits of every length, without padding: what a landing pad
// follows is often a jump. Prints what became of each.
#include <cstdio>
#include <utility>

static volatile int left = 3;
static volatile int seen;
static volatile int base; // 0, which compilers do not know

__attribute__((noinline)) static void take(int error)
{
    if (--left <= 0) {
        left = 3;
        throw error;
    }
}

struct guard {
    ~guard()
    {
        seen = seen + 1;
    }
};

// The work of a handler, and the code after it.
template <int N> static inline long after(long value)
{
    if constexpr (N % 3 == 1) {
        seen = 5;
    } else if constexpr (N % 3 == 2) {
        seen = seen * 2 + 1;
    }
    if constexpr (N / 3 == 0) {
        return 0;
    } else if constexpr (N / 3 == 1) {
        return value;
    } else if constexpr (N / 3 == 2) {
        return value * 0x123456789L;
    } else {
        return seen > 0 ? value : -value;
    }
}

template <int N> __attribute__((noinline)) static long caught(int error)
{
    try {
        for (;;) {
            take(error);
        }
    } catch (int) {
        return after<N>(error);
    }
}

template <int N> __attribute__((noinline)) static long cleaned(int error)
{
    if (error < -2) {
        return N;
    }
    guard all;
    if (error < 0) {
        return after<N>(error);
    }
    for (;;) {
        take(error);
    }
}

template <int N> __attribute__((noinline)) static long any(int error)
{
    try {
        if (error > 2) {
            for (;;) {
                take(error);
            }
        }
    } catch (...) {
    }
    return after<N>(error);
}

template <int N> __attribute__((noinline)) static long again(int error)
{
    try {
        try {
            for (;;) {
                guard one;
                take(error);
            }
        } catch (int value) {
            seen = seen + value;
            throw;
        }
    } catch (...) {
        return after<N>(error);
    }
}

template <int N> static void run()
{
    long results[8] = {cleaned<N>(base - 1), cleaned<N>(base - 5)};
    try {
        results[2] = cleaned<N>(base + N);
    } catch (int value) {
        results[2] = value;
    }
    results[3] = caught<N>(base + N + 1);
    results[4] = any<N>(base + N);
    results[5] = any<N>(base);
    results[6] = again<N>(base + N + 3);
    for (long result : results) {
        printf("%ld ", result);
    }
    printf("%d\n", seen);
}

template <int... N> static void run_all(std::integer_sequence<int, N...>)
{
    (run<N>(), ...);
}

int main()
{
    run_all(std::make_integer_sequence<int, 12>());
    return 0;
}

/* Throws exceptions out of the handlers of faults (-fnon-call-exceptions). The faults are in the
 * first and last instructions of functions, which the agent moves into stubs. Prints what each run
 * must print. */
#include <csignal>
#include <cstdio>
#include <cstring>

#define NOINLINE __attribute__((noipa))

struct fault {
    int number;
};

static long ended;

static void handler(int number)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, number);
    sigprocmask(SIG_UNBLOCK, &mask, nullptr);
    throw fault{number};
}

extern "C" {
NOINLINE int load_first(int *from)
{
    return *from;
}

NOINLINE void store_first(int *to)
{
    *to = 1;
}

NOINLINE int divide_first(int a, int b)
{
    return a / b;
}

NOINLINE int by_call(int *from)
{
    return load_first(from) + 1;
}
}

struct guard {
    ~guard()
    {
        ended++;
    }
};

NOINLINE int guarded(int *from)
{
    guard here;
    return by_call(from);
}

template <typename function> static int caught(function call)
{
    try {
        call();
    } catch (const fault &met) {
        return met.number == SIGSEGV ? 1 : 100;
    }
    return 0;
}

int main()
{
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGFPE, &action, nullptr);
    int *volatile nowhere = nullptr;
    volatile int zero = 0;
    int sum = 0;
    for (int i = 0; i < 30; i++) {
        sum += caught([&] { load_first(nowhere); });
        sum += caught([&] { store_first(nowhere); });
        sum += caught([&] { guarded(nowhere); });
        sum += caught([&] { divide_first(i, zero); });
    }
    std::printf("caught %d, ended %ld\n", sum, ended);
    return 5;
}

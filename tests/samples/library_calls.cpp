// Calls a library in every way, and prints the number of calls: "calls NAME COUNT".
// library_calls PLUGIN [OTHER PLUGIN]...
#include "library_called.h"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
__attribute__((weak)) int called_perhaps(); // the library defines it
__attribute__((weak)) int called_never();   // no module defines it
}

static std::map<std::string, long> counts;
static pthread_mutex_t counts_lock = PTHREAD_MUTEX_INITIALIZER;

static void count(const char *name, long calls = 1)
{
    pthread_mutex_lock(&counts_lock);
    counts[name] += calls;
    pthread_mutex_unlock(&counts_lock);
}

static int deeper(int value)
{
    if (value == 0) {
        return 0;
    }
    count("called_back");
    return called_back(deeper, value - 1);
}

static int throwing(int value)
{
    throw std::runtime_error(value > 0 ? "from a callback" : "never");
}

static jmp_buf out;

static int jumping(int value)
{
    longjmp(out, value);
}

static void plain_calls()
{
    long sum = 0;
    for (int n = 0; n < 1000; n++) {
        sum += called_add(n, 1);
    }
    count("called_add", 1000);
    printf("add %ld\n", sum);
    printf("many %.3f\n", called_many(1, 2.5, 3, 4.25f, 5, 6, 7, 8, 9.125, 10, 11));
    count("called_many");
    const called_large large = called_struct(3);
    count("called_struct");
    printf("struct %ld %ld %ld\n", large.words[0], large.words[4], large.words[7]);
    printf("long double %.6Lf\n", called_long_double(2.25L));
    count("called_long_double");
    printf("variadic %.2f\n", called_variadic(5, 1.5, 2, 2.5, 3, 4.25));
    count("called_variadic");
    errno = 0;
    const int failed = called_fail();
    const int reason = errno;
    count("called_fail");
    printf("fail %d errno %d\n", failed, reason);
    printf("perhaps %d\n", called_perhaps());
    count("called_perhaps");
    if (errno == 0) {
        called_never();
    }
    errno = 99;
    called_add(1, 1);
    printf("errno stays %d\n", errno);
    count("called_add");
    int (*address)() = called_address;
    printf("address %s, gives %d\n",
           reinterpret_cast<void (*)()>(address) == called_own_address() ? "same" : "different",
           address());
    count("called_own_address");
}

static void odd_ways_out()
{
    printf("deep %d\n", deeper(200));
    for (int n = 0; n < 20; n++) {
        count("called_throw");
        try {
            called_throw(n);
        } catch (const std::runtime_error &error) {
            if (n < 2) {
                printf("caught %s\n", error.what());
            }
        }
    }
    for (int n = 1; n <= 20; n++) {
        count("called_back");
        try {
            called_back(throwing, n);
        } catch (const std::runtime_error &error) {
            if (n == 1) {
                printf("caught %s\n", error.what());
            }
        }
    }
    for (volatile int n = 1; n <= 20; n = n + 1) {
        count("called_back");
        const int value = setjmp(out);
        if (value == 0) {
            called_back(jumping, n);
        } else if (value % 10 == 0) {
            printf("jumped with %d\n", value);
        }
    }
    count("called_jump");
    const int value = setjmp(out);
    if (value == 0) {
        called_jump(&out);
    }
    printf("jumped with %d\n", value);
}

static volatile sig_atomic_t handled;

static void handle(int)
{
    handled = handled + called_add(0, 1);
}

static void *run_thread(void *)
{
    for (int n = 0; n < 100; n++) {
        called_add(n, n);
    }
    count("called_add", 100);
    pthread_exit(nullptr);
}

static void signals_threads_children()
{
    signal(SIGUSR1, handle);
    for (int n = 0; n < 50; n++) {
        raise(SIGUSR1);
    }
    count("called_add", 50);
    printf("handled %d\n", static_cast<int>(handled));
    pthread_t threads[4];
    for (pthread_t &thread : threads) {
        pthread_create(&thread, nullptr, run_thread, nullptr);
    }
    for (const pthread_t thread : threads) {
        pthread_join(thread, nullptr);
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        _exit(called_add(20, 3));
    }
    count("called_add");
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    const pid_t other = vfork();
    if (other == 0) {
        _exit(9);
    }
    waitpid(other, &status, 0);
    printf("vfork %d\n", WEXITSTATUS(status));
}

static void load(const char *path, int mode)
{
    void *plugin = dlopen(path, mode);
    if (plugin == nullptr) {
        printf("cannot load: %s\n", dlerror());
        exit(1);
    }
    printf("no error: %s\n", dlerror() == nullptr ? "yes" : "no");
    auto *run = reinterpret_cast<long (*)(long)>(dlsym(plugin, "library_plugin_run"));
    printf("plugin %ld\n", run(30));
    count("plugin called_add", 30 + 2); // two more calls in its constructors
    dlclose(plugin);
}

// These modules have no initialisation function, or nothing to initialise.
static void load_bare(const char *path)
{
    void *plugin = dlopen(path, RTLD_LAZY);
    if (plugin != nullptr) {
        auto *run = reinterpret_cast<long (*)(long)>(dlsym(plugin, "library_plugin_run"));
        printf("bare plugin %ld\n", run(30));
        dlclose(plugin);
    }
}

int main(int argc, char **argv)
{
    plain_calls();
    odd_ways_out();
    signals_threads_children();
    if (argc > 1) {
        load(argv[1], RTLD_NOW);
        load(argv[1], RTLD_LAZY);
        load(argv[1], RTLD_LAZY | RTLD_GLOBAL);
    }
    for (int i = 2; i < argc; i++) {
        load_bare(argv[i]);
    }
    for (const auto &[name, calls] : counts) {
        printf("calls %s %ld\n", name.c_str(), calls);
    }
    return 0;
}

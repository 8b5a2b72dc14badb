/* Exercises what happens in a program besides calls. Each part prints its outcome, which must be
 * the same whether the program is recorded or not. `life PART`; `life plugin FILE` loads a module.
 * `life threads ROUNDS` and `life storm SIGNALS` set the amount. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__clang__)
#define KEPT __attribute__((noinline, optnone))
#else
#define KEPT __attribute__((noipa))
#endif

extern char **environ;
static atomic_long steps;
static volatile sig_atomic_t handled;

KEPT static long life_step(long n)
{
    atomic_fetch_add(&steps, 1);
    return n * 3 + 1;
}

KEPT static long life_work(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += life_step(i);
    }
    return sum;
}

/* --- threads ---------------------------------------------------------------------------------- */

static void life_cleanup(void *counter)
{
    atomic_fetch_add((atomic_long *)counter, 1);
}

static atomic_long cleaned;
static atomic_int started; /* a thread that is cancelled earlier has no cleanup handler yet */

KEPT static void life_exit_deep(int depth)
{
    if (depth == 0) {
        pthread_exit((void *)7);
    }
    if (depth > 0) {
        life_exit_deep(depth - 1);
    }
    life_step(0);
}

static void *thread_exits(void *unused)
{
    (void)unused;
    pthread_cleanup_push(life_cleanup, &cleaned);
    atomic_store(&started, 1);
    life_work(100);
    life_exit_deep(20);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *thread_waits(void *unused)
{
    (void)unused;
    pthread_cleanup_push(life_cleanup, &cleaned);
    atomic_store(&started, 1);
    for (;;) {
        life_work(10);
        usleep(500);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void *thread_spins(void *unused)
{
    (void)unused;
    pthread_cleanup_push(life_cleanup, &cleaned);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    atomic_store(&started, 1);
    for (;;) {
        life_work(10);
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static int part_threads(int rounds)
{
    static void *(*const bodies[])(void *) = {thread_exits, thread_waits, thread_spins};
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        pthread_t thread;
        void *result;
        atomic_store(&started, 0);
        if (pthread_create(&thread, NULL, bodies[round % 3], NULL) != 0) {
            return 1;
        }
        while (atomic_load(&started) == 0) {
            usleep(100);
        }
        if (round % 3 != 0) {
            usleep(1000);
            pthread_cancel(thread);
        }
        pthread_join(thread, &result);
        sum += result == PTHREAD_CANCELED ? 1000 : (long)result;
    }
    printf("threads: sum %ld, cleaned %ld\n", sum, atomic_load(&cleaned));
    return 0;
}

static pthread_barrier_t barrier;

static void *thread_meets(void *number)
{
    life_work(50);
    pthread_barrier_wait(&barrier);
    return (void *)life_work((long)number % 7 + 1);
}

static int part_crowd(void)
{
    enum { CROWD = 400 };
    static pthread_t threads[CROWD];
    long sum = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    pthread_barrier_init(&barrier, NULL, CROWD);
    for (long i = 0; i < CROWD; i++) {
        if (pthread_create(&threads[i], &attributes, thread_meets, (void *)i) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < CROWD; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("crowd: sum %ld, steps %ld\n", sum, atomic_load(&steps));
    return 0;
}

/* --- children --------------------------------------------------------------------------------- */

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

KEPT static void life_exec(char **words)
{
    life_work(3);
    execv(words[0], words);
    _exit(99);
}

KEPT static int life_vfork(char **words)
{
    const pid_t pid = vfork();
    if (pid == 0) {
        life_exec(words);
    }
    life_work(2);
    return wait_for(pid);
}

static int part_children(const char *self)
{
    char *echo[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exit 12", NULL};
    char *missing[] = {(char *)"/no/such/program", NULL};
    char *again[] = {(char *)(uintptr_t)self, (char *)"grandchild", NULL};
    char *empty[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    pid_t pid = -1;
    for (int round = 0; round < 5; round++) {
        printf("vfork: %d %d %d\n", life_vfork(echo), life_vfork(missing), life_vfork(again));
        fflush(stdout);
        int result = posix_spawn(&pid, again[0], &actions, NULL, again, environ);
        printf("spawn: %d, %d\n", result, wait_for(pid));
        result = posix_spawn(&pid, missing[0], &actions, NULL, missing, environ);
        printf("spawn of nothing: %s\n", strerror(result));
        result = posix_spawnp(&pid, "sh", NULL, NULL, echo, empty);
        printf("spawn without environment: %d, %d\n", result, wait_for(pid));
        fflush(stdout);
        printf("system: %d\n", system("exit 5") >> 8);
    }
    posix_spawn_file_actions_destroy(&actions);
    FILE *pipe = popen("echo from the pipe; env | grep -c 'SOJOURN\\|LD_PRELOAD'", "r");
    char line[100];
    while (pipe != NULL && fgets(line, sizeof(line), pipe) != NULL) {
        fputs(line, stdout);
    }
    printf("pipe: %d\n", pipe != NULL ? pclose(pipe) >> 8 : -1);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        life_work(5);
        const struct rlimit small = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_FSIZE, &small);
        _exit(wait_for(fork() == 0 ? (_exit(3), 0) : -1));
    }
    printf("fork under a file size limit: %d\n", wait_for(pid));
    return 0;
}

/* --- signals ---------------------------------------------------------------------------------- */

static sigjmp_buf back;
static void *guarded;

KEPT static void life_in_handler(int number)
{
    life_work(4);
    handled += number == SIGSEGV || number == SIGTRAP || number == SIGUSR1;
}

static void on_alternate_stack(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    life_in_handler(number);
    siglongjmp(back, 1);
}

static void repair(int number, siginfo_t *info, void *context)
{
    (void)context;
    life_in_handler(number);
    if (info->si_addr < guarded || (char *)info->si_addr >= (char *)guarded + 4096) {
        _exit(77);
    }
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    life_in_handler(number);
}

/* Installed without SA_SIGINFO: the handler's only argument is the number. */
static void repair_by_number(int number)
{
    life_in_handler(number);
    mprotect(guarded, 4096, PROT_READ | PROT_WRITE);
}

KEPT static long life_overflow(long depth)
{
    volatile char space[4096];
    space[depth % 4096] = 1;
    return depth < 0 ? space[0] : life_overflow(depth + 1) + space[0];
}

KEPT static void life_touch(void)
{
    *(volatile int *)guarded = 1;
    life_step(1);
}

KEPT static void life_trap(void)
{
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
    life_step(2);
}

static void set_handler(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaction(number, &action, NULL);
}

static int part_signals(void)
{
    static char stack_space[256 * 1024];
    const stack_t alternate = {.ss_sp = stack_space, .ss_size = sizeof(stack_space)};
    sigaltstack(&alternate, NULL);
    guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct rlimit stack = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &stack);
    for (int round = 0; round < 10; round++) {
        set_handler(SIGSEGV, on_alternate_stack, SA_ONSTACK | SA_NODEFER);
        if (sigsetjmp(back, 1) == 0) {
            life_overflow(0);
        }
        set_handler(SIGSEGV, repair, 0);
        mprotect(guarded, 4096, PROT_NONE);
        life_touch();
        set_handler(SIGTRAP, on_trap, round % 2 == 0 ? SA_ONSTACK : 0);
        life_trap();
        set_handler(SIGUSR1, on_trap, SA_ONSTACK);
        raise(SIGUSR1);
        signal(SIGSEGV, repair_by_number);
        mprotect(guarded, 4096, PROT_NONE);
        life_touch();
        signal(SIGUSR1, repair_by_number);
        raise(SIGUSR1);
    }
    printf("signals: %d handled, %ld steps\n", (int)handled, atomic_load(&steps));
    return 0;
}

static void on_alarm(int number)
{
    (void)number;
    life_work(2);
    handled++;
}

static int part_storm(int signals)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_NODEFER};
    sigaction(SIGALRM, &action, NULL);
    ualarm(200, 200);
    long sum = 0;
    while (handled < signals) {
        sum |= life_work(500) != 374750;
    }
    ualarm(0, 0);
    printf("storm: %ld wrong\n", sum);
    return 0;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int frames_seen;
static const void *frames_first;

KEPT static void life_frames(int depth)
{
    if (depth > 0) {
        life_frames(depth - 1);
        life_step(0);
        return;
    }
    void *frames[64];
    frames_seen = backtrace(frames, 64);
    Dl_info info;
    int own = 0;
    for (int i = 0; i < frames_seen; i++) {
        own += dladdr(frames[i], &info) != 0 && info.dli_fbase == frames_first;
    }
    printf("backtrace: %d frames, %d in the program\n", frames_seen, own);
}

static ucontext_t main_context;
static ucontext_t contexts[3];

static void coroutine(int number)
{
    for (int i = 0; i < 100; i++) {
        life_work(number + 1);
        swapcontext(&contexts[number], &contexts[(number + 1) % 3]);
    }
    setcontext(&main_context);
}

static int part_stacks(void)
{
    Dl_info info;
    dladdr((void *)(uintptr_t)&life_frames, &info);
    frames_first = info.dli_fbase;
    life_frames(12);
    static char rooms[3][64 * 1024];
    for (int i = 0; i < 3; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack = (stack_t){.ss_sp = rooms[i], .ss_size = sizeof(rooms[i])};
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))(uintptr_t)coroutine, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    printf("coroutines: %ld steps\n", atomic_load(&steps));
    return 0;
}

static jmp_buf away_from;

static void leap_away(long n)
{
    longjmp(away_from, (int)n);
}

/* `paths` is the path of the plugin, or the paths of two copies with a colon between them. The
 * copies are loaded in turn. */
static int part_plugin(char *paths)
{
    const char *const first = strtok(paths, ":");
    const char *const second = strtok(NULL, ":");
    long sum = 0;
    volatile long leaps = 0;
    for (int round = 0; round < 50; round++) {
        const char *path = second != NULL && round % 2 == 1 ? second : first;
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        long (*run)(long) =
            module != NULL ? (long (*)(long))(uintptr_t)dlsym(module, "plugin_run") : NULL;
        if (run == NULL) {
            puts(dlerror());
            return 1;
        }
        void (*leap)(void (*)(long), long) =
            (void (*)(void (*)(long), long))(uintptr_t)dlsym(module, "plugin_leap");
        sum += run(100);
        if (setjmp(away_from) == 0) {
            leap(leap_away, 5);
        }
        leaps = leaps + 1;
        dlclose(module);
    }
    printf("plugin: sum %ld, %ld leaps\n", sum, leaps);
    return 0;
}

/* --- for a debugger --------------------------------------------------------------------------- */

KEPT static int life_nested(int depth)
{
    if (depth == 0) {
        puts("nested");
        fflush(stdout);
        pause();
        return 1;
    }
    return (int)life_step(life_nested(depth - 1));
}

static int run_part(const char *self, const char *part, char *argument)
{
    if (strcmp(part, "threads") == 0) {
        return part_threads(argument != NULL ? atoi(argument) : 60);
    } else if (strcmp(part, "crowd") == 0) {
        return part_crowd();
    } else if (strcmp(part, "children") == 0) {
        return part_children(self);
    } else if (strcmp(part, "grandchild") == 0) {
        return life_work(10) == 145 ? 33 : 1;
    } else if (strcmp(part, "signals") == 0) {
        return part_signals();
    } else if (strcmp(part, "storm") == 0) {
        return part_storm(argument != NULL ? atoi(argument) : 500);
    } else if (strcmp(part, "stacks") == 0) {
        return part_stacks();
    } else if (strcmp(part, "nested") == 0) {
        return life_nested(7);
    }
    return strcmp(part, "plugin") == 0 ? part_plugin(argument) : 2;
}

int main(int count, char **words)
{
    const int result = run_part(words[0], count > 1 ? words[1] : "", count > 2 ? words[2] : NULL);
    fflush(stdout);
    return result;
}

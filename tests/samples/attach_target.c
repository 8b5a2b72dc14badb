/* A program to attach to. Its threads compute and check their results, sleep in system calls of
 * many kinds, or take signals. It runs until its input ends. Then it prints the number of mistakes
 * (must be 0) and how often each system call was interrupted.
 *
 * The computing threads rest between pieces of work, so that a test does not use the processor all
 * the time. With SJ_LONG in the environment they never rest. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 3, ROUNDS = 200, FAR_MS = 600, ROUNDS_A_PIECE = 32, REST_NS = 1000000 };

static atomic_bool stop;
static bool rests;
static pthread_barrier_t started;
static atomic_ulong work_done;
static atomic_ulong mistakes;
static atomic_ulong ticks;
static atomic_ulong interrupted[5];

__attribute__((noinline)) uint64_t target_mix(uint64_t value, unsigned depth)
{
    if (depth == 0) {
        return value * UINT64_C(0x9e3779b97f4a7c15) + 1;
    }
    return target_mix(value ^ (value >> 7), depth - 1) + depth;
}

__attribute__((noinline)) uint64_t target_round(uint64_t seed)
{
    double real = 1.0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        seed = target_mix(seed, i % 8);
        real = real * 1.0000001 + (double)(seed & 3);
    }
    char *copy = malloc(64 + seed % 256);
    memset(copy, (int)seed, 64);
    seed += (unsigned char)copy[seed % 64];
    free(copy);
    return seed + (uint64_t)real;
}

static void *compute(void *argument)
{
    const uint64_t seed = (uintptr_t)argument;
    const uint64_t expected = target_round(seed);
    for (unsigned round = 1; !atomic_load(&stop); round++) {
        if (target_round(seed) != expected) {
            atomic_fetch_add(&mistakes, 1);
        }
        atomic_fetch_add(&work_done, 1);
        if (rests && round % ROUNDS_A_PIECE == 0) {
            nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
        }
    }
    return NULL;
}

__attribute__((noinline)) void target_on_tick(int signal)
{
    (void)signal;
    (void)target_mix(7, 5);
    atomic_fetch_add(&ticks, 1);
}

/* Each kind blocks in another system call. A wait that ends early without EINTR is a mistake. */
__attribute__((noinline)) int target_block(unsigned kind, int pipe_fd, int epoll_fd)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    const struct timespec pause = {.tv_nsec = FAR_MS * 1000000L};
    struct pollfd polled = {.fd = pipe_fd, .events = POLLIN};
    struct epoll_event event;
    struct timespec deadline;
    switch (kind) {
    case 0:
        return nanosleep(&pause, NULL);
    case 1:
        return poll(&polled, 1, FAR_MS);
    case 2:
        return epoll_wait(epoll_fd, &event, 1, FAR_MS);
    case 3:
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec++;
        pthread_mutex_lock(&mutex);
        (void)pthread_cond_timedwait(&never, &mutex, &deadline);
        pthread_mutex_unlock(&mutex);
        return 0;
    default:
        return select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = FAR_MS * 1000});
    }
}

static void *block(void *argument)
{
    const unsigned kind = (unsigned)(uintptr_t)argument;
    int fds[2];
    const int epoll_fd = epoll_create1(0);
    if (pipe(fds) != 0 || epoll_fd < 0) {
        abort();
    }
    pthread_barrier_wait(&started);
    while (!atomic_load(&stop)) {
        errno = 0;
        if (target_block(kind, fds[0], epoll_fd) < 0) {
            atomic_fetch_add(errno == EINTR ? &interrupted[kind] : &mistakes, 1);
        }
    }
    close(fds[0]);
    close(fds[1]);
    close(epoll_fd);
    return NULL;
}

/* An argument makes the program run as that user, like a daemon that drops root. */
int main(int argc, char **argv)
{
    pthread_t threads[WORKERS + 5];
    sigset_t ticking;
    char byte;
    const uid_t user = argc > 1 ? (uid_t)strtoul(argv[1], NULL, 10) : geteuid();
    if (argc > 1 && setresuid(user, user, user) != 0) {
        return 2;
    }
    rests = getenv("SJ_LONG") == NULL;
    sigemptyset(&ticking);
    sigaddset(&ticking, SIGALRM);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = target_on_tick, .sa_flags = SA_RESTART},
              NULL);
    pthread_sigmask(SIG_BLOCK, &ticking, NULL);
    pthread_barrier_init(&started, NULL, 6);
    for (uintptr_t i = 0; i < 5; i++) {
        pthread_create(&threads[WORKERS + i], NULL, block, (void *)i);
    }
    pthread_sigmask(SIG_UNBLOCK, &ticking, NULL);
    for (uintptr_t i = 0; i < WORKERS; i++) {
        pthread_create(&threads[i], NULL, compute, (void *)(i + 1));
    }
    pthread_sigmask(SIG_BLOCK, &ticking, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
    pthread_barrier_wait(&started);
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
        printf("%lu\n", atomic_load(&work_done));
        fflush(stdout);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < WORKERS + 5; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("mistakes %lu, work %d, ticks %d, interrupted nanosleep %lu poll %lu epoll_wait %lu "
           "futex %lu select %lu\n",
           atomic_load(&mistakes), atomic_load(&work_done) > 0, atomic_load(&ticks) > 0,
           atomic_load(&interrupted[0]), atomic_load(&interrupted[1]), atomic_load(&interrupted[2]),
           atomic_load(&interrupted[3]), atomic_load(&interrupted[4]));
    return atomic_load(&mistakes) == 0 ? 0 : 1;
}

/* An event loop with two slow turns, and a thread that sleeps in known functions until the program
 * ends. With `wait`, the loop finally waits until the input ends. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

void loop_rest(int milliseconds);
void loop_turn(int milliseconds);
void loop_run(int epoll, int waits);
void sleeper_inner(void);
void sleeper_outer(void);

enum { TURNS = 10, SLOW_MS = 120 };

__attribute__((noinline)) void loop_rest(int milliseconds)
{
    const struct timespec rest = {.tv_sec = milliseconds / 1000,
                                  .tv_nsec = milliseconds % 1000 * 1000000L};
    nanosleep(&rest, NULL);
}

__attribute__((noinline)) void loop_turn(int milliseconds)
{
    if (milliseconds != 0) {
        loop_rest(milliseconds);
    }
}

/* A turn that waits for a long time is not a slow turn. */
__attribute__((noinline)) void loop_run(int epoll, int waits)
{
    struct epoll_event event;
    for (int i = 0; i < TURNS; i++) {
        const int idle_ms = i == 5 ? 250 : 5;
        if (i % 2 == 0) {
            epoll_wait(epoll, &event, 1, idle_ms);
        } else {
            poll(NULL, 0, idle_ms);
        }
        loop_turn(i == 4 || i == 7 ? SLOW_MS : 0);
    }
    char byte;
    while (waits && read(STDIN_FILENO, &byte, 1) > 0) {
    }
    __asm__ volatile("");
}

__attribute__((noinline)) void sleeper_inner(void)
{
    loop_rest(600 * 1000);
    __asm__ volatile("");
}

__attribute__((noinline)) void sleeper_outer(void)
{
    sleeper_inner();
    __asm__ volatile("");
}

static void *run_sleeper(void *argument)
{
    pthread_setname_np(pthread_self(), "sleeper");
    sleeper_outer();
    return argument;
}

int main(int argc, char **argv)
{
    (void)argv;
    pthread_t sleeper;
    const int epoll = epoll_create1(0);
    pthread_create(&sleeper, NULL, run_sleeper, NULL);
    loop_run(epoll, argc > 1);
    puts("done");
    return 0;
}

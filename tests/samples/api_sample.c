/* Talks to its tracer through sojourn.h. It is built as C89 and as C++. Prints what it did
 * itself. */
#include "agent/include/sojourn.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int api_step(int value);
int api_work(int rounds);
void api_frame(int milliseconds);
void api_frames(void);
void api_laps(void);

static volatile int sink;

__attribute__((noinline)) int api_step(int value)
{
    volatile int sum = value;
    sum += 1;
    return sum * 3;
}

__attribute__((noinline)) int api_work(int rounds)
{
    int i;
    int sum = 0;
    for (i = 0; i < rounds; i++) {
        sum += api_step(i);
    }
    sink = sum;
    return sum;
}

__attribute__((noinline)) void api_frame(int milliseconds)
{
    struct timespec rest;
    sojourn_frame_tick();
    rest.tv_sec = 0;
    rest.tv_nsec = milliseconds * 1000000L;
    nanosleep(&rest, NULL);
    api_work(10);
}

__attribute__((noinline)) void api_frames(void)
{
    int i;
    for (i = 0; i < 10; i++) {
        api_frame(i == 4 || i == 7 ? 60 : 2);
    }
    sojourn_frame_tick();
}

/* Runs laps until its input ends. Tests attach to it. */
__attribute__((noinline)) void api_laps(void)
{
    struct timespec rest;
    rest.tv_sec = 0;
    rest.tv_nsec = 1000000L;
    for (;;) {
        struct pollfd input;
        input.fd = 0;
        input.events = POLLIN;
        input.revents = 0;
        if (poll(&input, 1, 0) != 0) {
            return;
        }
        sojourn_mark_begin("lap");
        api_work(10);
        sojourn_mark_end("lap");
        sojourn_frame_tick();
        nanosleep(&rest, NULL);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "laps") == 0) {
        puts("ready");
        fflush(stdout);
        api_laps();
        puts("done");
        return 0;
    }
    sojourn_mark_begin("warm up");
    api_work(1000);
    sojourn_mark_end("warm up");
    sojourn_stop();
    api_work(500);
    sojourn_start();
    api_work(250);
    if (strcmp(how, "frames") == 0) {
        api_frames();
    } else if (strcmp(how, "dump") == 0) {
        sojourn_dump_flight();
        api_work(20);
    }
    printf("%d\n", sink);
    return 0;
}

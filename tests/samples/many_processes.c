/* Keeps 40 processes that come and go, each with 300 calls of many_step in 3 s, until the file that
 * its argument names exists. Prints "all run" once 40 of them were started, and at the end how many
 * there were. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVING = 40, CALLS = 300, STEP_US = 10000 };

static volatile unsigned sum;

__attribute__((noinline)) void many_step(void)
{
    sum += 1;
}

static void live(void)
{
    for (int i = 0; i < CALLS; i++) {
        many_step();
        usleep(STEP_US);
    }
}

static void begin(unsigned *started)
{
    if (fork() == 0) {
        live();
        _exit(0);
    }
    ++*started;
}

int main(int count, char **arguments)
{
    unsigned started = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    while (started < LIVING) {
        begin(&started);
    }
    puts("all run");
    while (count > 1 && access(arguments[1], F_OK) != 0) {
        if (wait(NULL) > 0) {
            begin(&started);
        }
    }
    while (wait(NULL) > 0) {
    }
    printf("%u processes\n", started);
    return 0;
}

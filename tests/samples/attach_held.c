/* A process that enters fork() once it has hooks, and stays there until it reads a line. A tracer
 * must not make a thread in fork() call a function that takes locks. Prints "ready", and "held" in
 * fork(). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_BYTES = 16 };

__attribute__((noipa, aligned(64))) static long watched(long number)
{
    volatile long sum = 0;
    for (long i = 0; i < number; i++) {
        sum += i;
    }
    return sum;
}

static void hold(void)
{
    char line[16];
    puts("held");
    (void)fflush(stdout);
    (void)!fgets(line, sizeof(line), stdin);
}

int main(void)
{
    char code[CODE_BYTES];
    char line[16];
    const void *place = (const void *)(uintptr_t)&watched;
    memcpy(code, place, sizeof(code));
    (void)pthread_atfork(hold, NULL, NULL);
    puts("ready");
    (void)fflush(stdout);
    while (memcmp(code, place, sizeof(code)) == 0) {
        (void)watched(10);
    }
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    (void)!fgets(line, sizeof(line), stdin);
    return 0;
}

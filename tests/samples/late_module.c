/* Calls one function of a large library until its code has changed, then exactly CALLS times more.
 * With `fork`, a child does the same. Prints the number of calls of each process.
 *
 * late_module LIBRARY FUNCTION [fork] */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 1000, HEAD_BYTES = 16 };

typedef unsigned long plain_function(void);

static long call_until_hooked(plain_function *function, const unsigned char *head)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    unsigned char now[HEAD_BYTES];
    long calls = 0;
    do {
        (void)function();
        calls++;
        nanosleep(&pause, NULL);
        memcpy(now, (const void *)(unsigned long)function, HEAD_BYTES);
    } while (memcmp(now, head, HEAD_BYTES) == 0);
    for (int i = 0; i < CALLS; i++) {
        (void)function();
    }
    return calls + CALLS;
}

int main(int count, char **arguments)
{
    unsigned char head[HEAD_BYTES];
    void *library = count > 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    plain_function *function = NULL;
    if (library != NULL) {
        *(void **)(&function) = dlsym(library, arguments[2]);
    }
    if (function == NULL) {
        fputs("no such function\n", stderr);
        return EXIT_FAILURE;
    }
    memcpy(head, (const void *)(unsigned long)function, HEAD_BYTES);
    printf("ready\n");
    fflush(stdout);
    const pid_t child = count > 3 ? fork() : 0;
    const long calls = call_until_hooked(function, head);
    printf("%ld\n", calls);
    fflush(stdout);
    int status = 0;
    return child == 0 || (waitpid(child, &status, 0) == child && status == 0) ? EXIT_SUCCESS
                                                                              : EXIT_FAILURE;
}

/* A handler forks, and the child goes on inside of it: it calls forked_leaf so often and ends.
 *
 * forked_in_handler CALLS */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long count;
static volatile unsigned long made;

__attribute__((noinline)) void forked_leaf(void)
{
    made++;
}

static void fork_here(int number)
{
    (void)number;
    if (fork() != 0) {
        return;
    }
    for (unsigned long i = 0; i < count; i++) {
        forked_leaf();
    }
    exit(made == count ? 0 : 1);
}

int main(int argc, char **argv)
{
    int status = 1;
    const struct sigaction action = {.sa_handler = fork_here};
    count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

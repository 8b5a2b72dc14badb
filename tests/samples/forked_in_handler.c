/* A signal handler forks. The child continues inside the handler: it calls forked_leaf CALLS times
 * and ends. With FORKS, another thread sends FORKS signals to the main thread while that thread
 * calls forked_leaf. Each child then returns from the handler and ends after its next call. The
 * main thread ends after CALLS calls and all forks. Exits with 0 if each child ended in this way.
 *
 * forked_in_handler CALLS [FORKS] */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long count;
static volatile unsigned long made;
static volatile bool is_child;
static volatile unsigned long handled, failed;
static pthread_t main_thread;

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

static void fork_and_return(int number)
{
    (void)number;
    int status = 1;
    const pid_t child = fork();
    is_child = child == 0;
    if (is_child) {
        return;
    }
    failed += waitpid(child, &status, 0) != child || status != 0;
    handled++;
}

static void *send_signals(void *forks)
{
    for (unsigned long i = 0; i < *(unsigned long *)forks; i++) {
        pthread_kill(main_thread, SIGUSR1);
        while (handled <= i) {
            usleep(1000);
        }
    }
    return NULL;
}

static int fork_while_calling(unsigned long forks)
{
    pthread_t sender;
    main_thread = pthread_self();
    if (pthread_create(&sender, NULL, send_signals, &forks) != 0) {
        return 2;
    }
    while ((made < count || handled < forks) && !is_child) {
        forked_leaf();
    }
    if (is_child) {
        _exit(0);
    }
    pthread_join(sender, NULL);
    printf("%lu calls, %lu failed\n", made, failed);
    return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int status = 1;
    const bool returns = argc == 3;
    const struct sigaction action = {.sa_handler = returns ? fork_and_return : fork_here};
    count = argc >= 2 ? strtoul(argv[1], NULL, 10) : 0;
    sigaction(SIGUSR1, &action, NULL);
    if (returns) {
        return fork_while_calling(strtoul(argv[2], NULL, 10));
    }
    raise(SIGUSR1);
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

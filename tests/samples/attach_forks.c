/* A thread forks all the time. Each child walks the loader's list and ends. The first thread
 * sleeps, so that a tracer makes it call functions. Another one answers each byte of input by the
 * number of children that have ended. At the end of the input the program exits, with 0 if no child
 * was stuck.
 *
 * The program uses a large library, so that a recorder that plans it takes longer than anything
 * else. */
#include <link.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_US = 60000000, PAUSE_US = 1000 };

static atomic_uint ended, stuck;

static int count_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)info, (void)size;
    ++*(unsigned *)context;
    return 0;
}

/* A child that waits for a lock for ever is killed. */
static bool has_ended(pid_t child)
{
    int status = 1;
    for (long waited_us = 0; waited_us < PATIENCE_US; waited_us += PAUSE_US) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return status == 0;
        }
        usleep(PAUSE_US);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return false;
}

static void *fork_often(void *unused)
{
    for (;;) {
        const pid_t child = fork();
        if (child == 0) {
            unsigned modules = 0;
            dl_iterate_phdr(count_module, &modules);
            _exit(modules != 0 ? 0 : 1);
        }
        atomic_fetch_add(has_ended(child) ? &ended : &stuck, 1);
    }
    return unused;
}

static void *answer(void *unused)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        printf("%u\n", atomic_load(&ended));
        fflush(stdout);
    }
    printf("%u children were stuck\n", atomic_load(&stuck));
    fflush(stdout);
    _exit(atomic_load(&stuck) == 0 ? 0 : 1);
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    (void)OpenSSL_version_num();
    if (pthread_create(&threads[0], NULL, fork_often, NULL) != 0 ||
        pthread_create(&threads[1], NULL, answer, NULL) != 0) {
        return 2;
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        pause();
    }
}

/* The program of the examples, with the functions that they name. `serve`: runs until it is
 * ended. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define KEPT __attribute__((noinline, noclone))

int net_send(int bytes);
int open_file(const char *path, int flags);
int parse_list(int length);
void worker_unlock(void);
void *worker_run(void *unused);

static volatile int total;

KEPT int net_send(int bytes)
{
    total += bytes;
    return total;
}

KEPT int open_file(const char *path, int flags)
{
    total += (int)strlen(path) + flags;
    return total;
}

KEPT int parse_list(int length)
{
    for (int i = 0; i < length; i++) {
        net_send(i);
    }
    return open_file("list", length);
}

KEPT void worker_unlock(void)
{
    total--;
}

KEPT void *worker_run(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    for (int i = 0; i < 100; i++) {
        parse_list(5);
        worker_unlock();
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t worker;
    if (pthread_create(&worker, NULL, worker_run, NULL) != 0 || pthread_join(worker, NULL) != 0) {
        return 1;
    }
    puts("ready");
    fflush(stdout);
    const struct timespec pause = {.tv_nsec = 5000000};
    while (argc > 1 && strcmp(argv[1], "serve") == 0) {
        parse_list(3);
        nanosleep(&pause, NULL);
    }
    return 0;
}

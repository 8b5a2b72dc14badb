/* Calls a known number of functions, then ends in the way that the argument says. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int ends_work(int rounds);
int ends_step(int value);
void ends_die(const char *how);

static volatile int ends_sink;

__attribute__((noinline)) int ends_step(int value)
{
    volatile int sum = value;
    sum += 1;
    sum *= 3;
    return sum;
}

__attribute__((noinline)) int ends_work(int rounds)
{
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += ends_step(i);
    }
    return sum;
}

static void *run_thread(void *argument)
{
    ends_work(100);
    return argument;
}

static void run_threads(int count)
{
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_thread, NULL) == 0) {
            pthread_join(thread, NULL);
        }
    }
}

static void run_child(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        ends_work(50);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* A child that outlives its parent. It continues once the file `go` exists. */
static void run_daemon(void)
{
    if (fork() != 0) {
        return;
    }
    setsid();
    ends_work(50);
    FILE *file = fopen("daemon.pid", "we");
    if (file != NULL) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
    while (access("go", F_OK) != 0) {
        usleep(1000);
    }
    ends_work(50);
    _exit(0);
}

/* With another C library than glibc, makes the loader run its debug hook. A program that is linked
 * statically has no loader. */
static void load_nothing(void)
{
#if !defined(__GLIBC__)
    (void)dlopen("no_such_library.so", RTLD_NOW);
    ends_work(50);
#endif
}

__attribute__((noinline)) void ends_die(const char *how)
{
    if (strcmp(how, "segv") == 0) {
        raise(SIGSEGV);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    } else if (strcmp(how, "kill") == 0) {
        raise(SIGKILL);
    } else if (strcmp(how, "exit") == 0) {
        exit(7);
    } else if (strcmp(how, "threads") == 0) {
        run_threads(20);
    } else if (strcmp(how, "fork") == 0) {
        run_child();
    } else if (strcmp(how, "load") == 0) {
        load_nothing();
    } else if (strcmp(how, "daemon") == 0) {
        run_daemon();
    } else if (strcmp(how, "flood") == 0) {
        ends_work(3000000);
    } else if (strcmp(how, "spin") == 0) {
        for (int i = 0; i < 200; i++) {
            ends_work(3000000);
        }
    } else if (strcmp(how, "wait") == 0) {
        for (;;) {
            ends_work(10);
            usleep(1000);
        }
    }
    ends_sink = 1; /* prevents tail calls above */
}

int main(int argc, char **argv)
{
    printf("%d\n", ends_work(1000));
    fflush(stdout);
    ends_die(argc > 1 ? argv[1] : "");
    return 3;
}

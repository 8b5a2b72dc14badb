/* A signal handler forks while its thread waits for the recorder's plan of a module that it loads.
 * The module is large, so that planning it takes longer than any other reply. Another thread sends
 * the signal when the kernel has shown POLLS times that the loading thread waits for a packet. Each
 * child returns from the handler, walks the loader's list and ends. Exits with 0 if each LIBRARY
 * was loaded and all children ended.
 *
 * forked_in_loader LIBRARY... */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_US = 60000000, PAUSE_US = 1000, POLLS = 20 };

static pid_t loading;
static volatile unsigned handled, failed;
static volatile bool is_child;

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

static void fork_and_return(int number)
{
    (void)number;
    const pid_t child = fork();
    is_child = child == 0;
    if (!is_child) {
        failed += !has_ended(child);
        handled++;
    }
}

static bool waits_for_packet(int file)
{
    char text[64] = {0};
    return pread(file, text, sizeof(text) - 1, 0) > 0 && atoi(text) == SYS_recvfrom;
}

static void *send_signals(void *unused)
{
    char path[64];
    unsigned seen = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)loading);
    FILE *file = fopen(path, "re");
    while (file != NULL) {
        const unsigned before = handled;
        seen = waits_for_packet(fileno(file)) ? seen + 1 : 0;
        if (seen == POLLS) {
            syscall(SYS_tgkill, getpid(), loading, SIGUSR1);
            while (handled == before) {
                usleep(PAUSE_US);
            }
        }
        usleep(PAUSE_US);
    }
    return unused;
}

static bool load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW);
    if (is_child) {
        unsigned modules = 0;
        dl_iterate_phdr(count_module, &modules);
        _exit(modules != 0 ? 0 : 1);
    }
    return handle != NULL && dlclose(handle) == 0;
}

int main(int argc, char **argv)
{
    pthread_t sender;
    const struct sigaction action = {.sa_handler = fork_and_return};
    loading = (pid_t)syscall(SYS_gettid);
    sigaction(SIGUSR1, &action, NULL);
    if (pthread_create(&sender, NULL, send_signals, NULL) != 0) {
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (!load(argv[i])) {
            return 2;
        }
    }
    printf("%u forks, %u failed\n", handled, failed);
    fflush(stdout);
    _exit(failed == 0 ? 0 : 1);
}

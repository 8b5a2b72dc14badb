/* A program whose open calls are known when a tracer attaches: main -> open_outer -> open_middle ->
 * open_loop. open_loop calls open_leaf until its input ends, forks and loads a library on demand,
 * and then returns through all of them. Commands: f forks a child that ends at once, k a child that
 * works until this process ends. r does the same as k by a bare system call, l loads the library, n
 * does nothing. A second thread is in open_waiter all the time and calls nothing. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long total;

__attribute__((noinline)) void open_leaf(unsigned long value)
{
    total += value * 3 + (total >> 3);
}

__attribute__((noinline)) void open_child(void)
{
    for (unsigned long i = 0; i < 500; i++) {
        open_leaf(i);
    }
}

/* A child that stays. Recorders may attach and detach meanwhile. */
static void stay(pid_t parent, int told)
{
    open_child();
    if (write(told, "", 1) != 1) {
        _exit(1);
    }
    while (getppid() == parent) {
        open_child();
        usleep(10000);
    }
    _exit(0);
}

static void obey(char order, const char *library)
{
    const pid_t self = getpid();
    int pipes[2];
    char byte;
    if ((order == 'k' || order == 'r') && pipe(pipes) == 0) {
        if ((order == 'k' ? fork() : (pid_t)syscall(SYS_fork)) == 0) {
            stay(self, pipes[1]);
        }
        (void)!read(pipes[0], &byte, 1);
        close(pipes[0]);
        close(pipes[1]);
    }
    if (order == 'f') {
        const pid_t pid = fork();
        if (pid == 0) {
            open_child();
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    } else if (order == 'l') {
        void *handle = dlopen(library, RTLD_NOW);
        double (*function)(double) = (double (*)(double))dlsym(handle, "plugin_work");
        total += (unsigned long)function(2.0);
        dlclose(handle);
    }
    puts("done");
    fflush(stdout);
}

__attribute__((noinline)) int open_loop(const char *library)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char order;
    for (;;) {
        for (unsigned long i = 0; i < 100; i++) {
            open_leaf(i);
        }
        if (poll(&input, 1, 1) > 0) {
            if (read(STDIN_FILENO, &order, 1) != 1) {
                return (int)(total != 0);
            }
            obey(order, library);
        }
    }
}

__attribute__((noinline)) int open_middle(const char *library)
{
    return open_loop(library) + 1;
}

__attribute__((noinline)) int open_outer(const char *library)
{
    return open_middle(library) + 1;
}

__attribute__((noinline)) void *open_waiter(void *ready)
{
    char byte = 0;
    (void)!write(*(int *)ready, &byte, 1);
    poll(NULL, 0, -1);
    return ready;
}

int main(int argc, char **argv)
{
    int pipes[2];
    char byte;
    pthread_t thread;
    (void)argc;
    if (pipe(pipes) != 0 || pthread_create(&thread, NULL, open_waiter, &pipes[1]) != 0 ||
        read(pipes[0], &byte, 1) != 1) {
        return 1;
    }
    close(pipes[0]);
    close(pipes[1]);
    puts("ready");
    fflush(stdout);
    return open_outer(argv[1]) == 3 ? 0 : 1;
}

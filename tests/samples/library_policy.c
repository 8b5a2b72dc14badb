/* A program whose calls into a library start and stop being recorded while it runs. Two threads
 * call the library all the time, and one waits inside a call. The first thread obeys the input:
 *   r  calls called_many a hundred times       v  calls called_variadic, for the first time
 *   l  loads a module that calls the library   w  lets the waiting thread return, and wait again
 *   f  forks a child that calls called_many a hundred times
 * library_policy PLUGIN */
#include "library_called.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 100, BUSY = 2 };

static atomic_bool stop;
static atomic_ulong mistakes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked;
static int answered;

static void expect(bool is_right)
{
    atomic_fetch_add(&mistakes, is_right ? 0 : 1);
}

static void *call_all_the_time(void *unused)
{
    int n = 0;
    while (!atomic_load(&stop)) {
        expect(called_add(n, 1) == n + 1);
        n = (n + 1) % 100;
        if (n == 0) {
            usleep(500);
        }
    }
    return unused;
}

static int wait_inside(int value)
{
    pthread_mutex_lock(&mutex);
    while (asked == answered && !atomic_load(&stop)) {
        pthread_cond_wait(&changed, &mutex);
    }
    answered = asked;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return value;
}

static void *wait_in_the_library(void *unused)
{
    for (int n = 0; !atomic_load(&stop); n++) {
        expect(called_back(wait_inside, n) == n + 1);
    }
    return unused;
}

static void call_many(void)
{
    for (int n = 0; n < CALLS; n++) {
        expect(called_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) == 506.0);
    }
}

static void load(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    long (*run)(long) = NULL;
    if (plugin != NULL) {
        *(void **)&run = dlsym(plugin, "library_plugin_run");
    }
    expect(run != NULL && run(CALLS) == 3 + 7 + (CALLS - 1) * CALLS / 2 + CALLS);
    if (plugin != NULL) {
        expect(dlclose(plugin) == 0);
    }
}

static void fork_child(void)
{
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
        atomic_store(&mistakes, 0);
        call_many();
        _exit(atomic_load(&mistakes) == 0 ? 0 : 1);
    }
    expect(waitpid(child, &status, 0) == child && status == 0);
}

static void release_waiter(void)
{
    pthread_mutex_lock(&mutex);
    asked++;
    pthread_cond_broadcast(&changed);
    while (asked != answered) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static void obey(char order, const char *plugin)
{
    switch (order) {
    case 'r':
        call_many();
        break;
    case 'v':
        for (int n = 0; n < CALLS; n++) {
            expect(called_variadic(2, 1.5, 2) == 3.5);
        }
        break;
    case 'l':
        load(plugin);
        break;
    case 'f':
        fork_child();
        break;
    default:
        release_waiter();
        break;
    }
}

int main(int count, char **arguments)
{
    pthread_t threads[BUSY + 1];
    char order;
    for (int i = 0; i <= BUSY; i++) {
        pthread_create(&threads[i], NULL, i < BUSY ? call_all_the_time : wait_in_the_library, NULL);
    }
    printf("ready\n");
    fflush(stdout);
    while (count == 2 && read(STDIN_FILENO, &order, 1) == 1) {
        obey(order, arguments[1]);
        printf("done\n");
        fflush(stdout);
    }
    atomic_store(&stop, true);
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i <= BUSY; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("mistakes %lu\n", atomic_load(&mistakes));
    return 0;
}

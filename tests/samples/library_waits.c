/* A program with a thread that waits in its first call into a library until another thread has
 * loaded a module. The program obeys its input:
 *   h  a thread loads SLOW, whose constructor waits for command g
 *   b  a thread calls far_call for the first time, from NEAR, and waits for the first thread
 *   g  the constructor continues; both threads end
 *   r  calls far_call a hundred times, from NEAR
 * library_waits FAR NEAR SLOW; the modules are built from this file, too. */
#ifdef MODULE_FAR
int far_call(int value);
int far_call(int value)
{
    return value + 1;
}
#elif defined(MODULE_NEAR)
int far_call(int value); /* is in a module that this one does not name as needed */
int near_run(int times);
int near_run(int times)
{
    int sum = 0;
    for (int n = 0; n < times; n++) {
        sum += far_call(n);
    }
    return sum;
}
#elif defined(MODULE_SLOW)
void stay_in_constructor(void);
__attribute__((constructor)) static void begin(void)
{
    stay_in_constructor();
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static sem_t inside;
static sem_t may_continue;
static const char *slow;
static int (*near_run)(int);
static atomic_int waiter;
static int mistakes;

void stay_in_constructor(void);
void stay_in_constructor(void)
{
    sem_post(&inside);
    sem_wait(&may_continue);
}

static void *load_slow(void *unused)
{
    return dlopen(slow, RTLD_NOW) != NULL ? unused : NULL;
}

static void *call_first(void *unused)
{
    atomic_store(&waiter, gettid());
    return near_run(1) == 1 ? unused : NULL;
}

/* True if the thread waits for a lock (in futex). The thread does nothing but the call. */
static int is_waiting(int thread)
{
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
    FILE *file = thread != 0 ? fopen(path, "r") : NULL;
    if (file != NULL) {
        (void)!fgets(text, sizeof(text), file);
        fclose(file);
    }
    return atoi(text) == SYS_futex;
}

static void obey(char order, pthread_t *threads)
{
    void *result;
    switch (order) {
    case 'h':
        pthread_create(&threads[0], NULL, load_slow, NULL);
        sem_wait(&inside);
        break;
    case 'b':
        pthread_create(&threads[1], NULL, call_first, NULL);
        while (!is_waiting(atomic_load(&waiter))) {
            usleep(1000);
        }
        break;
    case 'g':
        sem_post(&may_continue);
        pthread_join(threads[0], &result);
        pthread_join(threads[1], &result);
        break;
    default:
        mistakes += near_run(100) != 5050;
        break;
    }
}

int main(int count, char **arguments)
{
    pthread_t threads[2];
    char order;
    sem_init(&inside, 0, 0);
    sem_init(&may_continue, 0, 0);
    void *far = count == 4 ? dlopen(arguments[1], RTLD_LAZY | RTLD_GLOBAL) : NULL;
    void *near = count == 4 ? dlopen(arguments[2], RTLD_LAZY) : NULL;
    if (far == NULL || near == NULL) {
        return 2;
    }
    *(void **)&near_run = dlsym(near, "near_run");
    slow = arguments[3];
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &order, 1) == 1) {
        obey(order, threads);
        printf("done\n");
        fflush(stdout);
    }
    printf("mistakes %d\n", mistakes);
    return 0;
}
#endif

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define KEPT __attribute__((noipa))
enum { THREADS = 3 };
static _Atomic unsigned long plain, changed, sizes, outers, wrong;
static _Atomic int is_ending;
KEPT int late_open(int number)
{
    return number % 100;
}
KEPT int late_outer(int number)
{
    return late_open(number) + 1000;
}
KEPT long late_size(long bytes)
{
    return bytes;
}
KEPT int late_many(int a, int b, int c)
{
    return a + b + c;
}
typedef enum color { RED, GREEN = 5 } color;
typedef struct place {
    int x;
    double y;
} place;
KEPT int late_typed(const char *name, color of, double share, const place *at, int number)
{
    return name[0] == 'o' && share == at->y ? number * 2 + (int)of : -at->x;
}
static void *volatile kept;
KEPT unsigned long late_store(unsigned long bytes)
{
    void *block = kept = malloc(bytes);
    const unsigned long held = malloc_usable_size(block);
    free(block);
    return held;
}
KEPT void late_wait(void)
{
    while (!is_ending) {
        usleep(10000);
    }
}
static void *run(void *which)
{
    if (which != NULL) {
        late_wait();
        return NULL;
    }
    for (int i = 0; !is_ending; i++) {
        if (i % 20 == 0) {
            usleep(5000);
        }
        errno = 0;
        const int result = late_open(i);
        const int error = errno;
        const long size = late_size(4096);
        const int outer = late_outer(i);
        outers += outer == 999;
        wrong += outer != 999 && outer != i % 100 + 1000;
        plain += result == i % 100 && error == 0;
        changed += result == -1 && error == 13;
        wrong += (result != i % 100 || error != 0) && (result != -1 || error != 13);
        sizes += size == 7;
        wrong += (size != 7 && size != 4096) || late_many(i, 1, 2) != i + 3;
        wrong += late_store((unsigned long)i % 3000) < (unsigned long)i % 3000;
        const place at = {i, i * 0.5};
        wrong += late_typed("over there", i % 2 ? GREEN : RED, i * 0.5, &at, i) !=
                 i * 2 + (i % 2 ? 5 : 0);
    }
    return NULL;
}
int main(void)
{
    pthread_t threads[THREADS];
    char line[16];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run, i == 0 ? line : NULL);
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        printf("%lu %lu %lu %lu wrong %lu\n", plain, changed, sizes, outers, wrong);
        fflush(stdout);
    }
    is_ending = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%lu %lu %lu %lu wrong %lu\n", plain, changed, sizes, outers, wrong);
    return wrong != 0;
}

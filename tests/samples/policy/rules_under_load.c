#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#define KEPT __attribute__((noipa))
enum { KINDS = 4, THREADS = 4 };
static _Atomic unsigned long seen[KINDS];
static _Atomic unsigned long wrong;
static _Atomic int is_ending;
KEPT int chg_load(long number, int error)
{
    errno = error;
    return (int)(number % 1000);
}
static void note(int result, int error, long number)
{
    const int kind = result == (int)(number % 1000) && error == 1 ? 0
                     : result == -77 && error == 7                ? 1
                     : result == -88 && error == 8                ? 2
                     : result == -99 && error == 9                ? 3
                                                                  : -1;
    if (kind < 0) {
        wrong++;
    } else {
        seen[kind]++;
    }
}
static void *run(void *none)
{
    for (long i = 0; !is_ending; i++) {
        if (i % 20 == 0) {
            usleep(10000); /* slows the calls down: each of them is a row */
        }
        const int result = chg_load(i, 1);
        note(result, errno, i);
    }
    return none;
}
int main(void)
{
    pthread_t threads[THREADS];
    char line[16];
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run, NULL);
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        printf("%lu %lu %lu %lu wrong %lu\n", seen[0], seen[1], seen[2], seen[3], wrong);
        fflush(stdout);
    }
    is_ending = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return wrong != 0;
}

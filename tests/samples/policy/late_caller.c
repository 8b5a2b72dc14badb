#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
enum { THREADS = 2 };
int late_apart(int number);
int late_twice(int number);
int late_block(int file, char *line);
static _Atomic unsigned long plain, changed, wrong;
static _Atomic int is_ending;
static int pair[2];
static void *run(void *none)
{
    for (int i = 0; !is_ending; i++) {
        if (i % 20 == 0) {
            usleep(5000);
        }
        const int twice = late_twice(i);
        plain += i != 0 && twice == 2 * i;
        changed += twice == -1;
        wrong += (twice != 2 * i && twice != -1) || late_apart(i) != i + 1;
    }
    return none;
}
static void *wait_for_end(void *none)
{
    char line[1];
    wrong += late_block(pair[0], line) != 5;
    return none;
}
int main(void)
{
    pthread_t threads[THREADS + 1];
    char line[16];
    wrong += pipe(pair) != 0;
    pthread_create(&threads[THREADS], NULL, wait_for_end, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run, NULL);
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        printf("%lu %lu wrong %lu\n", plain, changed, wrong);
        fflush(stdout);
    }
    is_ending = 1;
    wrong += write(pair[1], "e", 1) != 1;
    for (int i = 0; i < THREADS + 1; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%lu %lu wrong %lu\n", plain, changed, wrong);
    return wrong != 0;
}

#include <errno.h>
#include <pthread.h>
#include <sojourn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#define KEPT __attribute__((noipa))
static _Thread_local int serial;
KEPT int cond_work(int kind, const char *path, long number)
{
    const struct timespec rest = {.tv_nsec = number % 7 == 0 ? 30000000 : 0};
    if (rest.tv_nsec != 0) {
        nanosleep(&rest, NULL);
    }
    errno = number % 3 == 0 ? ENOENT : number % 3 == 1 ? EACCES : 0;
    const int result = number % 4 == 0 ? -1 : (int)number;
    printf("%s %d %s %ld %d %d %d\n", "work", kind, path, number, result, errno, rest.tv_nsec != 0);
    return result;
}
KEPT int cond_first(int kind, long number)
{
    return cond_work(kind, "/first", number) + 1;
}
KEPT int cond_second(int kind, long number)
{
    return cond_work(kind, "/second", number) + 1;
}
KEPT int chg_pair(int left, int right, const char *text)
{
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof(name));
    printf("pair %d %d %s %s\n", left, right, text, name);
    return left + right;
}
static void *run(void *name)
{
    char text[16] = "buffer";
    (void)name;
    for (long i = 1; i <= 20; i++) {
        cond_first((int)(i % 2), i);
        cond_second((int)(i % 3), i);
    }
    for (int i = 0; i < 6; i++) {
        if (i == 2) {
            sojourn_mark_begin("middle");
        }
        if (i == 4) {
            sojourn_mark_end("middle");
        }
        strcpy(text, "buffer");
        const int sum = chg_pair(i, i % 2, text);
        printf("sum %d\n", sum);
    }
    return NULL;
}
int main(void)
{
    static char *const names[] = {"alpha", "beta"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* one thread after the other, so that the lines are in the sequence of the calls */
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_setname_np(pthread_self(), names[i]); /* the new thread inherits the name */
        pthread_create(&thread, NULL, run, names[i]);
        pthread_join(thread, NULL);
    }
    return 0;
}

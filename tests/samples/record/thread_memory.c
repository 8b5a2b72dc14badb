#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define KEPT __attribute__((noipa))
static _Thread_local long counted[4];
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
KEPT size_t malloc_usable_size(void *block)
{
    const size_t size = block != NULL ? ((size_t *)block)[-1] : 0;
    return block != NULL ? (size & ~(size_t)7) - ((size & 2) != 0 ? 16 : 8) : 0;
}
static void *got(void *block)
{
    if (block != NULL) {
        counted[0]++;
        counted[1] += (long)malloc_usable_size(block);
    }
    return block;
}
static void gave(void *block)
{
    if (block != NULL) {
        counted[2]++;
        counted[3] += (long)malloc_usable_size(block);
    }
}
KEPT void *malloc(size_t bytes)
{
    return got(__libc_malloc(bytes));
}
KEPT void *calloc(size_t n, size_t bytes)
{
    return got(__libc_calloc(n, bytes));
}
KEPT void *memalign(size_t to, size_t bytes)
{
    return got(__libc_memalign(to, bytes));
}
KEPT void *aligned_alloc(size_t to, size_t bytes)
{
    return got(__libc_memalign(to, bytes));
}
KEPT int posix_memalign(void **out, size_t to, size_t bytes)
{
    *out = got(__libc_memalign(to, bytes));
    return *out == NULL ? ENOMEM : 0;
}
KEPT void free(void *block)
{
    gave(block);
    __libc_free(block);
}
KEPT void *realloc(void *block, size_t bytes)
{
    const long held = block != NULL ? (long)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, bytes);
    if (block != NULL && (moved != NULL || bytes == 0)) {
        counted[2]++;
        counted[3] += held;
    }
    return got(moved);
}
static void *volatile held[64];
KEPT void thm_work(int number, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        void *volatile *place = &held[number * 8 + i % 8];
        free(*place);
        *place = i % 5 == 0 ? calloc(3, (size_t)(i % 900)) : malloc((size_t)(i * 31 % 4000));
        if (i % 7 == 0) {
            *place = realloc(*place, (size_t)(i % 2000 + 1));
        }
    }
}
/* The child allocates memory, too. This counts for the child. */
static void have_child(int number, int by_hand)
{
    const pid_t child = by_hand ? (pid_t)syscall(SYS_fork) : fork();
    if (child == 0) {
        thm_work(number, 5000);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}
static pthread_barrier_t together;
static void *run(void *given)
{
    const int number = *(int *)given;
    char line[200];
    thm_work(number, 60000);
    /* A child that is forked by a bare system call hangs if another thread holds a lock of malloc
     * at that moment. The barrier prevents that. */
    for (int by_hand = 0; by_hand < 2; by_hand++) {
        pthread_barrier_wait(&together);
        if (number == by_hand) {
            have_child(number, by_hand);
        }
    }
    pthread_barrier_wait(&together);
    snprintf(line, sizeof(line), "%ld %ld %ld %ld %ld\n", (long)gettid(), counted[0], counted[1],
             counted[2], counted[3]);
    (void)!write(1, line, strlen(line));
    return NULL;
}
int main(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}

/* Threads whose stacks have no guard pages, as in some virtual machines. Adjacent stacks are one
 * mapping until each thread protects the lowest pages of its own. All threads make a call before
 * that and many calls afterwards. Prints the number of calls of stack_leaf. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { THREADS = 4, CALLS = 3000000, STACK_BYTES = 1 << 20, PROTECTED_BYTES = 16384 };

static _Thread_local volatile unsigned long made;
static pthread_barrier_t barrier;

__attribute__((noinline)) void stack_leaf(void)
{
    made++;
}

static void *protect_and_call(void *argument)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    stack_leaf();
    pthread_barrier_wait(&barrier);
    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &low, &bytes) != 0 ||
        mprotect(low, PROTECTED_BYTES, PROT_NONE) != 0) {
        return NULL;
    }
    pthread_attr_destroy(&attributes);
    pthread_barrier_wait(&barrier);
    while (made < CALLS) {
        stack_leaf();
    }
    *(unsigned long *)argument = made;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned long counts[THREADS] = {0};
    unsigned long total = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setguardsize(&attributes, 0);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], &attributes, protect_and_call, &counts[i]) != 0) {
            return 2;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        total += counts[i];
    }
    printf("calls %lu\n", total);
    return 0;
}

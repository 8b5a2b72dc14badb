/* Many short threads, twenty of them alive at a time, each of which makes from no call to 66 and
 * ends. Prints how many calls of short_leaf they made. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIVE = 20, CALLS_BELOW = 67 };

static atomic_ulong total;
static _Thread_local volatile unsigned long made;

__attribute__((noinline)) void short_leaf(void)
{
    made++;
}

static void *call_and_end(void *argument)
{
    for (size_t i = 0; i < (size_t)argument; i++) {
        short_leaf();
    }
    atomic_fetch_add(&total, made);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[ALIVE];
    const size_t count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    for (size_t i = 0; i < count + ALIVE; i++) {
        if (i >= ALIVE && i - ALIVE < count) {
            pthread_join(threads[i % ALIVE], NULL);
        }
        if (i < count && pthread_create(&threads[i % ALIVE], NULL, call_and_end,
                                        (void *)(i % CALLS_BELOW)) != 0) {
            return 2;
        }
    }
    printf("calls %lu\n", (unsigned long)total);
    return 0;
}

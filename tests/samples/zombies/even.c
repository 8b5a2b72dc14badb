/* Two threads allocate and free blocks of four sizes at four places, and read each block
 * afterwards. The reports show which blocks were guarded. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { TURNS = 20 };

static volatile char sink;

#define PLACE(name, bytes)                                                                         \
    static __attribute__((noinline)) void name(void)                                               \
    {                                                                                              \
        volatile char *block = malloc(bytes);                                                      \
        block[0] = 'e';                                                                            \
        free((void *)block);                                                                       \
        sink = block[0];                                                                           \
    }

PLACE(use_small, 17)
PLACE(use_usual, 210)
PLACE(use_large, 3001)
PLACE(use_pages, 9001)

static void *work(void *name)
{
    prctl(PR_SET_NAME, name);
    for (int i = 0; i < TURNS; i++) {
        use_small();
        use_usual();
        use_large();
        use_pages();
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, "second") != 0) {
        return 1;
    }
    pthread_join(thread, NULL);
    work("first");
    return 0;
}

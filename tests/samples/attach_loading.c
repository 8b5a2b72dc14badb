/* Eight threads that load and unload libraries without a pause until the program reads a line. Each
 * thread has a library of its own, given by one of the eight arguments. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 8 };

static atomic_int is_over;
static atomic_ulong loads;

__attribute__((noinline)) void loading_step(void)
{
    loads++;
}

static void *load_again_and_again(void *path)
{
    while (!is_over) {
        void *library = dlopen(path, RTLD_NOW);
        loading_step();
        if (library == NULL || dlclose(library) != 0) {
            exit(3);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    char text;
    if (argc != 1 + THREADS) {
        return 2;
    }
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, load_again_and_again, argv[1 + i]) != 0) {
            return 2;
        }
    }
    printf("loading\n");
    fflush(stdout);
    (void)!read(0, &text, 1);
    is_over = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("fine\n");
    return 0;
}

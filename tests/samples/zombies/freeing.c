/* A module that frees blocks of other modules. */
#include <stdlib.h>

__attribute__((visibility("default"))) void free_in_module(void *block);

static volatile int done;

void free_in_module(void *block)
{
    free(block);
    done = 1;
}

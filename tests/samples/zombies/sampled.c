/* Allocates as often as the argument says, in three sizes, and frees each block at once. */
#include <stdlib.h>

int main(int argc, char **argv)
{
    const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    for (long i = 0; i < count; i++) {
        char *volatile block = malloc(i % 3 == 0 ? 16 : i % 3 == 1 ? 200 : 3000);
        block[0] = 's';
        free(block);
    }
    return 0;
}

/* A program in which another version of Sojourn has left guarded blocks. It has the mapping by
 * which agents find such blocks, with a version that no agent has. Prints each line of its
 * input. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x5944545355434853)

enum { BYTES = 3 * 4096, VERSION = 1 };

int main(void)
{
    static char line[64];
    const int file = memfd_create("sojourn-heap", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, BYTES) != 0) {
        return 2;
    }
    uint64_t *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) {
        return 2;
    }
    mapped[0] = MAGIC;
    *(uint32_t *)(mapped + 1) = VERSION;
    close(file);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char *copy = strdup(line);
        fputs(copy, stdout);
        fflush(stdout);
        free(copy);
    }
    return 0;
}

/* Frees an address that is not a block, which the argument names. glibc then ends the program. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define APART __attribute__((noinline, noclone))

typedef struct area {
    uint64_t before[2];
    char bytes[64];
    uint64_t after[4];
} __attribute__((aligned(16))) area;

static area in_data;
static volatile int sink;

APART static void free_stack(void)
{
    area in_stack = {{0}};
    free(*(void *volatile *)&(void *){in_stack.bytes});
    sink += in_stack.bytes[0];
}

APART static void free_static(void)
{
    in_data.before[1] = (uint64_t)(uintptr_t)&in_data; /* An address before the freed one. */
    __asm__ volatile("" : : : "memory");
    free(*(void *volatile *)&(void *){in_data.bytes});
    sink++;
}

/* The header is plausible, but the words after the address do not say that a chunk is in use. glibc
 * keeps such an address for the next malloc. */
APART static void free_plausible(void)
{
    in_data.before[1] = 0x51;
    __asm__ volatile("" : : : "memory");
    free(*(void *volatile *)&(void *){in_data.bytes});
    abort();
}

/* The block is too large to be guarded. */
APART static void free_inside(void)
{
    char *block = malloc(3 << 20);
    memset(block, 'x', 3 << 20);
    __asm__ volatile("" : : "r"(block) : "memory"); /* The compiler may not drop the bytes. */
    free(*(void *volatile *)&(void *){block + 4096});
    sink++;
}

APART static void free_unaligned(void)
{
    char *block = malloc(3 << 20);
    memset(block, 0, 3 << 20);
    __asm__ volatile("" : : "r"(block) : "memory");
    free(*(void *volatile *)&(void *){block + 8});
    sink++;
}

APART static void resize_foreign(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sink += realloc(*(void *volatile *)&(void *){pages + 64}, 100) != NULL;
}

static void (*const mistakes[])(void) = {free_stack,  free_static,    free_plausible,
                                         free_inside, free_unaligned, resize_foreign};

int main(int count, char **arguments)
{
    (void)count;
    for (int i = 0; i < 3000; i++) { /* Frees that must not be reported. */
        char *one = malloc(i);
        char *other = aligned_alloc(64, i * 100 / 64 * 64);
        one = realloc(one, i * 3 + 1);
        free(other);
        free(one);
    }
    free(malloc(5 << 20));
    free(memalign(1 << 16, 3 << 20));
    mistakes[atoi(arguments[1])]();
    return 0;
}

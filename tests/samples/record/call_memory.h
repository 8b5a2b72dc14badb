#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
typedef struct tally {
    long allocations, allocated, frees, freed;
} tally;
static _Thread_local tally all;
static void got(void *block)
{
    if (block != NULL) {
        all.allocations++;
        all.allocated += (long)malloc_usable_size(block);
    }
}
static void gave(void *block)
{
    if (block != NULL) {
        all.frees++;
        all.freed += (long)malloc_usable_size(block);
    }
}
#ifdef OWN_MALLOC
/* These replace the C library's allocator. They count every call of the program and of its
 * libraries, and then call the C library. */
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
KEPT void *malloc(size_t bytes)
{
    void *block = __libc_malloc(bytes);
    got(block);
    return block;
}
KEPT void *calloc(size_t n, size_t bytes)
{
    void *block = __libc_calloc(n, bytes);
    got(block);
    return block;
}
KEPT void *memalign(size_t to, size_t bytes)
{
    void *block = __libc_memalign(to, bytes);
    got(block);
    return block;
}
KEPT void *aligned_alloc(size_t to, size_t bytes)
{
    void *block = __libc_memalign(to, bytes);
    got(block);
    return block;
}
KEPT int posix_memalign(void **out, size_t to, size_t bytes)
{
    *out = __libc_memalign(to, bytes);
    got(*out);
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
        all.frees++;
        all.freed += held;
    }
    got(moved);
    return moved;
}
#define COUNTED(block) (block)
#define COUNTED_FREE(block) free(block)
#define COUNTED_REALLOC(block, bytes) realloc(block, bytes)
#else
static void *counted(void *block)
{
    got(block);
    return block;
}
static void counted_free(void *block)
{
    gave(block);
    free(block);
}
static void *counted_realloc(void *block, size_t bytes)
{
    const long held = block != NULL ? (long)malloc_usable_size(block) : 0;
    void *moved = realloc(block, bytes);
    if (block != NULL && (moved != NULL || bytes == 0)) {
        all.frees++;
        all.freed += held;
    }
    got(moved);
    return moved;
}
#define COUNTED(block) counted(block)
#define COUNTED_FREE(block) counted_free(block)
#define COUNTED_REALLOC(block, bytes) counted_realloc(block, bytes)
#endif
static _Thread_local uint64_t seed;
static uint32_t next(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}
static void *volatile keep;
extern void mem_objects(unsigned round);
enum { HELD = 8 };
static _Thread_local void *held[HELD];
static void *one_more(void)
{
    void *block = NULL;
    const size_t bytes = next(20) == 0  ? 200000 + next(100000)
                         : next(5) == 0 ? next(5000)
                                        : next(200);
    switch (next(8)) {
    case 0:
        return COUNTED(calloc(next(10), bytes / 8));
    case 1:
        return COUNTED(aligned_alloc(64, 64 + bytes / 64 * 64));
    case 2:
        return COUNTED(posix_memalign(&block, 4096, bytes) == 0 ? block : NULL);
    case 3:
        return COUNTED(memalign(32, bytes));
    case 4:
        return COUNTED_REALLOC(NULL, bytes);
    case 5:
        return COUNTED(strdup("a text that the C library copies"));
    case 6:
        keep = COUNTED(malloc((size_t)PTRDIFF_MAX - next(100))); /* this allocation fails */
        return NULL;
    default:
        return COUNTED(malloc(bytes));
    }
}
KEPT void mem_change(int steps)
{
    for (int i = 0; i < steps; i++) {
        void **place = &held[next(HELD)];
        if (*place == NULL) {
            *place = one_more();
        } else if (next(3) == 0) {
            *place = COUNTED_REALLOC(*place, next(4) == 0 ? 0 : next(3000));
        } else {
            COUNTED_FREE(*place);
            *place = NULL;
        }
    }
    COUNTED_FREE(NULL);
}
KEPT int mem_again(int depth)
{
    mem_change(3);
    const int below = depth > 0 ? mem_again(depth - 1) : 0;
    mem_change(2);
    return below + 1;
}
KEPT void mem_numbered(long number)
{
    mem_change((int)(number % 5));
    keep = &number; /* taking the address prevents a tail call */
}
KEPT void mem_nothing(void)
{
    keep = held;
}
#define MEASURED(call)                                                                             \
    do {                                                                                           \
        const tally before = all;                                                                  \
        call;                                                                                      \
        const tally after = all;                                                                   \
        fprintf(out, "%s %ld %ld %ld %ld\n", #call, after.allocations - before.allocations,        \
                after.allocated - before.allocated, after.frees - before.frees,                    \
                after.freed - before.freed);                                                       \
    } while (0)
static void *run(void *given)
{
    const int number = *(int *)given;
    char name[64];
    snprintf(name, sizeof(name), "%s.%d", getenv("TALLY"), number);
    FILE *out = fopen(name, "w");
    fprintf(out, "%ld\n", (long)gettid());
    seed = (uint64_t)number + 7;
    for (int round = 0; round < ROUNDS; round++) {
        MEASURED(mem_change(30));
        MEASURED((void)mem_again(3));
        MEASURED(mem_nothing());
#ifdef OBJECTS
        MEASURED(mem_objects((unsigned)round));
#endif
    }
    fclose(out);
    return NULL;
}

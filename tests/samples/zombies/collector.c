/* Looks like a garbage collector that replaces malloc. It never collects. */
#include <stddef.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void __libc_free(void *block);

void *GC_malloc(size_t bytes)
{
    return __libc_malloc(bytes);
}

void *malloc(size_t bytes)
{
    return GC_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    return __libc_realloc(block, bytes);
}

void free(void *block)
{
    __libc_free(block);
}

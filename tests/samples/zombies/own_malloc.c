/* A program with its own allocator. It reads blocks that it has freed. */
#include <stddef.h>
#include <string.h>

enum { SPACE_BYTES = 1 << 24, ALIGNMENT = 16, BLOCKS = 50 };

static _Alignas(ALIGNMENT) char space[SPACE_BYTES];
static size_t used;

__attribute__((noinline)) void *malloc(size_t size)
{
    const size_t bytes = (size + 2 * ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (bytes < size || bytes > SPACE_BYTES - used) {
        return NULL;
    }
    char *at = space + used;
    used += bytes;
    memcpy(at, &size, sizeof(size));
    return at + ALIGNMENT;
}

__attribute__((noinline)) size_t malloc_usable_size(void *block)
{
    size_t size = 0;
    if (block != NULL) {
        memcpy(&size, (char *)block - ALIGNMENT, sizeof(size));
    }
    return size;
}

__attribute__((noinline)) void free(void *block)
{
    if (block != NULL) {
        volatile char *mark = (char *)block - 1;
        *mark = 1;
    }
}

__attribute__((noinline)) void *calloc(size_t count, size_t size)
{
    void *block = count == 0 || size <= SPACE_BYTES / count ? malloc(count * size) : NULL;
    return block != NULL ? memset(block, 0, count * size) : NULL;
}

__attribute__((noinline)) void *realloc(void *block, size_t size)
{
    void *made = malloc(size);
    const size_t kept = malloc_usable_size(block);
    if (made != NULL && block != NULL) {
        memcpy(made, block, kept < size ? kept : size);
        free(block);
    }
    return made;
}

__attribute__((noinline)) int read_own(const volatile char *block)
{
    return *block;
}

int main(void)
{
    int sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        char *block = malloc(40);
        *block = 1;
        free(block);
        sum += read_own(block);
    }
    return sum == BLOCKS ? 0 : 1;
}

#include "tests/support/fail_alloc.h"

#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool armed;
static bool failed;
static uint64_t left;

void fail_alloc_at(uint64_t n)
{
    armed = true;
    failed = false;
    left = n;
}

bool fail_alloc_stop(void)
{
    armed = false;
    return failed;
}

static bool fails_now(void)
{
    if (!armed || failed) {
        return false;
    }
    failed = left-- == 0;
    return failed;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __real_realloc(old, size);
}

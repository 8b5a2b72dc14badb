/* Design notes
 *
 * A program's malloc overrides the malloc of every library, if the program exports it. So the
 * allocations of SQLite, jansson, protobuf-c and zstd fail, too. With ASan, this file calls ASan's
 * allocator by the name that its runtime exports. ASan has a strdup of its own, which allocates
 * past malloc; so this file has one, too. The file is compiled without ASan, because ASan allocates
 * before it is ready. Allocations fail only in the thread that asked for it; the test's other
 * threads are not affected. */
#include "tests/support/fail_alloc.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__interceptor_malloc(size_t size) __attribute__((weak));
void *__interceptor_calloc(size_t count, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *old, size_t size) __attribute__((weak));
EXPORTED void *malloc(size_t size);
EXPORTED void *calloc(size_t count, size_t size);
EXPORTED void *realloc(void *old, size_t size);
EXPORTED char *strdup(const char *text);
EXPORTED char *strndup(const char *text, size_t size);

static _Thread_local bool armed;
static _Thread_local bool failed;
static _Thread_local bool is_lasting;
static _Thread_local uint64_t left;

void fail_alloc_at(uint64_t n)
{
    armed = true;
    failed = false;
    is_lasting = false;
    left = n;
}

void fail_alloc_from(uint64_t n)
{
    fail_alloc_at(n);
    is_lasting = true;
}

bool fail_alloc_stop(void)
{
    armed = false;
    return failed;
}

static bool fails_now(void)
{
    if (!armed || failed) {
        return armed && is_lasting;
    }
    failed = left-- == 0;
    errno = failed ? ENOMEM : errno;
    return failed;
}

void *malloc(size_t size)
{
    if (fails_now()) {
        return NULL;
    }
    return __interceptor_malloc != NULL ? __interceptor_malloc(size) : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (fails_now()) {
        return NULL;
    }
    return __interceptor_calloc != NULL ? __interceptor_calloc(count, size)
                                        : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (fails_now()) {
        return NULL;
    }
    return __interceptor_realloc != NULL ? __interceptor_realloc(old, size)
                                         : __libc_realloc(old, size);
}

char *strdup(const char *text)
{
    return strndup(text, strlen(text));
}

char *strndup(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

/* A library for LD_PRELOAD: makes the n-th allocation of one kind of process fail.
 *
 * SJ_FAIL_ALLOC is "WORD N FILE". A process that has WORD as an argument loses its N-th allocation,
 * counted from 0 over all threads, and writes the line "failed PID MODULE+OFFSET..." with its
 * callers to FILE. Its last line there is "count PID ALLOCATIONS", if it ends by exit. Such a
 * process does not pass the library on to its children. All other processes do, and lose nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD_BYTES = 32, LINE_BYTES = 4096, NUMBER_BASE = 10, FRAMES = 24, OWN_FRAMES = 2 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool is_armed;
static atomic_llong done;
static long long fails_at;
static char report_path[PATH_MAX];

static void report(const char *line)
{
    const int file = open(report_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        (void)!write(file, line, strlen(line));
        close(file);
    }
}

/* Reports the stack frames of a failed allocation: the caller first. */
__attribute__((noinline)) static void report_failure(void)
{
    void *frames[FRAMES];
    char line[LINE_BYTES];
    const int count = backtrace(frames, FRAMES);
    size_t used = (size_t)snprintf(line, sizeof(line), "failed %d", (int)getpid());
    for (int i = OWN_FRAMES; i < count && used < sizeof(line) / 2; ++i) {
        Dl_info module = {0};
        if (dladdr(frames[i], &module) != 0) {
            used += (size_t)snprintf(
                line + used, sizeof(line) - used, " %s+%#lx", strrchr(module.dli_fname, '/'),
                (unsigned long)((uintptr_t)frames[i] - (uintptr_t)module.dli_fbase));
        }
    }
    snprintf(line + used, sizeof(line) - used, "\n");
    report(line);
}

/* Counts an allocation. Returns true if it has to fail. */
static bool fails_now(void)
{
    if (!is_armed || atomic_fetch_add(&done, 1) != fails_at) {
        return false;
    }
    report_failure();
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *made = fails_now() ? NULL : __libc_memalign(alignment, size);
    if (made == NULL) {
        return ENOMEM;
    }
    *memory = made;
    return 0;
}

static bool has_argument(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], word) == 0) {
            return true;
        }
    }
    return false;
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    void *frames[FRAMES];
    char word[WORD_BYTES];
    const char *plan = getenv("SJ_FAIL_ALLOC");
    const char *number = plan != NULL ? strchr(plan, ' ') : NULL;
    const char *path = number != NULL ? strchr(number + 1, ' ') : NULL;
    if (path == NULL) {
        return;
    }
    snprintf(word, sizeof(word), "%.*s", (int)(number - plan), plan);
    if (!has_argument(argc, argv, word)) {
        return;
    }
    snprintf(report_path, sizeof(report_path), "%s", path + 1);
    fails_at = strtoll(number + 1, NULL, NUMBER_BASE);
    unsetenv("LD_PRELOAD");
    unsetenv("SJ_FAIL_ALLOC");
    (void)backtrace(frames, FRAMES); /* The first call allocates. */
    is_armed = true;
}

__attribute__((destructor)) static void end(void)
{
    char line[LINE_BYTES];
    if (is_armed) {
        is_armed = false;
        snprintf(line, sizeof(line), "count %d %lld\n", (int)getpid(), atomic_load(&done));
        report(line);
    }
}

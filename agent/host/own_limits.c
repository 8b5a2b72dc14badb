#include "agent/host/own_limits.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>

enum { MIN_STACK_KBYTES = 256, MIN_MEMORY_KBYTES = 512 << 10, ENOUGH_FILES = 256, KBYTE = 1024 };

static const rlim_t enough_memory_bytes = (rlim_t)4 << 30;
static const rlim_t enough_file_bytes = (rlim_t)64 << 20;

static bool is_raised;
static struct rlimit files_before;

void sj_own_limits_raise(void)
{
    if (is_raised || getrlimit(RLIMIT_NOFILE, &files_before) != 0 ||
        files_before.rlim_cur >= files_before.rlim_max) {
        return;
    }
    const struct rlimit raised = {.rlim_cur = files_before.rlim_max,
                                  .rlim_max = files_before.rlim_max};
    is_raised = setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

void sj_own_limits_restore(void)
{
    if (is_raised) {
        (void)setrlimit(RLIMIT_NOFILE, &files_before);
    }
}

sj_status sj_own_limits_check(sj_error *error)
{
    static const struct {
        __rlimit_resource_t kind;
        char option;
        const char *name;
        int min_kbytes;
    } needs[] = {{RLIMIT_STACK, 's', "a stack", MIN_STACK_KBYTES},
                 {RLIMIT_AS, 'v', "an address space", MIN_MEMORY_KBYTES}};
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        struct rlimit limit;
        if (getrlimit(needs[i].kind, &limit) == 0 &&
            limit.rlim_cur < (rlim_t)needs[i].min_kbytes * KBYTE) {
            const unsigned long long kbytes = limit.rlim_cur / KBYTE;
            return sj_fail(error, SJ_ELIMIT,
                           "%s of %llu kB (\"ulimit -%c\") is too small for sojourn, which needs "
                           "%d; to limit the program alone, name it as "
                           "sh -c 'ulimit -%c %llu; exec PROGRAM'",
                           needs[i].name, kbytes, needs[i].option, needs[i].min_kbytes,
                           needs[i].option, kbytes);
        }
    }
    return SJ_OK;
}

void sj_own_limits_describe(char *text, size_t capacity)
{
    const struct {
        __rlimit_resource_t kind;
        char option;
        rlim_t unit;
        rlim_t enough;
    } limits[] = {{RLIMIT_NOFILE, 'n', 1, ENOUGH_FILES},
                  {RLIMIT_AS, 'v', KBYTE, enough_memory_bytes},
                  {RLIMIT_FSIZE, 'f', KBYTE, enough_file_bytes}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].kind, &limit) != 0 || limit.rlim_cur >= limits[i].enough) {
            continue;
        }
        const int written =
            snprintf(text + used, capacity - used,
                     "%s\"ulimit -%c\" is %llu here; try at least %llu", used != 0 ? "; " : "",
                     limits[i].option, (unsigned long long)(limit.rlim_cur / limits[i].unit),
                     (unsigned long long)(limits[i].enough / limits[i].unit));
        used += written > 0 && (size_t)written < capacity - used ? (size_t)written : 0;
    }
}

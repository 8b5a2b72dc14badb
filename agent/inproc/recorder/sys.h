/* Raw system calls for code that runs inside the program: without libc, errno, locks or allocation.
 * Unless noted, a function returns the kernel's result: a negative errno on failure.
 * Async-signal-safe. */
#ifndef SJ_AGENT_INPROC_RECORDER_SYS_H
#define SJ_AGENT_INPROC_RECORDER_SYS_H

#include "agent/abi/machine.h"

#include SJ_ARCH_FILE(recorder, sys_call.h)

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define SJ_SYS(number, a, b, c, d, e, f)                                                           \
    sj_sys_call6((number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline long sj_sys_open_at(int directory, const char *path, int flags, int mode)
{
    return SJ_SYS(SYS_openat, directory, path, flags, mode, 0, 0);
}

static inline long sj_sys_close(int descriptor)
{
    return SJ_SYS(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

static inline long sj_sys_read(int descriptor, void *bytes, size_t count)
{
    return SJ_SYS(SYS_read, descriptor, bytes, count, 0, 0, 0);
}

/* sj_sys_map maps memory. sj_sys_failed returns true if its result is an error. */
static inline void *sj_sys_map(void *address, size_t bytes, int protection, int flags,
                               int descriptor, uint64_t offset)
{
    return (void *)SJ_SYS(SYS_mmap, address, bytes, protection, flags, descriptor, offset);
}

static inline int sj_sys_failed(const void *mapped)
{
    return (uintptr_t)mapped >= (uintptr_t)-4095;
}

/* Maps private, zeroed, writable memory. Returns NULL if out of memory. */
static inline void *sj_sys_allocate(size_t bytes)
{
    void *memory =
        sj_sys_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sj_sys_failed(memory) ? NULL : memory;
}

/* Allocates the pages of writable private memory at once, if the kernel supports it (Linux 5.14).
 * Allocating them by page faults takes one and a half times as long. */
static inline void sj_sys_populate(void *address, size_t bytes)
{
    enum { ADVICE_POPULATE_WRITE = 23 };
    (void)SJ_SYS(SYS_madvise, address, bytes, ADVICE_POPULATE_WRITE, 0, 0, 0);
}

static inline long sj_sys_unmap(void *address, size_t bytes)
{
    return SJ_SYS(SYS_munmap, address, bytes, 0, 0, 0, 0);
}

static inline long sj_sys_protect(void *address, size_t bytes, int protection)
{
    return SJ_SYS(SYS_mprotect, address, bytes, protection, 0, 0, 0);
}

static inline uint32_t sj_sys_pid(void)
{
    return (uint32_t)SJ_SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static inline uint32_t sj_sys_parent_pid(void)
{
    return (uint32_t)SJ_SYS(SYS_getppid, 0, 0, 0, 0, 0, 0);
}

static inline uint32_t sj_sys_tid(void)
{
    return (uint32_t)SJ_SYS(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* True if a file may have `bytes` bytes. Beyond RLIMIT_FSIZE the program would get a SIGXFSZ. */
static inline bool sj_sys_may_write(uint64_t bytes)
{
    struct rlimit limit;
    return SJ_SYS(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit, 0, 0) != 0 ||
           limit.rlim_cur >= bytes;
}

/* Reads a kernel clock (CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_THREAD_CPUTIME_ID), in
 * nanoseconds. */
static inline uint64_t sj_sys_clock_ns(int clock)
{
    struct {
        int64_t seconds;
        int64_t nanoseconds;
    } now = {0, 0};
    (void)SJ_SYS(SYS_clock_gettime, clock, &now, 0, 0, 0, 0);
    return (uint64_t)now.seconds * UINT64_C(1000000000) + (uint64_t)now.nanoseconds;
}

#endif

/* Design notes
 *
 * The locks are adjacent members of _rtld_global. Their offset depends on the version of the C
 * library. This process finds the offset in its own copy: during a dl_iterate_phdr callback it
 * holds the second lock. So it looks for the recursive mutex whose owner is this thread. */
#include "agent/ptrace/loader_lock.h"

#include "agent/ptrace/arch.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/tracee_modules.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GLOBAL_BYTES = 8192, LOCKS = 3, HELD = 1 };

/* The first members of a pthread_mutex_t. */
typedef struct mutex_words {
    int32_t lock;
    uint32_t count;
    int32_t owner;
    uint32_t users;
    int32_t kind;
} mutex_words;

typedef struct own_locks {
    uint64_t first;  /* offset in _rtld_global; 0: not found */
    uint64_t global; /* offset of _rtld_global in the loader */
    uint64_t loader_bytes;
} own_locks;

static bool is_recursive(const mutex_words *mutex)
{
    return mutex->kind == PTHREAD_MUTEX_RECURSIVE_NP;
}

static int note_own_object(struct dl_phdr_info *info, size_t size, void *context)
{
    own_locks *own = context;
    const uint8_t *global = dlsym(RTLD_DEFAULT, "_rtld_global");
    (void)info;
    (void)size;
    for (size_t at = sizeof(pthread_mutex_t); global != NULL && at < GLOBAL_BYTES; at += 8) {
        mutex_words held;
        mutex_words before;
        /* The mutex records its owner even in a process with a single thread. */
        memcpy(&held, global + at, sizeof(held));
        memcpy(&before, global + at - HELD * sizeof(pthread_mutex_t), sizeof(before));
        if (held.owner == gettid() && held.count == 1 && is_recursive(&held) &&
            is_recursive(&before)) {
            own->first = at - HELD * sizeof(pthread_mutex_t);
            break;
        }
    }
    return 1;
}

static bool find_own(own_locks *own)
{
    sj_remote_module loader;
    const uint64_t global = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "_rtld_global");
    *own = (own_locks){0};
    (void)dl_iterate_phdr(note_own_object, own);
    if (own->first == 0 || sj_remote_module_find(getpid(), "ld-", &loader) != SJ_OK) {
        return false;
    }
    own->global = global - loader.low;
    own->loader_bytes = loader.high - loader.low;
    return true;
}

uint64_t sj_loader_lock_find(const sj_tracee *target)
{
    own_locks own;
    sj_remote_module loader;
    uint64_t global = 0;
    if (!find_own(&own) || sj_remote_module_find(target->pid, "ld-", &loader) != SJ_OK ||
        loader.high - loader.low != own.loader_bytes ||
        sj_remote_symbol(target, &loader, "_rtld_global", &global) != SJ_OK ||
        global - loader.low != own.global) {
        return 0;
    }
    return global + own.first;
}

bool sj_loader_lock_is_awaited(const sj_tracee *target, uint64_t address)
{
    for (size_t i = 0; i < target->count && address != 0; i++) {
        sj_registers state;
        if (sj_registers_get(target->threads[i].tid, &state) == SJ_OK && state.in_syscall &&
            state.syscall == SYS_futex && state.argument == address) {
            return true;
        }
    }
    return false;
}

/* Reads one of the locks. Returns false if there is no lock at `address`. */
static bool read_lock(const sj_tracee *target, uint64_t address, mutex_words *mutex)
{
    return sj_tracee_read(target, address, mutex, sizeof(*mutex)) == SJ_OK && is_recursive(mutex);
}

bool sj_loader_lock_is_held(const sj_tracee *target, uint64_t first)
{
    mutex_words mutex;
    bool held = false;
    for (uint32_t i = 0; i < LOCKS && first != 0 && !held &&
                         read_lock(target, first + i * sizeof(pthread_mutex_t), &mutex);
         i++) {
        /* A thread that has just locked the mutex has not recorded itself as owner yet. */
        held = mutex.lock != 0 &&
               (mutex.owner == 0 || sj_proc_find_thread(target->pid, mutex.owner) != 0);
    }
    return held;
}

bool sj_loader_lock_is_orphaned(const sj_tracee *target)
{
    mutex_words mutex;
    bool orphaned = false;
    const uint64_t first = sj_loader_lock_find(target);
    for (uint32_t i = 0; i < LOCKS && first != 0 && !orphaned &&
                         read_lock(target, first + i * sizeof(pthread_mutex_t), &mutex);
         i++) {
        orphaned = mutex.lock != 0 && mutex.owner != 0 &&
                   sj_proc_find_thread(target->pid, mutex.owner) == 0;
    }
    return orphaned;
}

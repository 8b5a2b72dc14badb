/* Design notes
 *
 * A thread that runs in libc, in an allocator, or in a runtime with one lock for all its tables may
 * hold a lock. It is not used. A thread inside a system call is used, except if libc makes this
 * call with a lock held, or if the stack has a frame of the loader or of fork. fork holds all locks
 * of the allocator and releases them one by one, each with a system call. The same rules apply to
 * frames that a signal handler has interrupted. */
#include "agent/ptrace/safepoint.h"

#include "agent/host/clock.h"
#include "agent/ptrace/loader_lock.h"
#include "agent/ptrace/remote_stubs.h"
#include "agent/ptrace/tracee_modules.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAMES_MAX = 512, COPY_BYTES = 64 * 1024, THREADS_MAX = 64, PAUSE_NS = 500000 };

#define SEARCH_NS UINT64_C(5000000000)

typedef struct safe_search {
    sj_tracee *target;
    sj_unwinder *unwinder;
    sj_remote_module libc;
    sj_remote_module loader;
    sj_remote_module lockers[4]; /* allocators, and runtimes with a global lock */
    sj_remote_range fork;
    sj_remote_stubs stubs; /* empty if the process has no agent */
} safe_search;

static bool is_in(const sj_remote_module *module, uint64_t pc)
{
    return pc >= module->code_low && pc < module->code_high;
}

static bool is_allocator_name(const char *name)
{
    static const char *const names[] = {"malloc", "calloc", "realloc", "free", "memalign", "je_",
                                        "tc_",    "mi_",    "arena_",  "_Znw", "_Zna",     "_Zdl"};
    for (size_t i = 0; name != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_in_locker(const safe_search *search, uint64_t pc)
{
    for (size_t i = 0; i < sizeof(search->lockers) / sizeof(search->lockers[0]); i++) {
        if (is_in(&search->lockers[i], pc)) {
            return true;
        }
    }
    return false;
}

bool sj_safepoint_has_space(const sj_tracee *target, uint64_t sp)
{
    sj_remote_range stack;
    bool grows = false;
    return sj_remote_mapping_find(target->pid, sp, &stack, &grows) == SJ_OK &&
           (grows || sp - stack.low >= SJ_CALL_STACK_BYTES);
}

/* True if a thread with this frame on its stack may hold a lock. `is_waiting`: the thread makes a
 * system call in this frame. */
static bool may_hold_lock(const safe_search *search, const sj_native_frame *frame, bool is_waiting)
{
    if (is_in(&search->loader, frame->pc) || is_in_locker(search, frame->pc) ||
        sj_remote_is_in(&search->fork, frame->pc)) {
        return true;
    }
    if (is_in(&search->libc, frame->pc)) {
        return frame->is_activation && !is_waiting;
    }
    return is_allocator_name(sj_unwinder_name(search->unwinder, frame->pc));
}

static bool are_frames_safe(const safe_search *search, const sj_stack_copy *copy)
{
    static sj_native_frame frames[FRAMES_MAX];
    const size_t count = sj_unwinder_walk(search->unwinder, copy, frames, FRAMES_MAX);
    bool safe = count != 0;
    for (size_t i = 0; i < count && safe; i++) {
        const bool is_waiting = i == 0 && copy->state.in_syscall && frames[i].pc == copy->state.pc;
        safe = !may_hold_lock(search, &frames[i], is_waiting);
    }
    return safe;
}

/* True if neither the agent's frames nor the program's may hold a lock. */
static bool holds_no_lock(const safe_search *search, sj_stack_copy *copy)
{
    sj_remote_stubs_put_back(&search->stubs, search->target, copy->low, copy->bytes, copy->size);
    bool safe = are_frames_safe(search, copy);
    if (safe && search->stubs.count != 0) {
        sj_unwinder_hide_agent(search->unwinder, &search->stubs);
        safe = are_frames_safe(search, copy);
        sj_unwinder_hide_agent(search->unwinder, NULL);
    }
    return safe;
}

static sj_status is_safe(const safe_search *search, size_t thread, bool *safe)
{
    sj_stack_copy copy;
    *safe = false;
    SJ_TRY(
        sj_stack_copy_read(search->target, search->target->threads[thread].tid, COPY_BYTES, &copy));
    const bool is_locked = copy.state.in_syscall ? !sj_inferior_call_is_allowed(copy.state.syscall)
                                                 : is_in(&search->libc, copy.state.pc) ||
                                                       is_in(&search->loader, copy.state.pc);
    *safe = !is_locked && sj_safepoint_has_space(search->target, copy.state.sp) &&
            holds_no_lock(search, &copy);
    sj_stack_copy_deinit(&copy);
    return SJ_OK;
}

/* Writes the ids of the process's threads, the first thread first. Returns how many. */
static size_t list_threads(pid_t pid, pid_t *tids, size_t capacity)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    tids[count++] = pid;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
         entry != NULL && count < capacity; entry = readdir(folder)) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && tid != pid) {
            tids[count++] = tid;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static sj_status try_threads(safe_search *search, size_t *thread, bool *found)
{
    pid_t tids[THREADS_MAX];
    const size_t count = list_threads(search->target->pid, tids, THREADS_MAX);
    size_t gone = 0;
    for (size_t i = 0; i < count; i++) {
        const sj_status status = sj_tracee_stop_one(search->target, tids[i], thread);
        if (status == SJ_ECLOSED) {
            sj_tracee_resume_all(search->target);
            gone++;
            continue;
        }
        SJ_TRY(status);
        SJ_TRY(is_safe(search, *thread, found));
        if (*found) {
            return SJ_OK;
        }
        sj_tracee_resume_all(search->target);
    }
    return gone == count ? SJ_ECLOSED : SJ_OK;
}

static void find_regions(safe_search *search)
{
    const pid_t pid = search->target->pid;
    search->fork = sj_remote_fork_find(search->target);
    (void)!sj_remote_libc_find(pid, &search->libc);
    (void)!sj_remote_module_find(pid, "ld-", &search->loader);
    (void)!sj_remote_module_find(pid, "libjemalloc", &search->lockers[0]);
    (void)!sj_remote_module_find(pid, "libtcmalloc", &search->lockers[1]);
    (void)!sj_remote_module_find(pid, "libmimalloc", &search->lockers[2]);
    (void)!sj_remote_module_find(pid, "libobjc", &search->lockers[3]);
}

/* Tries all threads once. Reads anew where the stubs are, because loading a module adds some. */
static sj_status try_round(safe_search *search, size_t *thread, bool *found)
{
    const sj_status read = sj_remote_stubs_read(search->target, &search->stubs);
    const sj_status status = read == SJ_ENOMEM ? read : try_threads(search, thread, found);
    sj_remote_stubs_deinit(&search->stubs);
    return status;
}

sj_status sj_safepoint_find(sj_tracee *target, sj_unwinder *unwinder, size_t *thread)
{
    safe_search search = {.target = target, .unwinder = unwinder};
    const uint64_t deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + SEARCH_NS;
    bool found = false;
    if (sj_loader_lock_is_orphaned(target)) {
        return SJ_EUNSUPPORTED;
    }
    find_regions(&search);
    while (!found && sj_clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        SJ_TRY(try_round(&search, thread, &found));
        if (!found) {
            nanosleep(&pause, NULL);
        }
    }
    return found ? SJ_OK : SJ_ETIMEDOUT;
}

/* Design notes
 *
 * libc's functions that run a program end in its execve, or in the execveat of fexecve and
 * execveat. The instruction that loads the number of that system call is replaced by a jump to a
 * trampoline to sj_exec_try. syscall() has a gate (filters.h).
 *
 * This code runs in forked children, in vforked ones on their parent's memory, and on the small
 * stacks of posix_spawn. So it takes no lock, allocates nothing, and changes only its own stack.
 * Some programs run as requested and are counted. Either their environment does not fit on that
 * stack, or they cannot load the agent (static, foreign and set-user-id programs), or programs are
 * not followed. If the kernel refuses a call, libc's execve continues and sets errno.
 *
 * Entries are added to a copy of the environment, and the program's own is not modified. The new
 * program's agent removes them before main and restores the order. */
#include "agent/inproc/core/exec.h"
#include "agent/inproc/core/arch.h"

#include "agent/abi/link.h"
#include "agent/inproc/core/exec_check.h"
#include "agent/inproc/core/gates.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/recorder_peer.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/link/link_client.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="

enum {
    ENTRIES_MAX = 1500,
    ADDED_ENTRIES = 12,
    TEXT_BYTES = 1024,
    ENTRY_BYTES = 4096 + 64,
    DESCRIPTOR_BYTES = 40
};

static char runtime_entry[ENTRY_BYTES];
static char agent_path[TEXT_BYTES];
static sj_hooked_module hooks[3];
static sj_exec_followed followed;
static uint32_t own_pid;

/* The environment of one exec, on its stack. */
typedef struct exec_buffer {
    char preload[2 * TEXT_BYTES];
    char saved[TEXT_BYTES];
    char *entries[ENTRIES_MAX + ADDED_ENTRIES + 1];
} exec_buffer;

static bool join_text(char *to, size_t capacity, const char *const *parts, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(parts[i]);
        if (used + length >= capacity) {
            return false;
        }
        memcpy(to + used, parts[i], length + 1);
        used += length;
    }
    return true;
}

/* Copies the environment and adds the agent's entries. Returns false if they do not fit. */
static bool fill_buffer(exec_buffer *buffer, char *const *environment, size_t *entry_count)
{
    const char *preload = NULL;
    size_t count = 0;
    for (; environment != NULL && environment[count] != NULL; count++) {
        if (count == ENTRIES_MAX) {
            return false;
        }
        buffer->entries[count] = environment[count];
        if (strncmp(environment[count], PRELOAD, sizeof(PRELOAD) - 1) == 0 && preload == NULL) {
            preload = environment[count] + sizeof(PRELOAD) - 1;
            buffer->entries[count] = buffer->preload;
        }
    }
    const char *const parts[] = {PRELOAD, agent_path, ":", preload};
    if (!join_text(buffer->preload, sizeof(buffer->preload), parts, preload != NULL ? 4 : 2)) {
        return false;
    }
    if (preload == NULL) {
        buffer->entries[count++] = buffer->preload;
    } else {
        const char *const saved[] = {SJ_ENV_PRELOAD "=", preload};
        if (!join_text(buffer->saved, sizeof(buffer->saved), saved, 2)) {
            return false;
        }
        buffer->entries[count++] = buffer->saved;
    }
    *entry_count = count;
    return true;
}

/* Adds the entries that lead the next program's agent to the recorder. Returns false if they do not
 * fit. */
static bool add_companion(exec_buffer *buffer, size_t count, const char *const *entries)
{
    const size_t most = sizeof(buffer->entries) / sizeof(buffer->entries[0]) - 1;
    if (entries == NULL) {
        buffer->entries[count++] = runtime_entry;
    }
    for (; entries != NULL && *entries != NULL && count < most; entries++) {
        buffer->entries[count++] = (char *)(uintptr_t)*entries;
    }
    buffer->entries[count] = NULL;
    return entries == NULL || *entries == NULL;
}

static bool fill_all(exec_buffer *buffer, char *const *environment, const char *const *entries)
{
    size_t count = 0;
    return fill_buffer(buffer, environment, &count) && add_companion(buffer, count, entries);
}

/* A program that is about to be run. */
typedef struct exec_call {
    bool is_at; /* the call is execveat */
    int directory;
    int flags;
    const char *path;
    char *const *arguments;
    char *const *environment;
} exec_call;

/* Returns only if the kernel refuses the program, with its negative error. */
static long execute(const exec_call *call, char *const *environment)
{
    return call->is_at ? SJ_SYS(SYS_execveat, call->directory, call->path, call->arguments,
                                environment, call->flags, 0)
                       : SJ_SYS(SYS_execve, call->path, call->arguments, environment, 0, 0, 0);
}

/* Runs the program as requested. */
static void run_unrecorded(const exec_call *call, sj_unrecorded reason)
{
    sj_recorder_begin_exec(reason);
    (void)execute(call, call->environment);
    sj_recorder_cancel_exec(reason);
}

/* Runs the program with the agent. Returns false if the environment is too large with the agent's
 * entries. */
static __attribute__((noinline)) bool run_recorded(const exec_call *call,
                                                   const char *const *entries)
{
    exec_buffer buffer;
    if (!fill_all(&buffer, call->environment, entries)) {
        return false;
    }
    sj_recorder_begin_exec(SJ_UNRECORDED_NONE);
    const long error = execute(call, buffer.entries);
    sj_recorder_cancel_exec(SJ_UNRECORDED_NONE);
    return error != -E2BIG;
}

/* True if a program of this process joins the session if it can. `entries` lead it to the session.
 * If `*entries` is NULL, the runtime directory does. */
static bool is_followed(const char *const **entries)
{
    if (followed == SJ_EXEC_NONE || (followed == SJ_EXEC_OWN && sj_sys_pid() != own_pid)) {
        return false;
    }
    sj_recorder_peer_exec(entries);
    return followed == SJ_EXEC_ALL || *entries == NULL;
}

/* Tries to run the program. If this function returns, libc makes the system call and sets errno.
 * `file` is the program's file, looked up from the call's directory. */
static void run(const exec_call *call, const char *file)
{
    const char *const *entries = NULL;
    if (!sj_recorder_is_armed()) {
        return;
    }
    if (!sj_recorder_may_call()) {
        sj_recorder_count_unrecorded(followed == SJ_EXEC_ALL ? SJ_UNRECORDED_FILTER
                                                             : SJ_UNRECORDED_UNFOLLOWED);
        return;
    }
    const bool follows = is_followed(&entries);
    const char *runtime =
        follows && entries == NULL ? runtime_entry + sizeof(SJ_ENV_RUNTIME) : NULL;
    sj_unrecorded reason = sj_exec_check(call->directory, file, agent_path, runtime);
    if (reason == SJ_UNRECORDED_NONE && !follows) {
        reason = SJ_UNRECORDED_UNFOLLOWED;
    }
    if (reason != SJ_UNRECORDED_NONE) {
        run_unrecorded(call, reason);
    } else if (!run_recorded(call, entries)) {
        run_unrecorded(call, SJ_UNRECORDED_ENVIRONMENT);
    }
}

void sj_exec_try(const char *path, char *const *arguments, char *const *environment)
{
    const exec_call call = {
        .directory = AT_FDCWD, .path = path, .arguments = arguments, .environment = environment};
    if (path != NULL) {
        run(&call, path);
    }
}

/* Writes the path of a descriptor's file in /proc. */
static void name_descriptor(char text[DESCRIPTOR_BYTES], int descriptor)
{
    static const char folder[] = "/proc/self/fd/";
    memcpy(text, folder, sizeof(folder));
    text[sj_link_append_number(text, sizeof(folder) - 1, (uint64_t)descriptor)] = '\0';
}

void sj_exec_try_at(int directory, const char *path, char *const *arguments,
                    char *const *environment, int flags)
{
    char descriptor[DESCRIPTOR_BYTES];
    const exec_call call = {.is_at = true,
                            .directory = directory,
                            .flags = flags,
                            .path = path,
                            .arguments = arguments,
                            .environment = environment};
    if (path == NULL) {
        return;
    }
    const bool is_file = path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0 && directory >= 0;
    if (is_file) {
        name_descriptor(descriptor, directory);
    }
    run(&call, is_file ? descriptor : path);
}

/* Installs a gate for the system call `at` bytes into the function. */
static sj_status watch(uint64_t function, int32_t at, void (*gate)(void), uint64_t *resume,
                       sj_hooked_module *hook)
{
    return at >= 0 ? sj_gate_put(function + (uint64_t)at, gate, resume, hook) : SJ_EUNSUPPORTED;
}

/* Watches fexecve and execveat. Some C libraries lack them, or implement them by execve, which is
 * watched anyway. */
static void watch_execveat(void)
{
    const uint64_t by_path = sj_definition_find("execveat", NULL);
    const uint64_t by_file = sj_definition_find("fexecve", NULL);
    if (by_path != 0) {
        (void)!watch(by_path, sj_arch_find_later_system_call(by_path, SYS_execveat),
                     sj_arch_execveat_entry, &sj_arch_execveat_resume, &hooks[1]);
    }
    if (by_file != 0) {
        (void)!watch(by_file, sj_arch_find_later_system_call(by_file, SYS_execveat),
                     sj_arch_fexecve_entry, &sj_arch_fexecve_resume, &hooks[2]);
    }
}

sj_status sj_exec_follow(const char *runtime, sj_exec_followed which)
{
    const char *const parts[] = {SJ_ENV_RUNTIME "=", runtime};
    const uint64_t address = (uint64_t)(uintptr_t)&execve;
    Dl_info info;
    if (dladdr(hooks, &info) == 0 || info.dli_fname[0] != '/' ||
        strlen(info.dli_fname) >= sizeof(agent_path) ||
        !join_text(runtime_entry, sizeof(runtime_entry), parts, 2)) {
        return SJ_EUNSUPPORTED;
    }
    memcpy(agent_path, info.dli_fname, strlen(info.dli_fname) + 1);
    followed = which;
    own_pid = sj_sys_pid();
    watch_execveat();
    return watch(address, sj_arch_find_system_call(address, SYS_execve), sj_arch_exec_entry,
                 &sj_arch_exec_resume, &hooks[0]);
}

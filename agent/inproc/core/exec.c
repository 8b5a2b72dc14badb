/* Design notes
 *
 * libc's ways to run a program end in its execve, whose first instruction loads the number of the
 * system call, or in the execveat of fexecve and execveat; that instruction is replaced by a jump
 * to a trampoline to sj_exec_try. syscall() has a gate (filters.h). That runs in forked children,
 * in vforked ones on their parent's memory, and on the small stacks of posix_spawn: it takes no
 * lock, allocates nothing and changes nothing but its own stack. What does not fit there, what
 * could not load the agent (static, foreign or set-user-id programs) and what fails goes on in
 * libc's execve as the program asked, which also sets errno.
 *
 * Entries are added to a copy of the environment; the program's own is not modified. The new
 * program's agent removes them before main and restores the order. */
#include "agent/inproc/core/exec.h"
#include "agent/inproc/core/arch.h"

#include "agent/abi/link.h"
#include "agent/inproc/core/exec_check.h"
#include "agent/inproc/core/link_client.h"
#include "agent/inproc/core/recorder_peer.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <dlfcn.h>
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
static uint32_t own_pid; /* only its programs are followed; 0: those of forked children, too */

/* The environment of one exec, on its stack. */
typedef struct exec_room {
    char preload[2 * TEXT_BYTES];
    char saved[TEXT_BYTES];
    char *entries[ENTRIES_MAX + ADDED_ENTRIES + 1];
} exec_room;

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

/* fill_room copies the environment and adds the agent's entries; false when it does not fit. */
static bool fill_room(exec_room *room, char *const *environment, size_t *entry_count)
{
    const char *preload = NULL;
    size_t count = 0;
    for (; environment != NULL && environment[count] != NULL; count++) {
        if (count == ENTRIES_MAX) {
            return false;
        }
        room->entries[count] = environment[count];
        if (strncmp(environment[count], PRELOAD, sizeof(PRELOAD) - 1) == 0 && preload == NULL) {
            preload = environment[count] + sizeof(PRELOAD) - 1;
            room->entries[count] = room->preload;
        }
    }
    const char *const parts[] = {PRELOAD, agent_path, ":", preload};
    if (!join_text(room->preload, sizeof(room->preload), parts, preload != NULL ? 4 : 2)) {
        return false;
    }
    if (preload == NULL) {
        room->entries[count++] = room->preload;
    } else {
        const char *const saved[] = {SJ_ENV_PRELOAD "=", preload};
        if (!join_text(room->saved, sizeof(room->saved), saved, 2)) {
            return false;
        }
        room->entries[count++] = room->saved;
    }
    *entry_count = count;
    return true;
}

/* add_companion names the companion to the next program's agent; false when it does not fit. */
static bool add_companion(exec_room *room, size_t count, const char *const *entries)
{
    const size_t most = sizeof(room->entries) / sizeof(room->entries[0]) - 1;
    if (entries == NULL) {
        room->entries[count++] = runtime_entry;
    }
    for (; entries != NULL && *entries != NULL && count < most; entries++) {
        room->entries[count++] = (char *)(uintptr_t)*entries;
    }
    room->entries[count] = NULL;
    return entries == NULL || *entries == NULL;
}

/* Where the new program's agent finds the session, if it may join; NULL in `*runtime`: by `entries`
 * alone. */
static bool may_follow(const char *const **entries, const char **runtime)
{
    if (!sj_recorder_is_armed()) {
        return false;
    }
    if (!sj_recorder_may_call()) {
        sj_recorder_count_unrecorded(own_pid == 0 ? SJ_UNRECORDED_FILTER : SJ_UNRECORDED_NONE);
        return false;
    }
    if (own_pid != 0 && sj_sys_pid() != own_pid) {
        return false;
    }
    sj_recorder_peer_exec(entries);
    *runtime = *entries == NULL ? runtime_entry + sizeof(SJ_ENV_RUNTIME) : NULL;
    return own_pid == 0 || *entries == NULL;
}

static bool fill_all(exec_room *room, char *const *environment, const char *const *entries)
{
    size_t count = 0;
    return fill_room(room, environment, &count) && add_companion(room, count, entries);
}

void sj_exec_try(const char *path, char *const *arguments, char *const *environment)
{
    exec_room room;
    const char *const *entries;
    const char *runtime;
    if (path == NULL || !may_follow(&entries, &runtime)) {
        return;
    }
    const sj_unrecorded reason = sj_exec_check(AT_FDCWD, path, agent_path, runtime);
    sj_recorder_count_unrecorded(reason);
    if (reason == SJ_UNRECORDED_NONE && fill_all(&room, environment, entries)) {
        (void)SJ_SYS(SYS_execve, path, arguments, room.entries, 0, 0, 0);
    }
}

/* The file of a descriptor; paths are looked up from it. */
static void name_descriptor(char text[DESCRIPTOR_BYTES], int descriptor)
{
    static const char folder[] = "/proc/self/fd/";
    memcpy(text, folder, sizeof(folder));
    text[sj_link_append_number(text, sizeof(folder) - 1, (uint64_t)descriptor)] = '\0';
}

void sj_exec_try_at(int directory, const char *path, char *const *arguments,
                    char *const *environment, int flags)
{
    exec_room room;
    char descriptor[DESCRIPTOR_BYTES];
    const char *const *entries;
    const char *runtime;
    if (path == NULL || !may_follow(&entries, &runtime)) {
        return;
    }
    const bool is_file = path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0 && directory >= 0;
    if (is_file) {
        name_descriptor(descriptor, directory);
    }
    const sj_unrecorded reason =
        sj_exec_check(directory, is_file ? descriptor : path, agent_path, runtime);
    sj_recorder_count_unrecorded(reason);
    if (reason == SJ_UNRECORDED_NONE && fill_all(&room, environment, entries)) {
        (void)SJ_SYS(SYS_execveat, directory, path, arguments, room.entries, flags, 0);
    }
}

/* Leads the system call at `at` to the gate. */
static sj_status watch(uint64_t function, int32_t at, void (*gate)(void), uint64_t *resume,
                       sj_hooked_module *hook)
{
    uint8_t original[SJ_PATCH_MAX_BYTES];
    if (at < 0) {
        return SJ_EUNSUPPORTED;
    }
    const uint64_t address = function + (uint64_t)at;
    *resume = address + SJ_RETURN_ROOM_BYTES;
    memcpy(original, (const void *)(uintptr_t)address, SJ_RETURN_ROOM_BYTES);
    return sj_hooks_redirect(address, original, SJ_RETURN_ROOM_BYTES, (uint64_t)(uintptr_t)gate,
                             false, hook);
}

/* Functions that some C libraries lack, or make of execve: what they have is watched. */
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

sj_status sj_exec_follow(const char *runtime, bool only_own)
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
    own_pid = only_own ? sj_sys_pid() : 0;
    watch_execveat();
    return watch(address, sj_arch_find_system_call(address, SYS_execve), sj_arch_exec_entry,
                 &sj_arch_exec_resume, &hooks[0]);
}

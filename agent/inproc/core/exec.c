/* Design notes
 *
 * All of libc's ways to run a program end in its execve, whose first instruction loads the number
 * of the system call; it is replaced by a jump to a trampoline to sj_exec_try. That runs in forked
 * children, in vforked ones on their parent's memory, and on the small stacks of posix_spawn: it
 * takes no lock, allocates nothing and changes nothing but its own stack. What does not fit there,
 * what could not load the agent (static, foreign or set-user-id programs) and what fails goes on in
 * libc's execve as the program asked, which also sets errno.
 *
 * Entries are added to a copy of the environment; the program's own is not modified. The new
 * program's agent removes them before main and restores the order. */
#include "agent/inproc/core/exec.h"
#include "agent/inproc/core/arch.h"

#include "agent/abi/link.h"
#include "agent/inproc/core/exec_check.h"
#include "agent/inproc/core/recorder_peer.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="

enum { ENTRIES_MAX = 1500, ADDED_ENTRIES = 12, TEXT_BYTES = 1024, ENTRY_BYTES = 4096 + 64 };

static char runtime_entry[ENTRY_BYTES];
static char agent_path[TEXT_BYTES];
static sj_hooked_module exec_hook;

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

void sj_exec_try(const char *path, char *const *arguments, char *const *environment)
{
    exec_room room;
    size_t count = 0;
    if (path == NULL || !sj_recorder_is_armed()) {
        return;
    }
    if (!sj_recorder_may_call()) {
        sj_recorder_count_unrecorded(SJ_UNRECORDED_FILTER);
        return;
    }
    const char *const *entries;
    sj_recorder_peer_exec(&entries);
    const sj_unrecorded reason = sj_exec_check(
        path, agent_path, entries == NULL ? runtime_entry + sizeof(SJ_ENV_RUNTIME) : NULL);
    sj_recorder_count_unrecorded(reason);
    if (reason == SJ_UNRECORDED_NONE && fill_room(&room, environment, &count) &&
        add_companion(&room, count, entries)) {
        (void)SJ_SYS(SYS_execve, path, arguments, room.entries, 0, 0, 0);
    }
}

sj_status sj_exec_follow(const char *runtime)
{
    const char *const parts[] = {SJ_ENV_RUNTIME "=", runtime};
    const uint64_t address = (uint64_t)(uintptr_t)&execve;
    uint8_t original[SJ_PATCH_MAX_BYTES];
    Dl_info info;
    if (dladdr(&exec_hook, &info) == 0 || info.dli_fname[0] != '/' ||
        strlen(info.dli_fname) >= sizeof(agent_path) ||
        !join_text(runtime_entry, sizeof(runtime_entry), parts, 2)) {
        return SJ_EUNSUPPORTED;
    }
    memcpy(agent_path, info.dli_fname, strlen(info.dli_fname) + 1);
    const int32_t at = sj_arch_find_system_call(address, SYS_execve);
    if (at < 0) {
        return SJ_EUNSUPPORTED;
    }
    sj_arch_exec_resume = address + (uint64_t)at + SJ_RETURN_ROOM_BYTES;
    memcpy(original, (const void *)(uintptr_t)(address + (uint64_t)at), SJ_RETURN_ROOM_BYTES);
    return sj_hooks_redirect(address + (uint64_t)at, original, SJ_RETURN_ROOM_BYTES,
                             (uint64_t)(uintptr_t)&sj_arch_exec_entry, false, &exec_hook);
}

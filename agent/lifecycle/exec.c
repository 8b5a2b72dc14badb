/* Design notes
 *
 * All of libc's ways to run a program end in its execve, whose first instruction loads the number
 * of the system call; it is replaced by a jump to a gate to sj_exec_try. That runs in forked
 * children, in vforked ones on their parent's memory, and on the small stacks of posix_spawn: it
 * takes no lock, allocates nothing and changes nothing but its own stack. What does not fit there,
 * what could not load the agent (static, foreign or set-user-id programs) and what fails goes on in
 * libc's execve as the program asked, which also sets errno.
 *
 * The environment is added to, never the program's own changed: the new program's agent takes the
 * additions out before main, in the order in which they were. */
#include "agent/lifecycle/exec.h"

#include "agent/hooks/arch.h"
#include "agent/hooks/hooks.h"
#include "agent/lifecycle/companion.h"
#include "agent/lifecycle/link.h"
#include "agent/recorder/recorder.h"
#include "agent/recorder/sys.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
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

static bool read_at(long file, void *bytes, size_t count, uint64_t offset)
{
    return SJ_SYS(SYS_pread64, file, bytes, count, offset, 0, 0) == (long)count;
}

static bool has_loader(long file, const Elf64_Ehdr *header)
{
    Elf64_Phdr segment;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (!read_at(file, &segment, sizeof(segment), header->e_phoff + i * sizeof(segment))) {
            return false;
        }
        if (segment.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

/* can_load tells whether a program's loader would load the agent. Scripts are run by a program that
 * decides for itself. */
static bool can_load(const char *path)
{
    struct stat status;
    Elf64_Ehdr header;
    const long file = sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (file < 0) {
        return false;
    }
    bool can = SJ_SYS(SYS_fstat, file, &status, 0, 0, 0, 0) == 0 && S_ISREG(status.st_mode) &&
               (status.st_mode & (S_ISUID | S_ISGID)) == 0;
    if (can && read_at(file, &header, sizeof(header), 0) &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
        can = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == sj_arch_machine() &&
              header.e_phentsize == sizeof(Elf64_Phdr) && has_loader(file, &header);
    }
    (void)sj_sys_close((int)file);
    return can;
}

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

/* add_companion tells the next program's agent whom it will meet; false when it does not fit. */
static bool add_companion(exec_room *room, size_t count)
{
    const char *const *entries;
    const size_t most = sizeof(room->entries) / sizeof(room->entries[0]) - 1;
    sj_companion_exec(&entries);
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
    if (path != NULL && sj_recorder_is_armed() && can_load(path) &&
        fill_room(&room, environment, &count) && add_companion(&room, count)) {
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

void sj_exec_restore(void)
{
    (void)!sj_hooks_unpatch(&exec_hook);
}

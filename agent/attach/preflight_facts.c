/* Reads facts from /proc before a process is attached to. */
#include "agent/abi/machine.h"
#include "agent/attach/preflight.h"
#include "agent/ptrace/tracee_modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENTS_MAX = 64 };

static uint64_t read_own_capabilities(void)
{
    char line[256];
    unsigned long long effective = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        (void)!sscanf(line, "CapEff:\t%llx", &effective);
    }
    if (file != NULL) {
        fclose(file);
    }
    return effective;
}

static int read_yama(void)
{
    int scope = 0;
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &scope) != 1) {
            scope = 0;
        }
        fclose(file);
    }
    return scope;
}

/* True for the programs of qemu-user, which are named after the machine that they emulate. */
static bool is_emulator(pid_t pid)
{
    static const char *const others[] = {"system-", "img", "nbd", "io", "ga", "storage-daemon"};
    char path[64];
    char target[PATH_MAX] = "";
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    const char *name = readlink(path, target, sizeof(target) - 1) > 0 ? strrchr(target, '/') : NULL;
    if (name == NULL || strncmp(name, "/qemu-", strlen("/qemu-")) != 0) {
        return false;
    }
    name += strlen("/qemu-");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return true;
}

/* Returns the kind of the ELF file that the process runs. */
static sj_program_kind read_program(pid_t pid)
{
    char path[64];
    Elf64_Ehdr head = {0};
    Elf64_Phdr segments[SEGMENTS_MAX];
    bool has_loader = false;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return SJ_PROGRAM_UNREADABLE;
    }
    const bool is_read = pread(file, &head, sizeof(head), 0) == (ssize_t)sizeof(head);
    if (is_read && head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_phnum <= SEGMENTS_MAX &&
        pread(file, segments, head.e_phnum * sizeof(segments[0]), (off_t)head.e_phoff) ==
            (ssize_t)(head.e_phnum * sizeof(segments[0]))) {
        for (size_t i = 0; i < head.e_phnum; i++) {
            has_loader |= segments[i].p_type == PT_INTERP;
        }
    }
    close(file);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != SJ_MACHINE_ELF) {
        return SJ_PROGRAM_FOREIGN;
    }
    if (is_emulator(pid)) {
        return SJ_PROGRAM_EMULATOR;
    }
    return has_loader ? SJ_PROGRAM_FITS : SJ_PROGRAM_STATIC;
}

/* True if the agent's path leads the process to another file than here, or to none. */
static bool is_hidden(pid_t pid, const char *agent_path)
{
    char path[PATH_MAX];
    struct stat here;
    struct stat there;
    snprintf(path, sizeof(path), "/proc/%d/root%.4000s", (int)pid, agent_path);
    return stat(agent_path, &here) != 0 || stat(path, &there) != 0 || here.st_ino != there.st_ino ||
           here.st_dev != there.st_dev;
}

sj_status sj_preflight_facts_read(pid_t pid, const char *agent_path, sj_preflight_facts *facts)
{
    char path[64];
    struct stat status;
    *facts = (sj_preflight_facts){.pid = pid,
                                  .own_pid = getpid(),
                                  .own_user = geteuid(),
                                  .own_capabilities = read_own_capabilities(),
                                  .yama = read_yama()};
    SJ_TRY(sj_proc_status_read(pid, &facts->process));
    /* If a process may not be inspected, its files belong to root, whatever its user. */
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    facts->is_closed = stat(path, &status) == 0 && status.st_uid != facts->process.effective_user;
    facts->pid_inside = facts->process.pid_inside;
    sj_proc_status tracer;
    if (facts->process.tracer != 0 &&
        sj_proc_status_read(facts->process.tracer, &tracer) == SJ_OK) {
        snprintf(facts->tracer_name, sizeof(facts->tracer_name), "%.31s", tracer.name);
    }
    facts->program = read_program(pid);
    sj_remote_module direct;
    facts->has_direct = sj_remote_module_find(pid, "libsojourn-direct", &direct) == SJ_OK;
    facts->is_agent_hidden = agent_path != NULL && is_hidden(pid, agent_path);
    return SJ_OK;
}

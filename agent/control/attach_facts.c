/* What is asked of /proc before a process is attached to. */
#include "agent/control/attach_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#endif

enum { SEGMENTS_MAX = 64 };

static void take_numbers(const char *line, sj_process_facts *facts)
{
    unsigned first = 0;
    unsigned second = 0;
    unsigned long long permitted = 0;
    if (sscanf(line, "Uid:\t%u\t%u", &first, &second) == 2) {
        facts->user = first;
        facts->effective_user = second;
    } else if (sscanf(line, "CapPrm:\t%llx", &permitted) == 1) {
        facts->capabilities = permitted;
    }
}

static void take_line(const char *line, sj_process_facts *facts)
{
    if (sscanf(line, "Name:\t%63[^\n]", facts->name) == 1 ||
        sscanf(line, "State:\t%c", &facts->state) == 1 ||
        sscanf(line, "Tgid:\t%d", &facts->leader) == 1 ||
        sscanf(line, "PPid:\t%d", &facts->parent) == 1 ||
        sscanf(line, "TracerPid:\t%d", &facts->tracer) == 1 ||
        sscanf(line, "Threads:\t%u", &facts->threads) == 1 ||
        sscanf(line, "Seccomp:\t%d", &facts->seccomp) == 1 ||
        sscanf(line, "Seccomp_filters:\t%u", &facts->seccomp_filters) == 1) {
        return;
    }
    take_numbers(line, facts);
}

static sj_status read_status(pid_t pid, sj_process_facts *facts)
{
    char path[64];
    char line[256];
    *facts = (sj_process_facts){0};
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return SJ_ENOTFOUND;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        take_line(line, facts);
    }
    fclose(file);
    return SJ_OK;
}

/* Containers give all of their processes a filter, which lets them trace each other: what counts is
 * what a process has beyond this one's. */
static bool is_confined(const sj_process_facts *facts)
{
    sj_process_facts own;
    if (facts->seccomp == 0 || read_status(getpid(), &own) != SJ_OK) {
        return facts->seccomp != 0;
    }
    return facts->seccomp != own.seccomp || facts->seccomp_filters > own.seccomp_filters;
}

sj_status sj_process_facts_read(pid_t pid, sj_process_facts *facts)
{
    char path[64];
    char line[256];
    struct stat status;
    SJ_TRY(read_status(pid, facts));
    facts->is_confined = is_confined(facts);
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    /* Both have no program any more or ever; the kernel's threads are children of its process 2. */
    const bool is_bare = lstat(path, &status) == 0 && stat(path, &status) != 0 && errno == ENOENT &&
                         readlink(path, line, sizeof(line)) < 0;
    facts->is_kernel = is_bare && (pid == 2 || facts->parent == 2);
    facts->is_ending = is_bare && !facts->is_kernel;
    return SJ_OK;
}

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

/* read_namespace tells whether a process has another numbering of processes than this one, and its
 * own number there. */
static void read_namespace(pid_t pid, sj_attach_facts *facts)
{
    char path[64];
    char line[256];
    char here[64] = "";
    char there[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    facts->is_other_pid_namespace = readlink("/proc/self/ns/pid", here, sizeof(here) - 1) > 0 &&
                                    readlink(path, there, sizeof(there) - 1) > 0 &&
                                    strcmp(here, there) != 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    facts->pid_inside = pid;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *last = strrchr(line, '\t');
        if (strncmp(line, "NSpid:", strlen("NSpid:")) == 0 && last != NULL) {
            (void)!sscanf(last, "%d", &facts->pid_inside);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* is_emulator: the programs of qemu-user, named after the machine of the program that they run. */
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

/* read_program looks at the ELF file that runs. */
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
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != OWN_MACHINE) {
        return SJ_PROGRAM_FOREIGN;
    }
    if (is_emulator(pid)) {
        return SJ_PROGRAM_EMULATOR;
    }
    return has_loader ? SJ_PROGRAM_FITS : SJ_PROGRAM_STATIC;
}

/* is_hidden compares the agent's file here with what the process would open. */
static bool is_hidden(pid_t pid, const char *agent_path)
{
    char path[PATH_MAX];
    struct stat here;
    struct stat there;
    snprintf(path, sizeof(path), "/proc/%d/root%.4000s", (int)pid, agent_path);
    return stat(agent_path, &here) != 0 || stat(path, &there) != 0 || here.st_ino != there.st_ino ||
           here.st_dev != there.st_dev;
}

static void read_name(pid_t pid, char *name, size_t capacity)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, (int)capacity, file) != NULL) {
            name[strcspn(name, "\n")] = '\0';
        }
        fclose(file);
    }
}

sj_status sj_attach_facts_read(pid_t pid, const char *agent_path, sj_attach_facts *facts)
{
    char path[64];
    struct stat status;
    *facts = (sj_attach_facts){.pid = pid,
                               .own_pid = getpid(),
                               .own_user = geteuid(),
                               .own_capabilities = read_own_capabilities(),
                               .yama = read_yama()};
    SJ_TRY(sj_process_facts_read(pid, &facts->process));
    /* What a process may not show belongs to root here, whoever it runs as. */
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    facts->is_closed = stat(path, &status) == 0 && status.st_uid != facts->process.effective_user;
    read_namespace(pid, facts);
    if (facts->process.tracer != 0) {
        read_name(facts->process.tracer, facts->tracer_name, sizeof(facts->tracer_name));
    }
    facts->program = read_program(pid);
    facts->is_agent_hidden = agent_path != NULL && is_hidden(pid, agent_path);
    return SJ_OK;
}

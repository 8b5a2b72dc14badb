#include "agent/registry/registry_internal.h"
#include "proto/base/array.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

static const sj_slice no_payload = {0};

/* Reads from /proc which program the process runs. A field that cannot be read stays empty. */
static void read_description(sj_registry_process *entry)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)entry->pid);
    const ssize_t bytes = readlink(path, entry->executable, sizeof(entry->executable) - 1);
    entry->executable[bytes > 0 ? bytes : 0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)entry->pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    const ssize_t got = read(fd, entry->command, sizeof(entry->command) - 1);
    close(fd);
    for (ssize_t i = 0; i + 1 < got; i++) {
        if (entry->command[i] == '\0') {
            entry->command[i] = ' ';
        }
    }
}

static sj_status send_process(sj_registry *registry, const sj_registry_process *entry)
{
    Sojourn__Process message = SOJOURN__PROCESS__INIT;
    message.session_id = sj_frame_writer_session_bytes(registry->options.writer);
    message.process = (uint64_t)(entry - registry->processes) + 1;
    message.pid = (uint32_t)entry->pid;
    message.parent_process = entry->parent;
    message.executable = (char *)(uintptr_t)entry->executable;
    message.command = (char *)(uintptr_t)entry->command;
    message.started_ticks = entry->started_ticks;
    message.how = (char *)(uintptr_t)entry->how;
    if (entry->ended) {
        const int status = entry->end.wait_status;
        message.ended_ticks = entry->end.ended_ticks;
        message.disarm_reason = entry->end.disarm_reason;
        message.has_exit = entry->end.has_status;
        if (message.has_exit && WIFEXITED(status)) {
            message.exit_code = WEXITSTATUS(status);
        } else if (message.has_exit && WIFSIGNALED(status)) {
            message.exit_signal = (uint32_t)WTERMSIG(status);
            message.core_dumped = WCOREDUMP(status) != 0;
        }
    }
    return sj_frame_writer_send(registry->options.writer, SJ_FRAME_PROCESS, &message.base,
                                no_payload);
}

static sj_registry_process *find_living(sj_registry *registry, pid_t pid)
{
    for (size_t i = registry->living_count; i-- > 0;) {
        if (registry->living[i].pid == pid) {
            return &registry->processes[registry->living[i].number - 1];
        }
    }
    return NULL;
}

/* Adds a process to the living ones. Numbers ascend, so the list stays ordered. */
static sj_status add_living(sj_registry *registry, const sj_registry_process *entry)
{
    SJ_TRY(sj_array_reserve(&registry->living, &registry->living_capacity, registry->living_count,
                            1, sizeof(*registry->living)));
    registry->living[registry->living_count++] = (sj_living_process){
        .pid = entry->pid, .number = (uint64_t)(entry - registry->processes) + 1};
    return SJ_OK;
}

static void remove_living(sj_registry *registry, sj_registry_process *entry)
{
    const uint64_t number = (uint64_t)(entry - registry->processes) + 1;
    size_t kept = 0;
    for (size_t i = 0; i < registry->living_count; i++) {
        if (registry->living[i].number != number) {
            registry->living[kept++] = registry->living[i];
        }
    }
    registry->living_count = kept;
    entry->ended = true;
}

static const char *occasion_text(sj_link_occasion occasion, bool is_first)
{
    switch (occasion) {
    case SJ_OCCASION_FORK:
        return "forked";
    case SJ_OCCASION_ATTACH:
        return "attached";
    case SJ_OCCASION_START:
    case SJ_OCCASION_DLOPEN:
        break;
    }
    return is_first ? "launched" : "exec";
}

/* Appends an entry that is zeroed, except for the time that it may wait for plans. */
static sj_status append_process(sj_registry *registry, sj_registry_process **entry)
{
    SJ_TRY(sj_array_reserve(&registry->processes, &registry->process_capacity,
                            registry->process_count, 1, sizeof(*registry->processes)));
    *entry = &registry->processes[registry->process_count++];
    **entry =
        (sj_registry_process){.plan_wait_left_ns = registry->options.plan_wait_ms * NS_PER_MS};
    return SJ_OK;
}

static sj_status add_process_locked(sj_registry *registry, pid_t pid, pid_t parent_pid,
                                    sj_link_occasion occasion, uint64_t now_ticks, uint64_t *number)
{
    sj_registry_process *previous = find_living(registry, pid);
    const sj_registry_process *parent = find_living(registry, parent_pid);
    const uint64_t parent_number =
        parent != NULL ? (uint64_t)(parent - registry->processes) + 1 : 0;
    uint64_t replaced = 0;
    if (previous != NULL) {
        replaced = (uint64_t)(previous - registry->processes) + 1;
        remove_living(registry, previous);
        previous->end.ended_ticks = now_ticks;
        SJ_TRY(send_process(registry, previous));
    }
    sj_registry_process *entry = NULL;
    SJ_TRY(append_process(registry, &entry));
    entry->pid = pid;
    SJ_TRY(add_living(registry, entry));
    entry->parent = replaced != 0 ? replaced : parent_number;
    entry->started_ticks = now_ticks;
    snprintf(entry->how, sizeof(entry->how), "%s",
             occasion_text(occasion, registry->process_count == 1));
    read_description(entry);
    registry->counters.processes++;
    registry->counters.forked += occasion == SJ_OCCASION_FORK;
    *number = registry->process_count;
    SJ_TRY(send_process(registry, entry));
    if (occasion != SJ_OCCASION_FORK) {
        return SJ_OK;
    }
    SJ_TRY(sj_registry_inherit_mappings(registry, parent_number, *number, now_ticks));
    return sj_registry_inherit_replaced(registry, parent_number, *number, now_ticks);
}

sj_status sj_registry_add_process(sj_registry *registry, pid_t pid, pid_t parent_pid,
                                  sj_link_occasion occasion, uint64_t now_ticks, uint64_t *number)
{
    pthread_mutex_lock(&registry->mutex);
    const sj_status status =
        add_process_locked(registry, pid, parent_pid, occasion, now_ticks, number);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

void sj_registry_note_arena(sj_registry *registry, uint64_t number, const char *arena_name)
{
    if (registry->options.journal == NULL) {
        return;
    }
    pthread_mutex_lock(&registry->mutex);
    const sj_registry_process *entry = &registry->processes[number - 1];
    sj_journal_process noted = {.number = number,
                                .parent = entry->parent,
                                .started_ticks = entry->started_ticks,
                                .pid = (uint32_t)entry->pid};
    memcpy(noted.how, entry->how, sizeof(noted.how));
    snprintf(noted.arena_name, sizeof(noted.arena_name), "%s", arena_name);
    sj_journal_add_process(registry->options.journal, &noted);
    pthread_mutex_unlock(&registry->mutex);
}

static sj_status adopt_process_locked(sj_registry *registry, const sj_journal_process *process)
{
    if (process->number <= registry->process_count ||
        process->number > registry->process_count + SJ_JOURNAL_PROCESSES) {
        return SJ_ECORRUPT;
    }
    while (registry->process_count < process->number) {
        sj_registry_process *entry = NULL;
        SJ_TRY(append_process(registry, &entry));
        entry->ended = true; /* a number between two known ones; never sent */
    }
    sj_registry_process *entry = &registry->processes[process->number - 1];
    entry->ended = false;
    entry->pid = (pid_t)process->pid;
    SJ_TRY(add_living(registry, entry));
    entry->parent = process->parent;
    entry->started_ticks = process->started_ticks;
    snprintf(entry->how, sizeof(entry->how), "%.*s", (int)sizeof(process->how) - 1, process->how);
    return SJ_OK;
}

sj_status sj_registry_adopt_process(sj_registry *registry, const sj_journal_process *process)
{
    pthread_mutex_lock(&registry->mutex);
    const sj_status status = adopt_process_locked(registry, process);
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_find_process(sj_registry *registry, pid_t pid, uint64_t *number)
{
    pthread_mutex_lock(&registry->mutex);
    const sj_registry_process *entry = find_living(registry, pid);
    *number = entry != NULL ? (uint64_t)(entry - registry->processes) + 1 : 0;
    pthread_mutex_unlock(&registry->mutex);
    return entry != NULL ? SJ_OK : SJ_ENOTFOUND;
}

sj_status sj_registry_end_process(sj_registry *registry, uint64_t number, const sj_process_end *end)
{
    pthread_mutex_lock(&registry->mutex);
    sj_status status = SJ_ENOTFOUND;
    if (number != 0 && number <= registry->process_count) {
        sj_registry_process *entry = &registry->processes[number - 1];
        if (!entry->ended || entry->end.ended_ticks == 0) {
            entry->end.ended_ticks = end->ended_ticks;
        }
        if (end->has_status) {
            entry->end.has_status = true;
            entry->end.wait_status = end->wait_status;
        }
        if (end->disarm_reason != 0) {
            entry->end.disarm_reason = end->disarm_reason;
        }
        remove_living(registry, entry);
        const sj_status reported = sj_method_code_report(
            &registry->method_code, registry->options.writer, end->ended_ticks);
        status = send_process(registry, entry);
        status = status == SJ_OK ? reported : status;
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

bool sj_registry_is_forked(sj_registry *registry, uint64_t number)
{
    pthread_mutex_lock(&registry->mutex);
    const bool is_forked =
        number != 0 && number <= registry->process_count &&
        strcmp(registry->processes[number - 1].how, occasion_text(SJ_OCCASION_FORK, false)) == 0;
    pthread_mutex_unlock(&registry->mutex);
    return is_forked;
}

size_t sj_registry_list_living(sj_registry *registry, pid_t *pids, size_t capacity)
{
    size_t count = 0;
    pthread_mutex_lock(&registry->mutex);
    for (; count < registry->living_count && count < capacity; count++) {
        pids[count] = registry->living[count].pid;
    }
    pthread_mutex_unlock(&registry->mutex);
    return count;
}

#include "agent/recording/left_processes.h"

#include "agent/attach/detach.h"
#include "agent/host/clock.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/tracee.h"

#include <stdio.h>
#include <time.h>

enum {
    PROCESSES_MAX = 1024,
    PASSES = 25, /* meanwhile, processes may fork or execute other programs */
    PAUSE_NS = 10000000
};

typedef struct left_list {
    pid_t pids[PROCESSES_MAX];
    size_t count;
} left_list;

static bool contains(const left_list *list, pid_t pid)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

/* In an emulator, a detach does not find the agent where it expects it. */
static bool is_emulated(const sj_pipeline *pipeline)
{
    return pipeline->options.program->agent != NULL;
}

/* Lists the living processes that joined. With fork-following, also lists forked processes that
 * have not joined yet. It misses a process that is just executing another program. */
static void list_living(sj_pipeline *pipeline, left_list *list)
{
    left_list found = {.count = 0};
    left_list joined = {.count = 0};
    list->count = 0;
    joined.count = sj_registry_list_living(pipeline->registry, joined.pids, PROCESSES_MAX);
    for (size_t i = 0; i < joined.count; i++) {
        if (sj_proc_is_alive(joined.pids[i])) {
            list->pids[list->count++] = joined.pids[i];
        }
    }
    if (!is_emulated(pipeline) && (pipeline->options.children & SJ_FOLLOW_FORK) != 0) {
        found.count = sj_detach_list(&pipeline->session, found.pids, PROCESSES_MAX);
    }
    for (size_t i = 0; i < found.count && list->count < PROCESSES_MAX; i++) {
        if (!contains(list, found.pids[i])) {
            list->pids[list->count++] = found.pids[i];
        }
    }
}

bool sj_left_processes_exist(sj_pipeline *pipeline)
{
    left_list list;
    list_living(pipeline, &list);
    return list.count != 0;
}

void sj_left_processes_note_overwritten(sj_pipeline *pipeline, pid_t pid,
                                        const sj_detach_process_report *report)
{
    uint64_t process = 0;
    if (sj_registry_find_process(pipeline->registry, pid, &process) == SJ_OK) {
        (void)!sj_registry_report_overwritten(pipeline->registry, process, &report->overwritten);
    }
}

/* Detaches from a process. Returns true if it still runs and had the agent. */
static bool detach_process(sj_pipeline *pipeline, pid_t pid)
{
    sj_recording_summary *summary = &pipeline->summary;
    sj_detach_process_report report = {0};
    sj_error error = {.text = "its program is emulated"};
    sj_status status = SJ_EUNSUPPORTED;
    if (!is_emulated(pipeline)) {
        sj_tracee_lock(); /* the stack sampler may trace the process */
        status = sj_detach_process(pid, &report, &error);
        sj_tracee_unlock();
        sj_left_processes_note_overwritten(pipeline, pid, &report);
    }
    if (!sj_proc_is_alive(pid) || (status == SJ_OK && !report.had_agent)) {
        return false;
    }
    if (status != SJ_OK) {
        summary->left_hooked++;
        snprintf(summary->detach_problem, sizeof(summary->detach_problem), "%.250s", error.text);
    }
    return true;
}

static void add_left_name(sj_recording_summary *summary, pid_t pid, const sj_proc_status *facts)
{
    if (summary->left_processes < SJ_LEFT_NAMED) {
        sj_left_process *left = &summary->left[summary->left_processes];
        left->pid = pid;
        snprintf(left->name, sizeof(left->name), "%s", facts->name);
    }
    summary->left_processes++;
}

static void note_left(sj_pipeline *pipeline, pid_t pid, bool is_named)
{
    sj_proc_status facts = {0};
    uint64_t number = 0;
    if (sj_proc_status_read(pid, &facts) != SJ_OK) {
        facts = (sj_proc_status){0};
    }
    if (is_named) {
        add_left_name(&pipeline->summary, pid, &facts);
    }
    const sj_process_end end = {.disarm_reason = SJ_DISARM_LEFT};
    if (sj_registry_find_process(pipeline->registry, pid, &number) == SJ_OK ||
        sj_registry_add_process(pipeline->registry, pid, facts.parent, SJ_OCCASION_FORK,
                                sj_clock_ticks(), &number) == SJ_OK) {
        (void)!sj_registry_end_process(pipeline->registry, number, &end);
    }
}

/* Detaches from the processes that are not in `left` yet, and adds them. Returns the number of
 * other living processes; these may still get an agent. */
static size_t detach_new(sj_pipeline *pipeline, left_list *left, bool are_named)
{
    left_list list;
    size_t agentless_count = 0;
    list_living(pipeline, &list);
    for (size_t i = 0; i < list.count && left->count < PROCESSES_MAX; i++) {
        const pid_t pid = list.pids[i];
        if (contains(left, pid)) {
            continue;
        }
        if (detach_process(pipeline, pid)) {
            left->pids[left->count++] = pid;
            note_left(pipeline, pid, are_named);
        } else {
            agentless_count += sj_proc_is_alive(pid);
        }
    }
    return agentless_count;
}

void sj_left_processes_leave(sj_pipeline *pipeline, bool are_named)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    left_list left = {.count = 0};
    for (int pass = 0; pass < PASSES; pass++) {
        const size_t known = left.count;
        if (detach_new(pipeline, &left, are_named) == 0 && left.count == known) {
            break;
        }
        nanosleep(&pause, NULL);
    }
}

#include "agent/control/reselect.h"

#include "agent/control/clock.h"
#include "agent/control/loader_lock.h"
#include "agent/control/machine.h"
#include "agent/control/review.h"
#include "agent/recorder/record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ATTEMPTS = 100, WAIT_ATTEMPTS = 25, PAUSE_NS = 2000000 };

typedef struct reselection {
    sj_roster *roster;
    uint64_t process;
    const sj_function_states *states;
    sj_freed *freed; /* NULL: nobody is told */
    sj_target target;
    sj_remote_agent agent;
    sj_reselect_report *report;
} reselection;

/* Functions of modules that are planned while the process is reviewed are wanted: no hooks are made
 * of others. */
static bool is_wanted(void *context, const sj_hook_change *change)
{
    const sj_function_states *states = context;
    return change->function >= states->count ||
           states->states[change->function] == SJ_FUNCTION_WANTED;
}

static bool is_unwanted(void *context, const sj_hook_change *change)
{
    const sj_function_states *states = context;
    return change->function < states->count &&
           states->states[change->function] == SJ_FUNCTION_UNWANTED;
}

/* count_functions returns the number of ids that the agent's tables and the states may name. */
static uint32_t count_functions(const reselection *selecting)
{
    uint32_t count = selecting->states->count;
    for (size_t i = 0; i < selecting->agent.table_count; i++) {
        const sj_remote_table *table = &selecting->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            const uint32_t function = table->changes[j].function;
            count = function >= count && function <= SJ_RECORD_FUNCTION_MASK ? function + 1 : count;
        }
    }
    return count;
}

/* mark_functions sets bytes by id: of functions that have changes, or (`written`) hooks now. */
static uint8_t *mark_functions(const reselection *selecting, bool written)
{
    const uint32_t count = count_functions(selecting);
    uint8_t *marks = calloc(count, 1);
    for (size_t i = 0; marks != NULL && i < selecting->agent.table_count; i++) {
        const sj_remote_table *table = &selecting->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            const sj_hook_change *change = &table->changes[j];
            if (change->function < count && (!written || change->written != 0)) {
                marks[change->function] = 1;
            }
        }
    }
    return marks;
}

static bool is_complete(const sj_function_states *states, const uint8_t *prepared)
{
    for (uint32_t id = 1; id < states->count; id++) {
        if (states->states[id] == SJ_FUNCTION_WANTED && prepared[id] == 0) {
            return false;
        }
    }
    return !states->other_modules;
}

/* review lets the agent make the hooks that it lacks. */
static sj_status review(reselection *selecting, sj_error *error)
{
    uint8_t *prepared = mark_functions(selecting, false);
    if (prepared == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (is_complete(selecting->states, prepared)) {
        free(prepared);
        return SJ_OK;
    }
    sj_roster_begin_review(selecting->roster, selecting->process, prepared,
                           count_functions(selecting));
    const sj_status status = sj_review(&selecting->target, &selecting->agent, error);
    sj_roster_end_review(selecting->roster);
    free(prepared);
    return status;
}

static sj_status toggle_all(reselection *selecting)
{
    sj_text_patch_report done;
    void *states = (void *)(uintptr_t)selecting->states;
    SJ_TRY(sj_remote_agent_change(&selecting->target, &selecting->agent, false, is_unwanted, states,
                                  &done));
    return sj_remote_agent_change(&selecting->target, &selecting->agent, true, is_wanted, states,
                                  &done);
}

static bool is_in_state(const reselection *selecting, uint32_t id, sj_function_state state)
{
    return id < selecting->states->count && selecting->states->states[id] == state;
}

/* compare counts what has become of the functions that were hooked `before`. */
static void compare(const reselection *selecting, const uint8_t *before, const uint8_t *after)
{
    sj_reselect_report *report = selecting->report;
    const uint32_t count = count_functions(selecting);
    for (uint32_t id = 1; id < count; id++) {
        report->hooked_count += after[id] > before[id];
        report->freed_count += after[id] < before[id];
        report->kept_count += is_in_state(selecting, id, SJ_FUNCTION_UNWANTED) && after[id] != 0;
    }
}

/* list_missed is for a selection that was made: what it lacks then cannot be hooked. */
static sj_status list_missed(const reselection *selecting, const uint8_t *after)
{
    sj_reselect_report *report = selecting->report;
    const uint32_t count = count_functions(selecting);
    report->missed = calloc(count, sizeof(*report->missed));
    if (report->missed == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t id = 1; id < count; id++) {
        if (is_in_state(selecting, id, SJ_FUNCTION_WANTED) && after[id] == 0) {
            report->missed[report->missed_count++] = id;
        }
    }
    return SJ_OK;
}

/* tell_freed tells of functions that are to be set free: before they are, for a failure may leave
 * some of them so, and threads may run on for a moment before others are hooked. */
static sj_status tell_freed(const reselection *selecting, const uint8_t *before)
{
    const uint32_t count = count_functions(selecting);
    uint32_t *freed = calloc(count, sizeof(*freed));
    size_t freed_count = 0;
    if (freed == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t id = 1; id < count; id++) {
        if (before[id] != 0 && is_in_state(selecting, id, SJ_FUNCTION_UNWANTED)) {
            freed[freed_count++] = id;
        }
    }
    if (freed_count != 0) {
        sj_freed_add(selecting->freed, freed, freed_count, sj_clock_ticks());
    }
    free(freed);
    return SJ_OK;
}

/* tell_hooked tells of those that have hooks now, also of such that could not be set free. */
static void tell_hooked(const reselection *selecting, const uint8_t *after)
{
    const uint32_t count = count_functions(selecting);
    for (uint32_t id = 1; id < count; id++) {
        if (after[id] != 0) {
            sj_freed_remove(selecting->freed, &id, 1);
        }
    }
}

/* note_overwritten finds the slots that the loader has written over since they were written: a call
 * that was being bound then is bound there. They are written again. */
static sj_status note_overwritten(reselection *selecting)
{
    for (size_t i = 0; i < selecting->agent.table_count; i++) {
        const sj_remote_table *table = &selecting->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            sj_hook_change *change = &table->changes[j];
            uint8_t held[SJ_PATCH_MAX_BYTES];
            if (change->is_slot == 0 || change->written == 0 ||
                sj_target_read(&selecting->target, change->address, held, change->bytes) != SJ_OK ||
                memcmp(held, change->original, change->bytes) != 0) {
                continue;
            }
            change->written = 0;
            SJ_TRY(sj_target_write(&selecting->target,
                                   (uint64_t)(uintptr_t)(table->module.changes + j), change,
                                   sizeof(*change)));
        }
    }
    return SJ_OK;
}

static sj_status toggle_marked(reselection *selecting, const uint8_t *before)
{
    SJ_TRY(selecting->freed != NULL ? tell_freed(selecting, before) : SJ_OK);
    sj_status status = toggle_all(selecting);
    uint8_t *after = mark_functions(selecting, true);
    if (after == NULL) {
        return SJ_ENOMEM;
    }
    if (selecting->freed != NULL) {
        tell_hooked(selecting, after);
    }
    compare(selecting, before, after);
    if (status == SJ_OK) {
        status = list_missed(selecting, after);
    }
    free(after);
    return status;
}

static sj_status toggle_stopped(reselection *selecting)
{
    SJ_TRY(note_overwritten(selecting));
    uint8_t *before = mark_functions(selecting, true);
    const sj_status status = before != NULL ? toggle_marked(selecting, before) : SJ_ENOMEM;
    free(before);
    return status;
}

/* find_agent waits until the agent's tables hold still. */
static sj_status find_agent(reselection *selecting, sj_error *error)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    sj_status status = sj_remote_agent_find(&selecting->target, &selecting->agent);
    for (uint32_t i = 0; i < ATTEMPTS && status == SJ_EAGAIN; i++) {
        nanosleep(&pause, NULL);
        status = sj_remote_agent_reload(&selecting->target, &selecting->agent);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "no agent was found in process %d: %s",
                                     (int)selecting->target.pid, sj_status_text(status));
}

/* may_write_slots tells whether the loader may be about to bind a call, which would write over what
 * is written to its slot now: it does so without a system call. */
static bool may_write_slots(const reselection *selecting, const sj_remote_module *loader)
{
    for (size_t i = 0; i < selecting->target.count; i++) {
        sj_machine_state state;
        if (sj_machine_get(selecting->target.threads[i].tid, &state) == SJ_OK &&
            !state.in_syscall && state.pc >= loader->code_low && state.pc < loader->code_high) {
            return true;
        }
    }
    return false;
}

/* has_slots tells whether there are slots, or (`wanted`) ones that are to be written now. */
static bool has_slots(const reselection *selecting, bool wanted)
{
    void *states = (void *)(uintptr_t)selecting->states;
    for (size_t i = 0; i < selecting->agent.table_count; i++) {
        const sj_remote_table *table = &selecting->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            const sj_hook_change *change = &table->changes[j];
            if (change->is_slot != 0 &&
                (!wanted || (change->written == 0 && is_wanted(states, change)))) {
                return true;
            }
        }
    }
    return false;
}

/* stop_all stops the process at a moment when its text and slots hold still. A thread that waits
 * for another one that loads a module may wait for long: it is told. */
static sj_status stop_all(reselection *selecting, uint64_t *start_ns, sj_error *error)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    sj_remote_module loader = {0};
    (void)!sj_remote_module_find(selecting->target.pid, "ld-", &loader);
    const uint64_t lock = sj_loader_lock_find(&selecting->target);
    for (uint32_t i = 0;; i++) {
        SJ_TRY(
            sj_remote_agent_stop_current(&selecting->target, &selecting->agent, start_ns, error));
        const bool writes = has_slots(selecting, false) && may_write_slots(selecting, &loader);
        selecting->report->is_unsure =
            has_slots(selecting, true) && sj_loader_lock_is_awaited(&selecting->target, lock);
        if (!writes && (!selecting->report->is_unsure || i >= WAIT_ATTEMPTS)) {
            return SJ_OK;
        }
        sj_target_resume_all(&selecting->target);
        if (i == ATTEMPTS) {
            return sj_fail(error, SJ_EAGAIN, "process %d is in its loader all the time; try again",
                           (int)selecting->target.pid);
        }
        nanosleep(&pause, NULL);
    }
}

static sj_status reselect(reselection *selecting, sj_error *error)
{
    uint64_t start_ns = 0;
    SJ_TRY(find_agent(selecting, error));
    /* What can be done without more hooks is done in any case. */
    const sj_status reviewed = review(selecting, error);
    SJ_TRY(stop_all(selecting, &start_ns, error));
    const sj_status status = toggle_stopped(selecting);
    sj_target_resume_all(&selecting->target);
    selecting->report->stopped_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    return status == SJ_OK ? reviewed
                           : sj_fail(error, status, "the text of process %d cannot be written: %s",
                                     (int)selecting->target.pid, sj_status_text(status));
}

sj_status sj_reselect_process(sj_roster *roster, uint64_t process, pid_t pid,
                              const sj_function_states *states, sj_freed *freed,
                              sj_reselect_report *report, sj_error *error)
{
    reselection selecting = {
        .roster = roster, .process = process, .states = states, .freed = freed, .report = report};
    *report = (sj_reselect_report){0};
    sj_target_lock();
    sj_status status = sj_target_open(pid, &selecting.target, error);
    if (status == SJ_OK) {
        status = reselect(&selecting, error);
        sj_remote_agent_deinit(&selecting.agent);
        sj_target_close(&selecting.target);
    }
    sj_target_unlock();
    return status;
}

void sj_reselect_report_deinit(sj_reselect_report *report)
{
    free(report->missed);
    *report = (sj_reselect_report){0};
}

#include "agent/livepatch/transition.h"

#include "agent/abi/record.h"
#include "agent/host/clock.h"
#include "agent/livepatch/remote_request.h"
#include "agent/ptrace/arch.h"
#include "agent/ptrace/loader_lock.h"
#include "agent/ptrace/safepoint.h"
#include "agent/ptrace/tracee_modules.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ATTEMPTS = 100, WAIT_ATTEMPTS = 25, PAUSE_NS = 2000000 };

typedef struct transition {
    sj_registry *registry;
    uint64_t process;
    const sj_function_states *states;
    sj_unhooked_set *freed; /* NULL: not recorded. */
    sj_tracee target;
    sj_remote_agent agent;
    sj_transition_report *report;
} transition;

/* Functions of modules planned meanwhile are all wanted, because the agent makes hooks only for
 * wanted functions. */
static bool is_wanted(void *context, const sj_hook_change *change)
{
    const sj_function_states *states = context;
    return change->function >= states->count ||
           states->states[change->function] == SJ_FUNCTION_WANTED ||
           states->states[change->function] == SJ_FUNCTION_MANAGED;
}

static bool is_unwanted(void *context, const sj_hook_change *change)
{
    const sj_function_states *states = context;
    return change->function < states->count &&
           (states->states[change->function] == SJ_FUNCTION_UNWANTED ||
            states->states[change->function] == SJ_FUNCTION_MANAGED_UNWANTED);
}

/* True if the function's previous hooks record less than is wanted now. */
static bool records_more(const sj_function_states *states, uint32_t id)
{
    return states->renewed_count != 0 && id < states->count &&
           (states->renewed[id] & SJ_RENEWAL_VALUES) != 0;
}

static bool is_renewed(void *context, const sj_hook_change *change)
{
    const sj_function_states *states = context;
    return records_more(states, change->function);
}

/* Returns the number of ids that the agent's tables and the states may name. */
static uint32_t count_functions(const transition *self)
{
    uint32_t count = self->states->count;
    for (size_t i = 0; i < self->agent.table_count; i++) {
        const sj_remote_table *table = &self->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            const uint32_t function = table->changes[j].function;
            count = function >= count && function <= SJ_RECORD_FUNCTION_MASK ? function + 1 : count;
        }
    }
    return count;
}

/* Returns one byte per id: 1 if the function has changes or, with `written`, hooks in the text. */
static uint8_t *mark_functions(const transition *self, bool written)
{
    const uint32_t count = count_functions(self);
    uint8_t *marks = calloc(count, 1);
    for (size_t i = 0; marks != NULL && i < self->agent.table_count; i++) {
        const sj_remote_table *table = &self->agent.tables[i];
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
        const bool is_caller =
            states->renewed_count != 0 && (states->renewed[id] & SJ_RENEWAL_CALLER) != 0;
        if (is_caller || (states->states[id] == SJ_FUNCTION_WANTED && prepared[id] == 0)) {
            return false;
        }
    }
    return !states->other_modules && !states->asks_agents;
}

/* Marks the functions that must not change, so that no hooks are requested for them. */
static void pass_over_fixed(const sj_function_states *states, uint8_t *prepared)
{
    for (uint32_t id = 1; id < states->count; id++) {
        prepared[id] |= states->states[id] == SJ_FUNCTION_FIXED;
    }
}

/* Makes the agent prepare the hooks that it lacks. */
static sj_status prepare_missing(transition *self, sj_error *error)
{
    uint8_t *prepared = mark_functions(self, false);
    if (prepared == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (is_complete(self->states, prepared)) {
        free(prepared);
        return SJ_OK;
    }
    pass_over_fixed(self->states, prepared);
    sj_registry_begin_review(self->registry, self->process, prepared, count_functions(self));
    const sj_status status = sj_remote_agent_request(&self->target, &self->agent,
                                                     SJ_AGENT_STATE_TRANSITION_REQUEST, error);
    sj_registry_end_review(self->registry);
    free(prepared);
    return status;
}

static sj_status toggle_all(transition *self)
{
    sj_text_patch_report done;
    void *states = (void *)(uintptr_t)self->states;
    SJ_TRY(sj_remote_agent_change(&self->target, &self->agent, false, is_unwanted, states, &done));
    return sj_remote_agent_change(&self->target, &self->agent, true, is_wanted, states, &done);
}

static bool is_in_state(const transition *self, uint32_t id, sj_function_state state)
{
    return id < self->states->count && self->states->states[id] == state;
}

/* Counts what became of the functions that were hooked `before`. */
static void compare(const transition *self, const uint8_t *before, const uint8_t *after)
{
    sj_transition_report *report = self->report;
    const uint32_t count = count_functions(self);
    for (uint32_t id = 1; id < count; id++) {
        report->hooked_count += after[id] > before[id];
        report->freed_count += after[id] < before[id];
        report->kept_count += (is_in_state(self, id, SJ_FUNCTION_UNWANTED) ||
                               is_in_state(self, id, SJ_FUNCTION_MANAGED_UNWANTED)) &&
                              after[id] != 0;
    }
}

/* Lists wanted functions without hooks, which cannot be hooked. Runs only after a success. For
 * modules planned meanwhile, the agent has reported the functions without changes. */
static sj_status list_missed(const transition *self, const uint8_t *after)
{
    sj_transition_report *report = self->report;
    const uint32_t count = count_functions(self);
    uint8_t *prepared = mark_functions(self, false);
    report->missed = calloc(count, sizeof(*report->missed));
    const bool complete = prepared != NULL && report->missed != NULL;
    for (uint32_t id = 1; complete && id < count; id++) {
        const bool is_wanted = id < self->states->count
                                   ? self->states->states[id] == SJ_FUNCTION_WANTED
                                   : prepared[id] != 0;
        if (is_wanted && after[id] == 0) {
            report->missed[report->missed_count++] = id;
        }
    }
    free(prepared);
    return complete ? SJ_OK : SJ_ENOMEM;
}

/* Records functions before they are unhooked. A failure may leave some of them unhooked, and
 * threads may run for a moment before others are hooked. */
static sj_status record_unhooked(const transition *self, const uint8_t *before)
{
    const uint32_t count = count_functions(self);
    uint32_t *freed = calloc(count, sizeof(*freed));
    size_t freed_count = 0;
    if (freed == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t id = 1; id < count; id++) {
        if ((before[id] != 0 && is_in_state(self, id, SJ_FUNCTION_UNWANTED)) ||
            is_in_state(self, id, SJ_FUNCTION_MANAGED_UNWANTED)) {
            freed[freed_count++] = id;
        }
    }
    if (freed_count != 0) {
        sj_unhooked_set_add(self->freed, freed, freed_count, sj_clock_ticks());
    }
    free(freed);
    return SJ_OK;
}

/* Records functions that are hooked now, including those that could not be unhooked. */
static void record_hooked(const transition *self, const uint8_t *after)
{
    const uint32_t count = count_functions(self);
    for (uint32_t id = 1; id < count; id++) {
        if (after[id] != 0 || is_in_state(self, id, SJ_FUNCTION_MANAGED)) {
            sj_unhooked_set_remove(self->freed, &id, 1);
        }
    }
}

/* Finds slots that the loader has overwritten since they were patched, by binding a call at that
 * time. They are patched again. */
static sj_status find_overwritten(transition *self)
{
    for (size_t i = 0; i < self->agent.table_count; i++) {
        const sj_remote_table *table = &self->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            sj_hook_change *change = &table->changes[j];
            uint8_t held[SJ_PATCH_MAX_BYTES];
            if (change->is_slot == 0 || change->written == 0 ||
                sj_tracee_read(&self->target, change->address, held, change->bytes) != SJ_OK ||
                memcmp(held, change->original, change->bytes) != 0) {
                continue;
            }
            change->written = 0;
            SJ_TRY(sj_tracee_write(&self->target, (uint64_t)(uintptr_t)(table->module.changes + j),
                                   change, sizeof(*change)));
        }
    }
    return SJ_OK;
}

static sj_status toggle_marked(transition *self, const uint8_t *before)
{
    SJ_TRY(self->freed != NULL ? record_unhooked(self, before) : SJ_OK);
    sj_status status = toggle_all(self);
    uint8_t *after = mark_functions(self, true);
    if (after == NULL) {
        return SJ_ENOMEM;
    }
    if (self->freed != NULL) {
        record_hooked(self, after);
    }
    compare(self, before, after);
    if (status == SJ_OK) {
        status = list_missed(self, after);
    }
    free(after);
    return status;
}

static sj_status toggle_stopped(transition *self)
{
    SJ_TRY(find_overwritten(self));
    uint8_t *before = mark_functions(self, true);
    const sj_status status = before != NULL ? toggle_marked(self, before) : SJ_ENOMEM;
    free(before);
    return status;
}

/* True if the loader may be about to bind a call and overwrite a slot that is written now. It binds
 * without a system call. */
static bool may_write_slots(const transition *self, const sj_remote_module *loader)
{
    for (size_t i = 0; i < self->target.count; i++) {
        sj_registers state;
        if (sj_registers_get(self->target.threads[i].tid, &state) == SJ_OK && !state.in_syscall &&
            state.pc >= loader->code_low && state.pc < loader->code_high) {
            return true;
        }
    }
    return false;
}

/* True if there are slots or, with `wanted`, slots to be written now. */
static bool has_slots(const transition *self, bool wanted)
{
    void *states = (void *)(uintptr_t)self->states;
    for (size_t i = 0; i < self->agent.table_count; i++) {
        const sj_remote_table *table = &self->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            const sj_hook_change *change = &table->changes[j];
            if (change->is_slot != 0 && change->function != SJ_HOOK_REPLACED &&
                (!wanted || (change->written == 0 && is_wanted(states, change)))) {
                return true;
            }
        }
    }
    return false;
}

/* Counts functions whose hooks should be replaced but are still in the text. */
static void count_stale(const transition *self, const uint8_t *written)
{
    const sj_function_states *states = self->states;
    for (uint32_t id = 1; written != NULL && id < states->count; id++) {
        self->report->stale_count += records_more(states, id) && written[id] != 0;
    }
}

/* Marks hooks that were removed from the text as replaced, because the agent makes new ones. Counts
 * the functions whose old hooks are still in the text. */
static sj_status forget_renewed(transition *self)
{
    void *states = (void *)(uintptr_t)self->states;
    uint8_t *written = mark_functions(self, true);
    sj_status status = written != NULL ? SJ_OK : SJ_ENOMEM;
    for (size_t i = 0; i < self->agent.table_count; i++) {
        const sj_remote_table *table = &self->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count && status == SJ_OK; j++) {
            sj_hook_change *change = &table->changes[j];
            if (is_renewed(states, change) && written[change->function] == 0) {
                change->function = SJ_HOOK_REPLACED;
                status =
                    sj_tracee_write(&self->target, (uint64_t)(uintptr_t)(table->module.changes + j),
                                    change, sizeof(*change));
            }
        }
    }
    count_stale(self, written);
    free(written);
    return status;
}

/* Clears the marks of functions that are called through slots. */
static void leave_slots(const transition *self, uint8_t *marks)
{
    for (size_t i = 0; i < self->agent.table_count; i++) {
        const sj_remote_table *table = &self->agent.tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            const sj_hook_change *change = &table->changes[j];
            if (change->is_slot != 0 && change->function < self->states->count) {
                marks[change->function] = 0;
            }
        }
    }
}

/* Records that calls of functions whose hooks change may lose their exits. Calls through slots keep
 * theirs: the exit is recorded at their return, whatever the slots contain by then. */
static sj_status record_renewed(const transition *self)
{
    const sj_function_states *states = self->states;
    uint32_t *renewed = calloc(states->count, sizeof(*renewed));
    uint8_t *written = mark_functions(self, true);
    if (written != NULL) {
        leave_slots(self, written);
    }
    size_t count = 0;
    for (uint32_t id = 1; renewed != NULL && written != NULL && id < states->count; id++) {
        if (records_more(states, id) && written[id] != 0) {
            renewed[count++] = id;
        }
    }
    if (self->freed != NULL && count != 0) {
        sj_unhooked_set_add(self->freed, renewed, count, sj_clock_ticks());
    }
    const bool complete = renewed != NULL && written != NULL;
    free(renewed);
    free(written);
    return complete ? SJ_OK : SJ_ENOMEM;
}

/* Removes hooks from the text that are to be replaced, because the agent compares the text with the
 * file when it makes the new ones. Calls of these functions are not recorded in between. */
static sj_status clear_renewed(transition *self, sj_error *error)
{
    sj_text_patch_report done;
    uint64_t start_ns = 0;
    if (self->states->renewed_count == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_remote_agent_stop_current(&self->target, &self->agent, &start_ns, error));
    sj_status status = record_renewed(self);
    if (status == SJ_OK) {
        status = sj_remote_agent_change(&self->target, &self->agent, false, is_renewed,
                                        (void *)(uintptr_t)self->states, &done);
    }
    if (status == SJ_OK) {
        status = forget_renewed(self);
    }
    sj_tracee_resume_all(&self->target);
    self->report->stopped_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the text of process %d cannot be written: %s",
                                     (int)self->target.pid, sj_status_text(status));
}

/* Stops the process at a moment when its text and slots are stable. A thread may wait long for
 * another one that loads a module; then the report says that it is unsure. */
static sj_status stop_all(transition *self, uint64_t *start_ns, sj_error *error)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    sj_remote_module loader = {0};
    (void)!sj_remote_module_find(self->target.pid, "ld-", &loader);
    const uint64_t lock = sj_loader_lock_find(&self->target);
    for (uint32_t i = 0;; i++) {
        SJ_TRY(sj_remote_agent_stop_current(&self->target, &self->agent, start_ns, error));
        const bool writes = has_slots(self, false) && may_write_slots(self, &loader);
        self->report->is_unsure =
            has_slots(self, true) && sj_loader_lock_is_awaited(&self->target, lock);
        if (!writes && (!self->report->is_unsure || i >= WAIT_ATTEMPTS)) {
            return SJ_OK;
        }
        sj_tracee_resume_all(&self->target);
        if (i == ATTEMPTS) {
            return sj_fail(error, SJ_EAGAIN, "process %d is in its loader all the time; try again",
                           (int)self->target.pid);
        }
        nanosleep(&pause, NULL);
    }
}

static sj_status apply(transition *self, sj_error *error)
{
    uint64_t start_ns = 0;
    SJ_TRY(sj_remote_agent_await(&self->target, &self->agent, error));
    SJ_TRY(clear_renewed(self, error));
    /* Changes that need no further hooks are made in any case. */
    const sj_status reviewed = prepare_missing(self, error);
    SJ_TRY(stop_all(self, &start_ns, error));
    const sj_status status = toggle_stopped(self);
    sj_tracee_resume_all(&self->target);
    const uint64_t stopped_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    if (stopped_ns > self->report->stopped_ns) {
        self->report->stopped_ns = stopped_ns;
    }
    return status == SJ_OK ? reviewed
                           : sj_fail(error, status, "the text of process %d cannot be written: %s",
                                     (int)self->target.pid, sj_status_text(status));
}

sj_status sj_transition_process(sj_registry *registry, uint64_t process, pid_t pid,
                                const sj_function_states *states, sj_unhooked_set *freed,
                                sj_transition_report *report, sj_error *error)
{
    transition self = {.registry = registry,
                       .process = process,
                       .states = states,
                       .freed = freed,
                       .report = report};
    *report = (sj_transition_report){0};
    sj_tracee_lock();
    sj_status status = sj_tracee_open(pid, &self.target, error);
    if (status == SJ_OK) {
        status = apply(&self, error);
        sj_remote_agent_deinit(&self.agent);
        sj_tracee_close(&self.target);
    }
    sj_tracee_unlock();
    return status;
}

void sj_transition_report_deinit(sj_transition_report *report)
{
    free(report->missed);
    *report = (sj_transition_report){0};
}

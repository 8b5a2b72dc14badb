#include "agent/livepatch/remote_agent.h"

#include "agent/ptrace/safepoint.h"

#include "agent/host/clock.h"
#include "agent/ptrace/arch.h"
#include "proto/base/array.h"

#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MODULES_MAX = 65536, STRIDE_MAX = 4096, CHANGES_MAX = 1 << 24, LOADED_MAX = 65536 };
enum { ATTEMPTS = 100, PAUSE_NS = 2000000 };

static void drop_tables(sj_remote_agent *agent)
{
    for (size_t i = 0; i < agent->table_count; i++) {
        free(agent->tables[i].changes);
    }
    free(agent->tables);
    agent->tables = NULL;
    agent->table_count = 0;
    agent->table_capacity = 0;
}

void sj_remote_agent_deinit(sj_remote_agent *agent)
{
    drop_tables(agent);
}

static sj_status add_table(const sj_tracee *target, sj_remote_agent *agent,
                           const sj_hooked_module *module)
{
    if (module->change_count == 0) {
        return SJ_OK;
    }
    if (module->change_count > CHANGES_MAX) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(sj_array_reserve(&agent->tables, &agent->table_capacity, agent->table_count, 1,
                            sizeof(*agent->tables)));
    sj_remote_table *table = &agent->tables[agent->table_count];
    const size_t bytes = module->change_count * sizeof(*table->changes);
    *table = (sj_remote_table){.module = *module, .changes = malloc(bytes)};
    if (table->changes == NULL) {
        return SJ_ENOMEM;
    }
    agent->table_count++;
    SJ_TRY(sj_tracee_read(target, (uint64_t)(uintptr_t)module->changes, table->changes, bytes));
    for (uint32_t i = 0; i < module->change_count; i++) {
        if (table->changes[i].bytes > SJ_PATCH_MAX_BYTES ||
            table->changes[i].window > SJ_PATCH_MAX_BYTES || table->changes[i].bytes == 0) {
            return SJ_ECORRUPT;
        }
    }
    return SJ_OK;
}

/* Reads the changes of the allocator's entries. */
static sj_status read_heap_tables(const sj_tracee *target, sj_remote_agent *agent)
{
    const sj_agent_state *state = &agent->state;
    sj_hooked_module allocating_modules[SJ_HEAP_PARTS];
    agent->residue = (sj_heap_residue){0};
    if (state->heap_residue == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_tracee_read(target, state->heap_allocating, allocating_modules,
                          sizeof(allocating_modules)));
    SJ_TRY(sj_tracee_read(target, state->heap_residue, &agent->residue, sizeof(agent->residue)));
    if (agent->residue.magic != SJ_HEAP_RESIDUE_MAGIC) {
        return SJ_ECORRUPT;
    }
    for (uint32_t part = 0; part < SJ_HEAP_PARTS; part++) {
        SJ_TRY(add_table(target, agent, &allocating_modules[part]));
        SJ_TRY(add_table(target, agent, &agent->residue.freeing_modules[part]));
    }
    return SJ_OK;
}

static sj_status read_tables(const sj_tracee *target, sj_remote_agent *agent)
{
    const sj_agent_state *state = &agent->state;
    sj_hooked_module module;
    SJ_TRY(read_heap_tables(target, agent));
    if (state->first_hooked == 0 || state->hooked_count == 0) {
        return SJ_OK;
    }
    if (state->hooked_count > MODULES_MAX || state->hooked_stride < sizeof(module) ||
        state->hooked_stride > STRIDE_MAX) {
        return SJ_ECORRUPT;
    }
    const size_t bytes = (state->hooked_count - 1) * state->hooked_stride + sizeof(module);
    uint8_t *array = malloc(bytes);
    if (array == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = sj_tracee_read(target, state->first_hooked, array, bytes);
    for (uint32_t i = 0; i < state->hooked_count && status == SJ_OK; i++) {
        memcpy(&module, array + i * state->hooked_stride, sizeof(module));
        status = add_table(target, agent, &module);
    }
    free(array);
    SJ_TRY(status);
    SJ_TRY(sj_tracee_read(target, state->loader_hook, &module, sizeof(module)));
    return add_table(target, agent, &module);
}

sj_status sj_remote_agent_reload(const sj_tracee *target, sj_remote_agent *agent)
{
    drop_tables(agent);
    SJ_TRY(sj_tracee_read(target, agent->state_address, &agent->state, sizeof(agent->state)));
    if (agent->state.magic != SJ_AGENT_STATE_MAGIC ||
        agent->state.version != SJ_AGENT_STATE_VERSION) {
        return SJ_EVERSION;
    }
    const uint32_t changing = atomic_load(&agent->state.changing);
    uint32_t after = 0;
    if (changing % 2 != 0) {
        return SJ_EAGAIN;
    }
    const sj_status status = read_tables(target, agent);
    SJ_TRY(sj_tracee_read(target, agent->state_address + offsetof(sj_agent_state, changing), &after,
                          sizeof(after)));
    /* If the tables changed meanwhile, the copy may be damaged, or its memory unmapped. */
    return after == changing ? status : SJ_EAGAIN;
}

sj_status sj_remote_agent_find(const sj_tracee *target, sj_remote_agent *agent)
{
    sj_remote_module libc;
    *agent = (sj_remote_agent){0};
    SJ_TRY(sj_remote_module_find(target->pid, "libsojourn-agent", &agent->module));
    SJ_TRY(sj_remote_symbol(target, &agent->module, SJ_AGENT_STATE_SYMBOL, &agent->state_address));
    if (sj_remote_libc_find(target->pid, &libc) == SJ_OK) {
        agent->restorer = sj_restorer_find_in(target, libc.code_low, libc.code_high);
    }
    return sj_remote_agent_reload(target, agent);
}

/* Sums the loader's list in the same way as the agent (modules.c). */
static sj_status sum_modules(const sj_tracee *target, uint64_t loader_state, uint64_t *sum)
{
    struct r_debug state;
    struct link_map map;
    *sum = 0;
    SJ_TRY(sj_tracee_read(target, loader_state, &state, sizeof(state)));
    if (state.r_state != RT_CONSISTENT) {
        return SJ_EAGAIN;
    }
    uint64_t at = (uint64_t)(uintptr_t)state.r_map;
    for (uint32_t i = 0; at != 0 && i < LOADED_MAX; i++) {
        SJ_TRY(sj_tracee_read(target, at, &map, sizeof(map)));
        *sum += SJ_AGENT_STATE_MODULE_SUM(map.l_addr, at);
        at = (uint64_t)(uintptr_t)map.l_next;
    }
    return SJ_OK;
}

bool sj_remote_agent_is_unchanged(const sj_tracee *target, const sj_remote_agent *agent)
{
    uint32_t changing = 0;
    return sj_tracee_read(target, agent->state_address + offsetof(sj_agent_state, changing),
                          &changing, sizeof(changing)) == SJ_OK &&
           changing == atomic_load(&agent->state.changing);
}

bool sj_remote_agent_is_awaited(const sj_tracee *target, const sj_remote_agent *agent)
{
    uint32_t calling_out = 0;
    return sj_tracee_read(target, agent->state_address + offsetof(sj_agent_state, calling_out),
                          &calling_out, sizeof(calling_out)) != SJ_OK ||
           calling_out != 0;
}

bool sj_remote_agent_is_current(const sj_tracee *target, const sj_remote_agent *agent)
{
    uint64_t sum = 0;
    if (!sj_remote_agent_is_unchanged(target, agent)) {
        return false;
    }
    return agent->state.loader_state == 0 ||
           (sum_modules(target, agent->state.loader_state, &sum) == SJ_OK &&
            sum == agent->state.known_modules);
}

/* Returns the group of a change. When hooks are written, the allocator's entries are one group: all
 * are written, or none. */
static uint32_t group_of(const sj_hook_change *change, bool on)
{
    return on && change->function == SJ_HOOK_HEAP_ALLOCATING ? (uint32_t)SJ_HOOK_HEAP_FREEING
                                                             : change->function;
}

static void add_patch(sj_text_patch *patch, const sj_hook_change *change, bool on)
{
    *patch = (sj_text_patch){.address = change->address,
                             .group = group_of(change, on),
                             .bytes = change->bytes,
                             .window = change->window,
                             .repeats = on && change->repeats != 0,
                             .is_removal = !on};
    memcpy(patch->expected, on ? change->original : change->patched, change->bytes);
    memcpy(patch->wanted, on ? change->patched : change->original, change->bytes);
}

static bool is_chosen(const sj_remote_choice *choice, const sj_hook_change *change)
{
    return change->written != (choice->on ? 1 : 0) && change->function != SJ_HOOK_REPLACED &&
           (choice->wants == NULL || choice->wants(choice->context, change));
}

/* Notes in the program's memory which changes are in the text. */
static sj_status mark_written(const sj_tracee *target, sj_remote_agent *agent,
                              const sj_remote_choice *choice)
{
    for (size_t i = 0; i < agent->table_count; i++) {
        sj_remote_table *table = &agent->tables[i];
        bool touched = false;
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            sj_hook_change *change = &table->changes[j];
            if (is_chosen(choice, change)) {
                change->written = choice->on ? 1 : 0;
                touched = true;
            }
        }
        if (touched) {
            SJ_TRY(sj_tracee_write(target, (uint64_t)(uintptr_t)table->module.changes,
                                   table->changes,
                                   table->module.change_count * sizeof(*table->changes)));
        }
    }
    return SJ_OK;
}

/* Removes the note for groups that were not changed. */
static sj_status unmark_refused(const sj_tracee *target, sj_remote_agent *agent,
                                const sj_remote_choice *choice)
{
    const sj_text_patch *patches = choice->change.patches;
    for (size_t k = 0; k < choice->change.count; k++) {
        for (size_t i = 0; patches[k].refused && i < agent->table_count; i++) {
            sj_remote_table *table = &agent->tables[i];
            for (uint32_t j = 0; j < table->module.change_count; j++) {
                sj_hook_change *change = &table->changes[j];
                if (change->address == patches[k].address &&
                    group_of(change, choice->on) == patches[k].group) {
                    change->written = choice->on ? 0 : 1;
                    SJ_TRY(sj_tracee_write(target, (uint64_t)(uintptr_t)(table->module.changes + j),
                                           change, sizeof(*change)));
                }
            }
        }
    }
    return SJ_OK;
}

/* Lets the agent hand out guarded blocks once all entries of the allocator are patched. */
static sj_status open_residue(const sj_tracee *target, const sj_remote_agent *agent)
{
    const uint32_t yes = 1;
    if (agent->residue.magic == 0 || atomic_load(&agent->residue.is_whole) != 0) {
        return SJ_OK;
    }
    for (size_t i = 0; i < agent->table_count; i++) {
        const sj_remote_table *table = &agent->tables[i];
        for (uint32_t j = 0; j < table->module.change_count; j++) {
            if (table->changes[j].function >= SJ_HOOK_HEAP_ALLOCATING &&
                table->changes[j].written == 0) {
                return SJ_OK;
            }
        }
    }
    return sj_tracee_write(target, agent->state.heap_residue + offsetof(sj_heap_residue, is_whole),
                           &yes, sizeof(yes));
}

static size_t count_changes(const sj_remote_agent *agent)
{
    size_t count = 0;
    for (size_t i = 0; i < agent->table_count; i++) {
        count += agent->tables[i].module.change_count;
    }
    return count;
}

void sj_remote_choice_deinit(sj_remote_choice *choice)
{
    sj_text_change_deinit(&choice->change);
}

sj_status sj_remote_agent_choose(const sj_tracee *target, const sj_remote_agent *agent, bool on,
                                 sj_remote_agent_wants wants, void *context,
                                 sj_remote_choice *choice)
{
    size_t count = 0;
    sj_text_patch *patches = malloc((count_changes(agent) + 1) * sizeof(*patches));
    sj_remote_choice_deinit(choice);
    *choice = (sj_remote_choice){.on = on, .wants = wants, .context = context};
    if (patches == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < agent->table_count; i++) {
        for (uint32_t j = 0; j < agent->tables[i].module.change_count; j++) {
            const sj_hook_change *change = &agent->tables[i].changes[j];
            if (is_chosen(choice, change)) {
                add_patch(&patches[count++], change, on);
            }
        }
    }
    return sj_text_change_init(target, patches, count, &choice->change);
}

sj_status sj_remote_agent_toggle(sj_tracee *target, sj_remote_agent *agent,
                                 sj_remote_choice *choice, sj_text_patch_report *report)
{
    const bool on = choice->on;
    const sj_signal_returns returns = sj_remote_agent_signal_returns(agent);
    *report = (sj_text_patch_report){0};
    SJ_TRY(sj_text_change_clear(target, &returns, &choice->change, report));
    if (!(on ? sj_remote_agent_is_current(target, agent)
             : sj_remote_agent_is_unchanged(target, agent))) {
        return SJ_EAGAIN;
    }
    /* If this process dies in between, changes may be noted that are not in the text, never the
     * reverse. */
    sj_status status = on ? mark_written(target, agent, choice) : SJ_OK;
    if (status == SJ_OK) {
        status = sj_text_change_apply(target, &choice->change, report);
    }
    if (status == SJ_OK && !on) {
        status = mark_written(target, agent, choice);
    }
    if (status == SJ_OK && report->refused != 0) {
        status = unmark_refused(target, agent, choice);
    }
    return status == SJ_OK && on ? open_residue(target, agent) : status;
}

sj_status sj_remote_agent_stop_current(sj_tracee *target, sj_remote_agent *agent,
                                       uint64_t *start_ns, sj_error *error)
{
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        const struct timespec pause = {.tv_nsec = PAUSE_NS};
        const sj_status status = sj_remote_agent_reload(target, agent);
        if (status == SJ_OK) {
            *start_ns = sj_clock_ns(CLOCK_MONOTONIC);
            SJ_TRY(sj_tracee_stop_all(target, error));
            if (sj_remote_agent_is_current(target, agent)) {
                return SJ_OK;
            }
            sj_tracee_resume_all(target);
        } else if (status != SJ_EAGAIN) {
            return sj_fail(error, status, "the agent's tables cannot be read: %s",
                           sj_status_text(status));
        }
        nanosleep(&pause, NULL);
    }
    return sj_fail(error, SJ_EAGAIN, "the process loads modules all the time; try again");
}

sj_status sj_remote_agent_change(sj_tracee *target, sj_remote_agent *agent, bool on,
                                 sj_remote_agent_wants wants, void *context,
                                 sj_text_patch_report *report)
{
    sj_remote_choice choice = {0};
    sj_status status = sj_remote_agent_choose(target, agent, on, wants, context, &choice);
    if (status == SJ_OK) {
        status = sj_remote_agent_toggle(target, agent, &choice, report);
    }
    sj_remote_choice_deinit(&choice);
    return status;
}

sj_signal_returns sj_remote_agent_signal_returns(const sj_remote_agent *agent)
{
    return (sj_signal_returns){.of_library = agent->restorer,
                               .of_agent = agent->state.signal_return};
}

/* CALL_TIMEOUT_MS applies while other threads run, because a recorder may plan many modules in the
 * call. STOPPED_TIMEOUT_MS applies while all threads are stopped: the call waits for nothing. */
enum { CALL_TIMEOUT_MS = 600000, STOPPED_TIMEOUT_MS = 30000 };

static sj_status call_within(sj_tracee *target, const sj_remote_agent *agent, size_t thread,
                             const char *name, int timeout_ms)
{
    sj_inferior_call call = {.restorer = agent->restorer};
    SJ_TRY(sj_remote_symbol(target, &agent->module, name, &call.function));
    return sj_inferior_call_run(target, thread, &call, timeout_ms);
}

sj_status sj_remote_agent_call(sj_tracee *target, const sj_remote_agent *agent, size_t thread,
                               const char *name)
{
    return call_within(target, agent, thread, name, CALL_TIMEOUT_MS);
}

sj_status sj_remote_agent_call_any(sj_tracee *target, const sj_remote_agent *agent,
                                   const char *name)
{
    for (size_t i = 0; i < target->count; i++) {
        sj_registers state;
        SJ_TRY(sj_registers_get(target->threads[i].tid, &state));
        if (sj_safepoint_has_space(target, state.sp)) {
            return call_within(target, agent, i, name, STOPPED_TIMEOUT_MS);
        }
    }
    return SJ_EAGAIN;
}

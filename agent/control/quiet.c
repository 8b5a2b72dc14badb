#include "agent/control/quiet.h"

#include "agent/control/loader_lock.h"

#include <string.h>

enum { FRAMES_MAX = 64, COPY_BYTES = 64 * 1024 };

/* What one look at all threads carries along. */
typedef struct quiet_look {
    const sj_target *target;
    const sj_remote_agent *agent;
    const sj_quiet_places *places;
    sj_unwinder *unwinder;
} quiet_look;

void sj_quiet_find_places(const sj_target *target, sj_quiet_places *places)
{
    sj_remote_module module;
    *places = (sj_quiet_places){.loader_lock = sj_loader_lock_find(target)};
    if (sj_remote_module_find(target->pid, "libc.so.", &module) == SJ_OK ||
        sj_remote_module_find(target->pid, "libc-", &module) == SJ_OK) {
        (void)!sj_remote_symbol_range(target, &module, "fork", &places->fork);
    }
}

static bool is_in(const sj_remote_range *range, uint64_t pc)
{
    return pc >= range->low && pc < range->high;
}

static bool is_ours(const quiet_look *look, uint64_t pc)
{
    const sj_remote_agent *agent = look->agent;
    if (pc >= agent->module.low && pc < agent->module.high) {
        return true;
    }
    for (size_t i = 0; i < agent->table_count; i++) {
        const sj_hooked_module *module = &agent->tables[i].module;
        if (pc - (uint64_t)(uintptr_t)module->stubs < module->stubs_bytes) {
            return true;
        }
    }
    return false;
}

/* has_interrupted_context looks for signal handlers that interrupted code of ours, or may have. */
static bool has_interrupted_context(const quiet_look *look, const sj_stack_copy *copy)
{
    if (sj_machine_context_start(&copy->state, look->agent->restorer) !=
        (copy->low & ~UINT64_C(7))) {
        return true;
    }
    for (size_t at = 0; at + sizeof(uint64_t) <= copy->size; at += sizeof(uint64_t)) {
        uint64_t word;
        uint64_t pc = 0;
        memcpy(&word, copy->bytes + at, sizeof(word));
        if (word == look->agent->restorer && word != 0 &&
            sj_target_read(look->target, sj_machine_signal_pc(copy->low + at), &pc, sizeof(pc)) ==
                SJ_OK &&
            is_ours(look, pc)) {
            return true;
        }
    }
    return false;
}

/* has_left tells so of one thread. Where fork is about to call us, its frame is close to the
 * innermost: it does no harm that some stacks cannot be followed further. */
static bool has_left(const quiet_look *look, pid_t tid)
{
    sj_native_frame frames[FRAMES_MAX];
    sj_stack_copy copy;
    bool left = sj_stack_copy_take(look->target, tid, COPY_BYTES, &copy) == SJ_OK &&
                !is_ours(look, copy.state.pc) && !has_interrupted_context(look, &copy);
    const size_t count = left ? sj_unwinder_walk(look->unwinder, &copy, frames, FRAMES_MAX) : 0;
    for (size_t i = 0; i < count && left; i++) {
        left = !is_ours(look, frames[i].pc) && !is_in(&look->places->fork, frames[i].pc);
    }
    sj_stack_copy_deinit(&copy);
    return left;
}

bool sj_quiet_is_reached(const sj_target *target, const sj_remote_agent *agent,
                         sj_unwinder *unwinder, const sj_quiet_places *places)
{
    const quiet_look look = {
        .target = target, .agent = agent, .places = places, .unwinder = unwinder};
    bool quiet = !sj_loader_lock_is_held(target, places->loader_lock);
    for (size_t i = 0; i < target->count && quiet; i++) {
        quiet = has_left(&look, target->threads[i].tid);
    }
    return quiet;
}

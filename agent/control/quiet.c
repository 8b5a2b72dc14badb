#include "agent/control/quiet.h"

#include "agent/control/loader_lock.h"

#include <string.h>

enum { FRAMES_MAX = 512, COPY_BYTES = 64 * 1024 };

/* What one look at all threads carries along. */
typedef struct quiet_look {
    const sj_target *target;
    const sj_remote_agent *agent;
    const sj_quiet_places *places;
    sj_unwinder *unwinder;
} quiet_look;

/* What the copied top of a stack tells of signal handlers. */
typedef struct interruptions {
    bool in_ours; /* one interrupted code of ours, or may have */
    bool any;
} interruptions;

void sj_quiet_find_places(const sj_target *target, sj_quiet_places *places)
{
    sj_remote_module module;
    *places = (sj_quiet_places){.loader_lock = sj_loader_lock_find(target),
                                .fork = sj_remote_fork_find(target)};
    if (sj_remote_module_find(target->pid, "ld-", &module) == SJ_OK) {
        places->loader = (sj_remote_range){.low = module.code_low, .high = module.code_high};
    }
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

static interruptions find_interruptions(const quiet_look *look, const sj_stack_copy *copy)
{
    interruptions found = {.in_ours =
                               sj_machine_context_start(&copy->state, look->agent->restorer) !=
                               (copy->low & ~UINT64_C(7))};
    for (size_t at = 0; at + sizeof(uint64_t) <= copy->size && !found.in_ours; at += 8) {
        uint64_t word;
        uint64_t pc = 0;
        memcpy(&word, copy->bytes + at, sizeof(word));
        if (word == look->agent->restorer && word != 0 &&
            sj_target_read(look->target, sj_machine_signal_pc(copy->low + at), &pc, sizeof(pc)) ==
                SJ_OK) {
            found.any = true;
            found.in_ours = is_ours(look, pc);
        }
    }
    return found;
}

/* is_in_place: where the loader's lock is known, it tells more than frames do. */
static bool is_in_place(const quiet_look *look, uint64_t pc)
{
    const sj_quiet_places *places = look->places;
    return places != NULL && (sj_remote_is_in(&places->fork, pc) ||
                              (places->loader_lock == 0 && sj_remote_is_in(&places->loader, pc)));
}

/* has_left tells so of one thread. Where fork is about to call us, its frame is the innermost but
 * one, unless a signal handler lies between: it does no harm that other stacks are followed to no
 * end, or not at all. */
static bool has_left(const quiet_look *look, pid_t tid)
{
    sj_native_frame frames[FRAMES_MAX];
    sj_stack_copy copy;
    size_t count = 0;
    bool left = false;
    if (sj_stack_copy_take(look->target, tid, COPY_BYTES, &copy) == SJ_OK &&
        !is_ours(look, copy.state.pc)) {
        const interruptions found = find_interruptions(look, &copy);
        count = found.in_ours ? 0 : sj_unwinder_walk(look->unwinder, &copy, frames, FRAMES_MAX);
        left = !found.in_ours && !(found.any && count == FRAMES_MAX);
    }
    for (size_t i = 0; i < count && left; i++) {
        left = !is_ours(look, frames[i].pc) && !is_in_place(look, frames[i].pc);
    }
    sj_stack_copy_deinit(&copy);
    return left;
}

static bool have_all_left(const quiet_look *look)
{
    bool left = true;
    for (size_t i = 0; i < look->target->count && left; i++) {
        left = has_left(look, look->target->threads[i].tid);
    }
    return left;
}

bool sj_quiet_is_left(const sj_target *target, const sj_remote_agent *agent, sj_unwinder *unwinder)
{
    const quiet_look look = {.target = target, .agent = agent, .unwinder = unwinder};
    return have_all_left(&look);
}

bool sj_quiet_is_reached(const sj_target *target, const sj_remote_agent *agent,
                         sj_unwinder *unwinder, const sj_quiet_places *places)
{
    const quiet_look look = {
        .target = target, .agent = agent, .places = places, .unwinder = unwinder};
    return !sj_loader_lock_is_held(target, places->loader_lock) && have_all_left(&look);
}

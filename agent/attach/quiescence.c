#include "agent/attach/quiescence.h"

#include "agent/ptrace/loader_lock.h"

#include <string.h>

enum {
    FRAMES_MAX = 512,
    COPY_BYTES = 64 * 1024,
    COPY_WORDS = COPY_BYTES / sizeof(uint64_t),
    STACK_MAX_BYTES = 64 * 1024 * 1024
};

/* Arguments of one check of all threads. */
typedef struct quiescence_check {
    const sj_tracee *target;
    const sj_remote_agent *agent;
    const sj_quiescence_regions *places;
    sj_unwinder *unwinder;
    /* The library that unwinds stacks for exceptions. A thread in it may have read a thunk's
     * address from a stack and look it up later. Empty: this need not be checked now. */
    sj_remote_range exceptions;
} quiescence_check;

void sj_quiescence_find_regions(const sj_tracee *target, sj_quiescence_regions *places)
{
    sj_remote_module module;
    *places = (sj_quiescence_regions){.loader_lock = sj_loader_lock_find(target),
                                      .fork = sj_remote_fork_find(target)};
    if (sj_remote_module_find(target->pid, "ld-", &module) == SJ_OK) {
        places->loader = (sj_remote_range){.low = module.code_low, .high = module.code_high};
    }
}

static bool is_ours(const quiescence_check *check, uint64_t pc)
{
    const sj_remote_agent *agent = check->agent;
    if (pc >= agent->module.low && pc < agent->module.high) {
        return true;
    }
    if (pc - agent->state.leaf_stubs < agent->state.leaf_stubs_bytes &&
        agent->state.leaf_stubs != 0) {
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

/* True if the `count` bytes at `address` begin with the return address of a signal handler that
 * interrupted the agent's code. */
static bool is_interrupted(const quiescence_check *check, const void *bytes, size_t count,
                           uint64_t address)
{
    const sj_signal_returns returns = sj_remote_agent_signal_returns(check->agent);
    uint64_t word;
    uint64_t pc_at = 0;
    uint64_t pc = 0;
    bool is_shown;
    memcpy(&word, bytes, sizeof(word));
    return sj_signal_is_frame(&returns, bytes, count) &&
           sj_signal_find_pc(check->target, &returns, word, address, &pc_at, &is_shown) == SJ_OK &&
           sj_tracee_read(check->target, pc_at, &pc, sizeof(pc)) == SJ_OK && is_ours(check, pc);
}

/* True if a signal handler has interrupted the agent's code, or may have. */
static bool has_interrupted_context(const quiescence_check *check, const sj_stack_copy *copy)
{
    const sj_signal_returns returns = sj_remote_agent_signal_returns(check->agent);
    bool found = sj_signal_context_start(check->target, &copy->state, &returns) !=
                 (copy->low & ~UINT64_C(7));
    for (size_t at = 0; at + sizeof(uint64_t) <= copy->size && !found; at += sizeof(uint64_t)) {
        found = is_interrupted(check, copy->bytes + at, copy->size - at, copy->low + at);
    }
    return found;
}

/* Scans a stack that could not be unwound to its end. Returns true if a word may be a return
 * address into fork, or into a signal frame that interrupted the agent. Stale words of earlier
 * calls count, too. */
static bool may_hide(const quiescence_check *check, const sj_stack_copy *copy)
{
    const uint64_t low = copy->low & ~UINT64_C(7);
    static uint64_t words[(COPY_BYTES + SJ_SIGNAL_FRAME_BYTES) / sizeof(uint64_t)];
    sj_remote_range stack;
    bool grows;
    bool found = sj_remote_mapping_find(check->target->pid, low, &stack, &grows) != SJ_OK;
    for (uint64_t at = low; !found && at < stack.high && at - low < STACK_MAX_BYTES;
         at += COPY_BYTES) {
        const size_t bytes =
            stack.high - at < sizeof(words) ? (size_t)(stack.high - at) : sizeof(words);
        found = sj_tracee_read(check->target, at, words, bytes) != SJ_OK;
        for (size_t i = 0; i * sizeof(words[0]) < bytes && i < COPY_WORDS && !found; i++) {
            const size_t offset = i * sizeof(words[0]);
            found = is_interrupted(check, &words[i], bytes - offset, at + offset) ||
                    (check->places != NULL &&
                     sj_remote_is_in(&check->places->fork, words[i] & ~copy->state.signature_bits));
        }
    }
    return found;
}

/* True if `pc` is in fork or, only if the loader's lock is unknown, in the loader. The lock is more
 * reliable than frames. */
static bool is_in_place(const quiescence_check *check, uint64_t pc)
{
    const sj_quiescence_regions *places = check->places;
    return places != NULL && (sj_remote_is_in(&places->fork, pc) ||
                              (places->loader_lock == 0 && sj_remote_is_in(&places->loader, pc)));
}

/* Makes a signal handler return to the C library's restorer instead of the agent's. The handler's
 * return address is `pc`, stored at `at`. Returns false if `pc` is not the agent's restorer, or if
 * the handler has interrupted the agent's code. */
static bool gives_return_back(const quiescence_check *check, uint64_t pc, uint64_t at)
{
    const sj_signal_returns returns = sj_remote_agent_signal_returns(check->agent);
    uint64_t word = 0;
    uint64_t pc_at;
    bool is_shown = false;
    return pc == returns.of_agent && pc != 0 && returns.of_library != 0 &&
           sj_tracee_read(check->target, at, &word, sizeof(word)) == SJ_OK && word == pc &&
           sj_signal_find_pc(check->target, &returns, word, at, &pc_at, &is_shown) == SJ_OK &&
           is_shown &&
           sj_tracee_write(check->target, at, &returns.of_library, sizeof(word)) == SJ_OK;
}

static bool is_outside(const quiescence_check *check, pid_t tid)
{
    sj_native_frame frames[FRAMES_MAX];
    sj_stack_copy copy;
    bool outside = sj_stack_copy_read(check->target, tid, COPY_BYTES, &copy) == SJ_OK &&
                   !is_ours(check, copy.state.pc) && !has_interrupted_context(check, &copy);
    const size_t count = outside ? sj_unwinder_walk(check->unwinder, &copy, frames, FRAMES_MAX) : 0;
    for (size_t i = 0; i < count && outside; i++) {
        const bool is_inside =
            is_ours(check, frames[i].pc) &&
            (i == 0 || !gives_return_back(check, frames[i].pc, frames[i - 1].stack));
        outside = !is_inside && !is_in_place(check, frames[i].pc) &&
                  !sj_remote_is_in(&check->exceptions, frames[i].pc);
    }
    if (outside && !sj_unwinder_came_to_end(check->unwinder)) {
        outside = !may_hide(check, &copy);
    }
    sj_stack_copy_deinit(&copy);
    return outside;
}

static bool are_all_outside(const quiescence_check *check)
{
    bool outside = !sj_remote_agent_is_awaited(check->target, check->agent);
    for (size_t i = 0; i < check->target->count && outside; i++) {
        outside = is_outside(check, check->target->threads[i].tid);
    }
    return outside;
}

bool sj_quiescence_is_left(const sj_tracee *target, const sj_remote_agent *agent,
                           sj_unwinder *unwinder)
{
    quiescence_check check = {.target = target, .agent = agent, .unwinder = unwinder};
    sj_remote_module library;
    if (atomic_load(&agent->state.binding) == SJ_AGENT_STATE_RELEASED &&
        sj_remote_module_find(target->pid, "libgcc_s", &library) == SJ_OK) {
        check.exceptions = (sj_remote_range){.low = library.code_low, .high = library.code_high};
    }
    return are_all_outside(&check);
}

bool sj_quiescence_is_reached(const sj_tracee *target, const sj_remote_agent *agent,
                              sj_unwinder *unwinder, const sj_quiescence_regions *places)
{
    const quiescence_check check = {
        .target = target, .agent = agent, .places = places, .unwinder = unwinder};
    return !sj_loader_lock_is_held(target, places->loader_lock) && are_all_outside(&check);
}

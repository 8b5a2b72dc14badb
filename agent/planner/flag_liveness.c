#include "agent/planner/flags.h"

#include "agent/planner/exits.h"
#include "agent/planner/machine.h"
#include "agent/planner/targets.h"

/* Design notes. This code follows the flags along all paths of control, into called functions and
 * back. Code that it cannot decode counts as a reader of the flags. After MOST_STEPS instructions,
 * the remaining paths count as readers, too. An instruction that ends the path (ud2) does not read
 * flags: no code after it is assumed to run. */

enum { MOST_STEPS = 1024, MOST_DEPTH = 64, SEEN = 64 };

/* An instruction that was reached with these flags in this call. It need not be followed again with
 * the same or fewer flags. */
typedef struct seen_place {
    const sj_code *code;
    uint32_t call;
    uint8_t live;
} seen_place;

typedef struct walk {
    const sj_flags_view *view;
    uint32_t steps; /* remaining steps of all paths together */
    uint32_t depth; /* nesting depth of paths */
    uint32_t call;  /* number of the call whose code is being followed */
    uint32_t call_count;
    uint32_t seen_count;
    seen_place seen[SEEN];
} walk;

/* Returns false if the instruction was already reached with these flags in this call. Otherwise
 * adds it to `seen`, if there is space, and returns true. */
static bool is_new(walk *state, const sj_code *code, uint8_t live)
{
    for (uint32_t i = 0; i < state->seen_count; i++) {
        const seen_place *place = &state->seen[i];
        if (place->code == code && place->call == state->call && (live & ~place->live) == 0) {
            return false;
        }
    }
    if (state->seen_count < SEEN) {
        state->seen[state->seen_count++] =
            (seen_place){.code = code, .call = state->call, .live = live};
    }
    return true;
}

static bool reads_flags(const sj_code *code, uint8_t live)
{
    return (sj_flags_read(code->flag_effect) & live) != 0;
}

/* Returns the uses of the flags in `live` from `code` on. */
static uint32_t follow_code(walk *state, const sj_code *code, uint8_t live);

/* Returns the uses of the flags from an offset on. Counts them as read if paths are nested too
 * deeply. */
static uint32_t follow_to(walk *state, int64_t offset, uint8_t live)
{
    if (state->depth == MOST_DEPTH) {
        return SJ_USE_READ;
    }
    state->depth++;
    const uint32_t found = follow_code(state, sj_any_code_at(state->view->module, offset), live);
    state->depth--;
    return found;
}

/* The target of a pointer is unknown, so it may return with the flags. */
enum { BY_POINTER = SJ_USE_POINTED | SJ_USE_RETURNED };

/* Returns the uses of the flags by the function that a call or jump through an import slot
 * reaches. */
static uint32_t follow_slot(walk *state, const sj_code *code, uint8_t live)
{
    const sj_flags_view *view = state->view;
    const sj_import_slot *slot =
        view->slots != NULL ? sj_import_slot_of(view->module, view->slots, code) : NULL;
    if (slot == NULL || slot->kind == SJ_SLOT_ANY) {
        return BY_POINTER;
    }
    return slot->kind == SJ_SLOT_OTHER_MODULE
               ? (uint32_t)SJ_USE_GONE
               : SJ_USE_GONE |
                     follow_to(state, (int64_t)(slot->function - view->module->text_low), live);
}

/* Returns the uses of the flags in the called function. SJ_USE_RETURNED means that the flags
 * survive the call. */
static uint32_t follow_call(walk *state, const sj_code *call, uint8_t live)
{
    const uint32_t caller = state->call;
    state->call = ++state->call_count;
    const uint32_t uses = call->kind == SJ_CODE_CALL ? follow_to(state, sj_code_target(call), live)
                                                     : follow_slot(state, call, live);
    state->call = caller;
    return uses;
}

/* Returns the uses of the flags after an indirect jump: through a slot, a tail call, or a
 * switch. */
static uint32_t follow_jump(walk *state, const sj_code *jump, uint8_t live)
{
    const sj_flags_view *view = state->view;
    const uint32_t at = sj_module_range_at(view->module, jump->at);
    if ((jump->flags & SJ_CODE_RELATIVE) != 0) {
        return follow_slot(state, jump, live);
    }
    const sj_code_range *range = at != SJ_CODE_RANGE_NONE ? &view->module->ranges[at] : NULL;
    const sj_exit exit = range != NULL ? sj_exit_of(view->module, range, jump) : SJ_EXIT_UNKNOWN;
    if (exit == SJ_EXIT_LEAVES) {
        return BY_POINTER;
    }
    if (exit == SJ_EXIT_UNKNOWN || view->label_uses == NULL) {
        return SJ_USE_READ;
    }
    if (range->parent == view->labels_of) {
        return 0; /* the caller follows all labels of this function */
    }
    return view->labels_of == SJ_CODE_RANGE_NONE ? view->label_uses[range->parent]
                                                 : (uint32_t)SJ_USE_READ;
}

static uint32_t follow_code(walk *state, const sj_code *code, uint8_t live)
{
    const sj_module *module = state->view->module;
    uint32_t found = 0;
    while (code != NULL && state->steps > 0) {
        state->steps--;
        switch (code->kind) {
        case SJ_CODE_PLAIN:
        case SJ_CODE_NOP:
            if (reads_flags(code, live)) {
                return SJ_USE_READ;
            }
            live &= (uint8_t)~sj_flags_written(code->flag_effect);
            if (live == 0) {
                return found;
            }
            code = sj_any_code_behind(module, code);
            break;
        case SJ_CODE_JUMP:
            code = sj_any_code_at(module, sj_code_target(code));
            if (code != NULL && !is_new(state, code, live)) {
                return found;
            }
            break;
        case SJ_CODE_JUMP_IF:
            if (reads_flags(code, live)) {
                return SJ_USE_READ;
            }
            if (!is_new(state, code, live)) {
                return found;
            }
            found |= follow_to(state, sj_code_target(code), live);
            code = sj_any_code_behind(module, code);
            break;
        case SJ_CODE_JUMP_INDIRECT:
            return found | follow_jump(state, code, live);
        case SJ_CODE_CALL:
        case SJ_CODE_CALL_INDIRECT: {
            const uint32_t called = follow_call(state, code, live);
            found |= called & ~(uint32_t)SJ_USE_RETURNED;
            if ((called & SJ_USE_RETURNED) == 0 || sj_is_last_call(module, code)) {
                return found;
            }
            code = sj_any_code_behind(module, code);
            break;
        }
        case SJ_CODE_RETURN:
            return found | SJ_USE_RETURNED;
        case SJ_CODE_STOP:
            return found;
        default:
            return SJ_USE_READ;
        }
        if ((found & SJ_USE_READ) != 0) {
            return found;
        }
    }
    return SJ_USE_READ;
}

uint32_t sj_flags_uses(const sj_flags_view *view, const sj_code *code)
{
    walk state; /* `seen` is not initialized, because most walks have few steps. */
    state.view = view;
    state.steps = MOST_STEPS;
    state.depth = 0;
    state.call = 0;
    state.call_count = 0;
    state.seen_count = 0;
    return follow_code(&state, code, SJ_FLAGS_ALL);
}

bool sj_flags_are_dead(const sj_module *module, int64_t offset)
{
    const sj_flags_view view = {.module = module};
    return module->machine->shows_flags &&
           sj_flags_uses(&view, sj_any_code_at(module, offset)) == 0;
}

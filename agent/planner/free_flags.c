#include "agent/planner/exits.h"
#include "agent/planner/machine.h"
#include "agent/planner/targets.h"

#include <stdlib.h>

/* Design notes. Calling conventions give the status flags no meaning where a function is entered or
 * left, but code written by hand does (`stc; ret`), and a probe must not change what such code
 * sees. So the code is asked. At an entry, the instructions from there on tell. At a return, those
 * behind all calls of the module tell which functions' flags are looked at: directly, or by being
 * handed on, because what follows the call is a return, or because the function that is called
 * leaves by a jump to another. Calls by pointer may lead to every function whose address is taken.
 * Callers in other modules are held to the convention: what lies between (PLT, resolver) is, too.
 *
 * Whatever is not understood reads the flags. */

enum { MOST_STEPS = 24 };

/* What may happen to flags when control goes on somewhere; none of it: they are overwritten. */
typedef enum fate {
    FATE_READ = 1,
    FATE_RETURNED = 2, /* the function returns with them */
    FATE_CALLED = 4    /* they go into a call, or by a jump to another module */
} fate;

static const sj_code *next_code(const sj_module *module, const sj_code *code)
{
    const sj_code *next = code + 1;
    const bool follows = next < module->codes + module->code_count && next->at == sj_code_end(code);
    return follows ? next : NULL;
}

typedef struct walk {
    const sj_module *module;
    uint32_t steps;      /* left, of both sides of branches together */
    const sj_code *call; /* that FATE_CALLED is about */
} walk;

/* The flags that a condition looks at: below (and its opposite) at the carry, below or equal at
 * the carry and another, all the rest at others. */
static uint8_t flags_of(const sj_module *module, const sj_code *jump)
{
    enum { BELOW = 1, BELOW_OR_EQUAL = 3 };
    switch (sj_jump_condition(module, jump) >> 1) {
    case BELOW:
        return SJ_FLAGS_CARRY;
    case BELOW_OR_EQUAL:
        return SJ_FLAGS_ALL;
    default:
        return SJ_FLAGS_OTHERS;
    }
}

static uint32_t note_next_call(walk *state, const sj_code *call)
{
    const bool is_second = state->call != NULL && state->call != call;
    state->call = call;
    return is_second ? FATE_READ : FATE_CALLED;
}

/* The fates of the `live` flags from an instruction on. */
static uint32_t follow(walk *state, const sj_code *code, uint8_t live)
{
    const sj_module *module = state->module;
    while (code != NULL && state->steps > 0) {
        state->steps--;
        switch (code->kind) {
        case SJ_CODE_PLAIN:
        case SJ_CODE_NOP:
            if ((code->flag_effect & SJ_FLAGS_READ) != 0) {
                return FATE_READ;
            }
            live &= (uint8_t)~code->flag_effect;
            if (live == 0) {
                return 0;
            }
            code = next_code(module, code);
            break;
        case SJ_CODE_JUMP:
            if (sj_module_piece_at(module, sj_code_target(code)) == SJ_PIECE_NONE) {
                return note_next_call(state, code);
            }
            code = sj_code_at(module, sj_code_target(code));
            break;
        case SJ_CODE_JUMP_IF:
            if ((flags_of(module, code) & live) != 0) {
                return FATE_READ;
            }
            return follow(state, next_code(module, code), live) |
                   follow(state, sj_code_at(module, sj_code_target(code)), live);
        case SJ_CODE_JUMP_INDIRECT:
            /* Through the table of imports. */
            return (code->flags & SJ_CODE_RELATIVE) != 0 ? note_next_call(state, code)
                                                         : (uint32_t)FATE_READ;
        case SJ_CODE_CALL:
        case SJ_CODE_CALL_INDIRECT:
            return note_next_call(state, code);
        case SJ_CODE_RETURN:
            return FATE_RETURNED;
        case SJ_CODE_STOP:
            return 0;
        default:
            return FATE_READ;
        }
    }
    return FATE_READ;
}

static uint32_t fates_at(const sj_module *module, const sj_code *code, const sj_code **call)
{
    walk state = {.module = module, .steps = MOST_STEPS};
    const uint32_t found = follow(&state, code, SJ_FLAGS_ALL);
    *call = state.call;
    return found;
}

bool sj_flags_are_free(const sj_module *module, int64_t offset)
{
    const sj_code *call;
    return module->machine->tells_flags && fates_at(module, sj_code_at(module, offset), &call) == 0;
}

/* The flags that functions return with: who looks at them, and whose are handed on. Number
 * `module->piece_count` stands for whatever is called by pointer. */
typedef struct search {
    sj_module *module;
    bool *is_read;  /* by piece */
    sj_links links; /* who reads what `from` returns with, reads what `to` does */
} search;

/* The function, or the pointer, that a call or a jump leads to; SJ_PIECE_NONE: another module. */
static uint32_t callee_of(const sj_module *module, const sj_code *code)
{
    if ((code->flags & SJ_CODE_BRANCH) == 0) {
        return (uint32_t)module->piece_count;
    }
    const uint32_t piece = sj_module_piece_at(module, sj_code_target(code));
    return piece != SJ_PIECE_NONE ? module->pieces[piece].parent : SJ_PIECE_NONE;
}

/* A function of this module that reads flags at its entry; others keep to the convention. */
static bool is_read_by_callee(const sj_module *module, const sj_code *call)
{
    const sj_code *entry =
        call->kind == SJ_CODE_CALL ? sj_code_at(module, sj_code_target(call)) : NULL;
    const sj_code *next;
    return entry != NULL && (fates_at(module, entry, &next) & FATE_READ) != 0;
}

static sj_status note_call(search *state, uint32_t caller, const sj_code *call)
{
    const sj_module *module = state->module;
    const uint32_t callee = callee_of(module, call);
    const sj_code *next = next_code(module, call);
    const sj_code *next_call;
    if (callee == SJ_PIECE_NONE || next == NULL) {
        return SJ_OK; /* nothing follows a call that never returns */
    }
    const uint32_t fates = fates_at(module, next, &next_call);
    state->is_read[callee] |= (fates & FATE_READ) != 0;
    if ((fates & FATE_CALLED) != 0) {
        state->is_read[callee] |= is_read_by_callee(module, next_call);
    }
    return (fates & FATE_RETURNED) != 0 ? sj_links_add(&state->links, caller, callee) : SJ_OK;
}

static sj_status note_code(search *state, const sj_piece *piece, const sj_code *code)
{
    const sj_module *module = state->module;
    if (code->kind == SJ_CODE_CALL || code->kind == SJ_CODE_CALL_INDIRECT) {
        return note_call(state, piece->parent, code);
    }
    const bool is_jump = code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF;
    const bool is_switch =
        code->kind == SJ_CODE_JUMP_INDIRECT && sj_exit_of(module, piece, code) == SJ_EXIT_NOT;
    if (!is_jump && (code->kind != SJ_CODE_JUMP_INDIRECT || is_switch)) {
        return SJ_OK;
    }
    const uint32_t to = callee_of(module, code);
    return to != piece->parent && to != SJ_PIECE_NONE
               ? sj_links_add(&state->links, piece->parent, to)
               : SJ_OK;
}

static sj_status note_codes(search *state)
{
    const sj_module *module = state->module;
    for (size_t i = 0; i < module->piece_count; i++) {
        const sj_piece *piece = &module->pieces[i];
        for (uint32_t at = 0; at < piece->code_count; at++) {
            SJ_TRY(note_code(state, piece, &module->codes[piece->first_code + at]));
        }
    }
    return SJ_OK;
}

/* Hands reading on along the links until nothing changes. */
static void hand_on(search *state)
{
    const sj_module *module = state->module;
    bool *is_read = state->is_read;
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (size_t i = 0; i < module->piece_count && is_read[module->piece_count]; i++) {
            const sj_piece *piece = &module->pieces[i];
            is_changed |= sj_bit_get(module->addressed, piece->start) && !is_read[piece->parent];
            is_read[piece->parent] |= sj_bit_get(module->addressed, piece->start);
        }
        for (size_t i = 0; i < state->links.count; i++) {
            const sj_link *link = &state->links.items[i];
            is_changed |= is_read[link->from] && !is_read[link->to];
            is_read[link->to] |= is_read[link->from];
        }
    }
}

sj_status sj_find_free_flags(sj_module *module)
{
    search state = {.module = module, .is_read = calloc(module->piece_count + 1, sizeof(bool))};
    sj_status status = state.is_read != NULL ? note_codes(&state) : SJ_ENOMEM;
    if (status == SJ_OK) {
        hand_on(&state);
    }
    for (size_t i = 0; i < module->piece_count && status == SJ_OK; i++) {
        sj_piece *piece = &module->pieces[i];
        piece->frees_flags_at_head = sj_flags_are_free(module, sj_piece_head(module, piece));
        piece->frees_flags_at_return = !state.is_read[i];
    }
    free(state.is_read);
    free(state.links.items);
    return status;
}

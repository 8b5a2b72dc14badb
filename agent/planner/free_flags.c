#include "agent/planner/exits.h"
#include "agent/planner/flags.h"
#include "agent/planner/machine.h"
#include "agent/planner/targets.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Design notes. Calling conventions give the status flags no meaning where a function is entered or
 * left, but code written by hand does (`stc; ret`), and a probe must not change what such code
 * sees. So the code is asked. At an entry, the instructions from there on tell. At a return, those
 * behind all calls of the module tell which functions' flags are looked at: directly, or by being
 * handed on, because what follows the call is a return, or because the function that is called
 * leaves by a jump to another or runs into it. Calls by pointer may lead to every function whose
 * address is taken or that nothing calls otherwise. Callers in other modules are held to the
 * convention.
 *
 * Whose flags: of nodes. A function with its parts is one, the pointer that stands for all calls by
 * pointer, and each stretch of code between two pieces. */

typedef struct search {
    sj_module *module;
    sj_import_slots slots;
    sj_flags_view view;
    size_t node_count;
    uint32_t piece;       /* whose code is looked at; most jumps stay in it */
    bool *is_read;        /* by node: somebody looks at the flags that it returns with */
    bool *is_called;      /* by node: by its name, from another node */
    bool *is_pointed;     /* by node: calls by pointer may lead there */
    sj_links links;       /* who reads what `from` returns with, reads what `to` does */
    bool *is_filler;      /* by node: alignment, which nobody calls */
    bool *may_push;       /* by node: it has a label that may be a return address, and reads them */
    uint8_t *label_fates; /* by node: of places that its switches go on to */
    bool pointed_read;    /* a function that may be called by pointer reads flags at its entry */
} search;

static uint32_t pointer_node(const search *state)
{
    return (uint32_t)state->module->piece_count;
}

/* SJ_PIECE_NONE outside of the text. */
static uint32_t node_at(const search *state, int64_t offset)
{
    const sj_module *module = state->module;
    if (!sj_module_holds(module, offset)) {
        return SJ_PIECE_NONE;
    }
    const sj_piece *here = &module->pieces[state->piece];
    if (offset >= here->start && offset < (int64_t)here->start + here->size) {
        return here->parent;
    }
    const uint32_t before = sj_module_pieces_before(module, offset);
    const sj_piece *piece = before > 0 ? &module->pieces[before - 1] : NULL;
    return piece != NULL && offset < (int64_t)piece->start + piece->size
               ? piece->parent
               : pointer_node(state) + 1 + before;
}

static uint32_t node_through(const search *state, const sj_code *code)
{
    const sj_import_slot *slot = sj_import_slot_of(state->module, &state->slots, code);
    if (slot == NULL || slot->kind == SJ_SLOT_ANY) {
        return pointer_node(state);
    }
    return slot->kind == SJ_SLOT_OWN
               ? node_at(state, (int64_t)(slot->function - state->module->text_low))
               : (uint32_t)SJ_PIECE_NONE;
}

/* Where a call or a jump leads to; SJ_PIECE_NONE: another module. Calls of a linkage table lead to
 * where its jump does, which a landing mark may precede. */
static uint32_t callee_of(const search *state, const sj_code *code)
{
    const sj_module *module = state->module;
    if ((code->flags & SJ_CODE_BRANCH) == 0) {
        return node_through(state, code);
    }
    const int64_t target = sj_code_target(code);
    const uint32_t node = node_at(state, target);
    if (node == SJ_PIECE_NONE || node <= pointer_node(state)) {
        return node;
    }
    const sj_code *first = sj_any_code_at(module, target);
    if (first == NULL) {
        return node;
    }
    const sj_code *jump =
        first->kind == SJ_CODE_JUMP_INDIRECT ? first : sj_any_code_behind(module, first);
    const bool is_linkage = jump != NULL && jump->kind == SJ_CODE_JUMP_INDIRECT &&
                            (jump->flags & SJ_CODE_RELATIVE) != 0;
    return is_linkage ? node_through(state, jump) : node;
}

static sj_status note_call(search *state, uint32_t caller, const sj_code *call)
{
    const sj_code *next = sj_any_code_behind(state->module, call);
    const uint32_t fates = next != NULL ? sj_flags_fates(&state->view, next) : 0;
    if (fates == 0 || sj_is_last_call(state->module, call)) {
        return SJ_OK; /* of nearly all calls it is the former, which is found fastest */
    }
    const uint32_t callee = callee_of(state, call);
    if (callee == SJ_PIECE_NONE) {
        return SJ_OK;
    }
    state->is_read[callee] |=
        (fates & SJ_FATE_READ) != 0 || ((fates & SJ_FATE_POINTED) != 0 && state->pointed_read);
    return (fates & SJ_FATE_RETURNED) != 0 ? sj_links_add(&state->links, caller, callee) : SJ_OK;
}

static bool is_switch(const search *state, const sj_code *code)
{
    const sj_module *module = state->module;
    const uint32_t piece = sj_module_piece_at(module, code->at);
    return code->kind == SJ_CODE_JUMP_INDIRECT && piece != SJ_PIECE_NONE &&
           sj_exit_of(module, &module->pieces[piece], code) == SJ_EXIT_NOT;
}

/* A jump that may leave, a return to what was pushed as if it were a return address. */
static sj_status note_jump(search *state, uint32_t caller, const sj_code *jump)
{
    const uint32_t to = jump->kind == SJ_CODE_RETURN ? pointer_node(state) : callee_of(state, jump);
    if (to == SJ_PIECE_NONE || to == caller || is_switch(state, jump)) {
        return SJ_OK;
    }
    state->is_read[to] |= state->may_push[caller];
    return sj_links_add(&state->links, caller, to);
}

static bool is_filler(const sj_code *code)
{
    return code->kind == SJ_CODE_NOP || code->kind == SJ_CODE_BREAK;
}

/* Code that runs into what follows, through alignment, too. */
static sj_status note_end(search *state, uint32_t node, const sj_code *first, size_t count)
{
    const sj_code *last = &first[count - 1];
    const uint32_t next = node_at(state, sj_code_end(last));
    while (last > first && is_filler(last) && !sj_bit_get(state->module->targets, last->at)) {
        last--;
    }
    const bool is_end = sj_code_is_final(last) || sj_is_last_call(state->module, last);
    return next != SJ_PIECE_NONE && next != node && !is_end
               ? sj_links_add(&state->links, node, next)
               : SJ_OK;
}

static sj_status note_code(search *state, uint32_t node, const sj_code *code)
{
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        return note_call(state, node, code);
    case SJ_CODE_JUMP:
    case SJ_CODE_JUMP_IF:
    case SJ_CODE_JUMP_INDIRECT:
        return note_jump(state, node, code);
    case SJ_CODE_PINNED:
        return (code->flags & SJ_CODE_BRANCH) != 0 ? note_jump(state, node, code) : SJ_OK;
    case SJ_CODE_RETURN:
        return node < pointer_node(state) && (code->flags & SJ_CODE_ENTRY_FRAME) == 0
                   ? note_jump(state, node, code)
                   : SJ_OK;
    default:
        return SJ_OK;
    }
}

/* A run of code that belongs to one node; there is at least one instruction. */
typedef sj_status note_run(search *state, uint32_t node, const sj_code *first, size_t count);

static sj_status note_flow(search *state, uint32_t node, const sj_code *first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        SJ_TRY(note_code(state, node, &first[i]));
    }
    return note_end(state, node, first, count);
}

static sj_status note_called(search *state, uint32_t node, const sj_code *first, size_t count)
{
    for (const sj_code *code = first; code < first + count; code++) {
        const bool is_transfer = (code->flags & SJ_CODE_BRANCH) != 0 ||
                                 code->kind == SJ_CODE_CALL_INDIRECT ||
                                 code->kind == SJ_CODE_JUMP_INDIRECT;
        const uint32_t to = is_transfer ? callee_of(state, code) : node;
        state->is_filler[node] = state->is_filler[node] && is_filler(code);
        if (to != node && to != SJ_PIECE_NONE) {
            state->is_called[to] = true;
        }
    }
    return SJ_OK;
}

static sj_status take_gap(search *state, note_run *take, size_t start, size_t end)
{
    const sj_code *first = state->module->codes + start;
    return start < end ? take(state, node_at(state, first->at), first, end - start) : SJ_OK;
}

static sj_status for_all_code(search *state, note_run *take)
{
    const sj_module *module = state->module;
    size_t gap = 0; /* where the code in front of a piece begins */
    for (size_t i = 0; i < module->piece_count; i++) {
        const sj_piece *piece = &module->pieces[i];
        state->piece = (uint32_t)i;
        SJ_TRY(take_gap(state, take, gap, piece->first_code));
        if (piece->code_count > 0) {
            SJ_TRY(
                take(state, piece->parent, module->codes + piece->first_code, piece->code_count));
        }
        gap = (size_t)piece->first_code + piece->code_count;
    }
    return take_gap(state, take, gap, module->code_count);
}

/* A place that pointers and switches lead to. When no switch is known to, it may be a return
 * address that code pushes, or outside of pieces a function. */
static void note_label(search *state, uint32_t at)
{
    const sj_module *module = state->module;
    const uint32_t piece = sj_module_piece_at(module, at);
    const uint32_t node = node_at(state, at);
    const sj_code *code = sj_any_code_at(module, at);
    if (code == NULL || (piece != SJ_PIECE_NONE && at == module->pieces[piece].start)) {
        return; /* the starts of functions are looked at later, all of them */
    }
    state->view.labels_of = piece != SJ_PIECE_NONE ? node : (uint32_t)SJ_PIECE_NONE;
    const uint32_t fates = sj_flags_fates(&state->view, code);
    state->label_fates[node] |= (uint8_t)fates;
    if ((fates & SJ_FATE_READ) != 0 && !sj_bit_get(module->table_entries, at)) {
        state->may_push[node] = true;
        state->pointed_read |= piece == SJ_PIECE_NONE;
    }
}

/* Addresses that are taken: of labels, and of what calls by pointer may lead to. */
static void find_labels(search *state)
{
    const sj_module *module = state->module;
    for (uint32_t at = 0; at < module->text_bytes; at++) {
        if ((at & 63) == 0 && (module->addressed[at >> 6] | module->table_entries[at >> 6]) == 0) {
            at += 63;
            continue;
        }
        const bool is_addressed = sj_bit_get(module->addressed, at);
        if (is_addressed) {
            state->is_pointed[node_at(state, at)] = true;
        }
        if (is_addressed || sj_bit_get(module->table_entries, at)) {
            note_label(state, at);
        }
    }
    state->view.labels_of = SJ_PIECE_NONE;
}

static void find_pointed(search *state)
{
    const sj_module *module = state->module;
    for (size_t i = 0; i < state->node_count; i++) {
        state->is_pointed[i] |= !state->is_called[i] && !state->is_filler[i];
    }
    for (size_t i = 0; i < module->piece_count && !state->pointed_read; i++) {
        const sj_code *head = sj_any_code_at(module, module->pieces[i].start);
        state->pointed_read = state->is_pointed[i] && !module->pieces[i].is_cold && head != NULL &&
                              (sj_flags_fates(&state->view, head) & SJ_FATE_READ) != 0;
    }
}

/* Hands reading on along the links until nothing changes. */
static void hand_on(search *state)
{
    bool *is_read = state->is_read;
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (size_t i = 0; i < state->node_count && is_read[pointer_node(state)]; i++) {
            is_changed |= state->is_pointed[i] && !is_read[i];
            is_read[i] |= state->is_pointed[i];
        }
        for (size_t i = 0; i < state->links.count; i++) {
            const sj_link *link = &state->links.items[i];
            is_changed |= is_read[link->from] && !is_read[link->to];
            is_read[link->to] |= is_read[link->from];
        }
    }
}

static sj_status run_search(search *state)
{
    SJ_TRY(sj_import_slots_read(state->module, &state->slots));
    SJ_TRY(for_all_code(state, note_called));
    find_labels(state);
    find_pointed(state);
    SJ_TRY(for_all_code(state, note_flow));
    hand_on(state);
    return SJ_OK;
}

/* Code in another segment is not seen. */
static bool has_other_text(const sj_module *module)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < module->elf.segment_count; i++) {
        const sj_elf_segment *segment = &module->elf.segments[i];
        count += segment->type == PT_LOAD && (segment->flags & PF_X) != 0;
    }
    return count > 1;
}

sj_status sj_find_free_flags(sj_module *module)
{
    if (module->piece_count == 0) {
        return SJ_OK;
    }
    /* The pieces, the pointer, what lies in front of each piece and behind the last. */
    search state = {.module = module, .node_count = 2 * module->piece_count + 2};
    uint8_t *label_fates = calloc(state.node_count, 1);
    bool *flags = calloc(5 * state.node_count, sizeof(bool));
    state.is_read = flags;
    state.is_called = flags + state.node_count;
    state.is_pointed = flags + 2 * state.node_count;
    state.may_push = flags + 3 * state.node_count;
    state.is_filler = flags + 4 * state.node_count;
    state.label_fates = label_fates;
    state.view = (sj_flags_view){.module = module,
                                 .slots = &state.slots,
                                 .label_fates = label_fates,
                                 .labels_of = SJ_PIECE_NONE};
    sj_status status = SJ_ENOMEM;
    if (flags != NULL && label_fates != NULL) {
        memset(state.is_filler, true, state.node_count * sizeof(bool));
        status = run_search(&state);
    }
    const bool sees_all = !has_other_text(module);
    for (size_t i = 0; i < module->piece_count && status == SJ_OK; i++) {
        sj_piece *piece = &module->pieces[i];
        piece->frees_flags_at_head = sj_flags_are_free(module, piece->head);
        piece->frees_flags_at_return = sees_all && !state.is_read[i];
    }
    free(flags);
    free(label_fates);
    free(state.links.items);
    free(state.slots.items);
    return status;
}

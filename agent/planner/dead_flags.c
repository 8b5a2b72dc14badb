#include "agent/planner/exits.h"
#include "agent/planner/flags.h"
#include "agent/planner/machine.h"
#include "agent/planner/pieces.h"
#include "agent/planner/targets.h"
#include "proto/base/array.h"

#include <elf.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Design notes. Calling conventions give the status flags no meaning at the entry or exit of a
 * function. But hand-written code uses them (`stc; ret`), and a probe must not change what such
 * code sees. So the planner searches for code that reads the flags.
 *
 * The flags are dead at an entry if the code from there on overwrites them before it reads them.
 * The flags are dead at the return of a function if no code after its calls reads them. Code after
 * a call reads the flags itself, or returns with them to a caller that reads them. If a function
 * jumps to or runs into another function, that other function returns to the caller of the first.
 *
 * A call by pointer may reach a function whose address is taken, or a function without other
 * calls. Callers in other modules are assumed to follow the convention.
 *
 * The search notes facts about nodes. A node is a function with its parts, or the code between two
 * ranges. One more node stands for all functions that calls by pointer may reach.
 *
 * Several threads process the code in pieces. They only set facts of nodes, and links are followed
 * until nothing changes. So the order of the pieces does not matter. */

enum { DECIDED_PIECES = 32 }; /* number of pieces of decide_ranges */

/* Fact about a node; several threads may set it. */
typedef _Atomic bool node_mark;

typedef struct search {
    sj_module *module;
    sj_import_slots slots;
    sj_flags_view view;
    size_t node_count;
    uint32_t range;       /* range being processed; most jumps stay in it */
    node_mark *is_read;   /* by node: some code reads the flags with which the node returns */
    node_mark *is_called; /* by node: another node calls or jumps to the node without a pointer */
    bool *is_pointed;     /* by node: calls by pointer may reach the node */
    sj_links links;       /* if `from` returns with flags that are read, so does `to` */
    node_mark *is_filler; /* by node: the node is only alignment, not a function */
    bool *may_push;       /* by node: code reads flags at a label that may be a return address */
    uint8_t *label_uses;  /* by node: sj_flags_use at the labels of the node */
    bool pointed_read;    /* a function that may be called by pointer reads flags at its entry */
} search;

static void set_mark(node_mark *mark, bool value)
{
    if (atomic_load_explicit(mark, memory_order_relaxed) != value) {
        atomic_store_explicit(mark, value, memory_order_relaxed);
    }
}

static uint32_t pointer_node(const search *state)
{
    return (uint32_t)state->module->range_count;
}

/* Returns the node of the code at an offset, or SJ_CODE_RANGE_NONE outside the text. */
static uint32_t node_at(const search *state, int64_t offset)
{
    const sj_module *module = state->module;
    if (!sj_module_holds(module, offset)) {
        return SJ_CODE_RANGE_NONE;
    }
    const sj_code_range *here = &module->ranges[state->range];
    if (offset >= here->start && offset < (int64_t)here->start + here->size) {
        return here->parent;
    }
    const uint32_t before = sj_module_ranges_before(module, offset);
    const sj_code_range *range = before > 0 ? &module->ranges[before - 1] : NULL;
    return range != NULL && offset < (int64_t)range->start + range->size
               ? range->parent
               : pointer_node(state) + 1 + before;
}

/* Returns the node that an indirect call or jump reaches; SJ_CODE_RANGE_NONE for another module. */
static uint32_t node_through(const search *state, const sj_code *code)
{
    const sj_import_slot *slot = sj_import_slot_of(state->module, &state->slots, code);
    if (slot == NULL || slot->kind == SJ_SLOT_ANY) {
        return pointer_node(state);
    }
    return slot->kind == SJ_SLOT_OWN
               ? node_at(state, (int64_t)(slot->function - state->module->text_low))
               : (uint32_t)SJ_CODE_RANGE_NONE;
}

/* Returns the node that a call or jump reaches, or SJ_CODE_RANGE_NONE for another module. A call of
 * an entry of a linkage table reaches the target of the entry's jump. The entry may begin with a
 * mark of a branch target (endbr64, bti). */
static uint32_t callee_of(const search *state, const sj_code *code)
{
    const sj_module *module = state->module;
    if ((code->flags & SJ_CODE_BRANCH) == 0) {
        return node_through(state, code);
    }
    const int64_t target = sj_code_target(code);
    const uint32_t node = node_at(state, target);
    if (node == SJ_CODE_RANGE_NONE || node <= pointer_node(state)) {
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

static sj_status record_call(search *state, uint32_t caller, const sj_code *call)
{
    const sj_code *next = sj_any_code_behind(state->module, call);
    const uint32_t uses = next != NULL ? sj_flags_uses(&state->view, next) : 0;
    if (uses == 0 || sj_is_last_call(state->module, call)) {
        return SJ_OK; /* uses == 0 is tested first, because nearly all calls have no uses */
    }
    const uint32_t callee = callee_of(state, call);
    if (callee == SJ_CODE_RANGE_NONE) {
        return SJ_OK;
    }
    if ((uses & SJ_USE_READ) != 0 || ((uses & SJ_USE_POINTED) != 0 && state->pointed_read)) {
        set_mark(&state->is_read[callee], true);
    }
    return (uses & SJ_USE_RETURNED) != 0 ? sj_links_add(&state->links, caller, callee) : SJ_OK;
}

static bool is_switch(const search *state, const sj_code *code)
{
    const sj_module *module = state->module;
    const uint32_t range = sj_module_range_at(module, code->at);
    return code->kind == SJ_CODE_JUMP_INDIRECT && range != SJ_CODE_RANGE_NONE &&
           sj_exit_of(module, &module->ranges[range], code) == SJ_EXIT_NOT;
}

/* Records a jump that may leave the function. A return counts as a jump by pointer, because the
 * code may have pushed the address. */
static sj_status record_jump(search *state, uint32_t caller, const sj_code *jump)
{
    const uint32_t to = jump->kind == SJ_CODE_RETURN ? pointer_node(state) : callee_of(state, jump);
    if (to == SJ_CODE_RANGE_NONE || to == caller || is_switch(state, jump)) {
        return SJ_OK;
    }
    if (state->may_push[caller]) {
        set_mark(&state->is_read[to], true);
    }
    return sj_links_add(&state->links, caller, to);
}

static bool is_filler(const sj_code *code)
{
    return code->kind == SJ_CODE_NOP || code->kind == SJ_CODE_BREAK;
}

/* Records code that runs into the following code, also through alignment. */
static sj_status record_end(search *state, uint32_t node, const sj_code *first, size_t count)
{
    const sj_code *last = &first[count - 1];
    const uint32_t next = node_at(state, sj_code_end(last));
    while (last > first && is_filler(last) && !sj_bit_get(state->module->targets, last->at)) {
        last--;
    }
    const bool is_end = sj_code_is_final(last) || sj_is_last_call(state->module, last);
    return next != SJ_CODE_RANGE_NONE && next != node && !is_end
               ? sj_links_add(&state->links, node, next)
               : SJ_OK;
}

static sj_status record_code(search *state, uint32_t node, const sj_code *code)
{
    switch (code->kind) {
    case SJ_CODE_CALL:
    case SJ_CODE_CALL_INDIRECT:
        return record_call(state, node, code);
    case SJ_CODE_JUMP:
    case SJ_CODE_JUMP_IF:
    case SJ_CODE_JUMP_INDIRECT:
        return record_jump(state, node, code);
    case SJ_CODE_PINNED:
        return (code->flags & SJ_CODE_BRANCH) != 0 ? record_jump(state, node, code) : SJ_OK;
    case SJ_CODE_RETURN:
        return node < pointer_node(state) && (code->flags & SJ_CODE_ENTRY_FRAME) == 0
                   ? record_jump(state, node, code)
                   : SJ_OK;
    default:
        return SJ_OK;
    }
}

/* Records a run of code: `count` instructions of one node, at least one. */
typedef sj_status record_run(search *state, uint32_t node, const sj_code *first, size_t count);

static sj_status record_flow(search *state, uint32_t node, const sj_code *first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        SJ_TRY(record_code(state, node, &first[i]));
    }
    return record_end(state, node, first, count);
}

/* Marks the nodes that the code calls or jumps to, and notes whether the node is only alignment. */
static sj_status record_called(search *state, uint32_t node, const sj_code *first, size_t count)
{
    for (const sj_code *code = first; code < first + count; code++) {
        const bool is_transfer = (code->flags & SJ_CODE_BRANCH) != 0 ||
                                 code->kind == SJ_CODE_CALL_INDIRECT ||
                                 code->kind == SJ_CODE_JUMP_INDIRECT;
        const uint32_t to = is_transfer ? callee_of(state, code) : node;
        if (!is_filler(code)) {
            set_mark(&state->is_filler[node], false);
        }
        if (to != node && to != SJ_CODE_RANGE_NONE) {
            set_mark(&state->is_called[to], true);
        }
    }
    return SJ_OK;
}

static sj_status run_gap(search *state, record_run *run, size_t start, size_t end)
{
    const sj_code *first = state->module->codes + start;
    return start < end ? run(state, node_at(state, first->at), first, end - start) : SJ_OK;
}

/* Consecutive ranges and the code before each. The last piece includes the code after them. */
typedef struct walk_piece {
    search state; /* copy of the search with its own links */
    size_t first;
    size_t last; /* one past the last range */
} walk_piece;

typedef struct code_walk {
    search *state;
    record_run *run;
    walk_piece *pieces;
    uint32_t piece_count;
} code_walk;

/* Returns the index in module->codes of the first instruction after a range. */
static size_t code_behind(const sj_module *module, size_t range)
{
    return (size_t)module->ranges[range].first_code + module->ranges[range].code_count;
}

static sj_status walk_ranges(void *context, uint32_t number)
{
    const code_walk *walk = context;
    walk_piece *piece = &walk->pieces[number];
    const sj_module *module = piece->state.module;
    size_t gap = piece->first > 0 ? code_behind(module, piece->first - 1) : 0;
    for (size_t i = piece->first; i < piece->last; i++) {
        const sj_code_range *range = &module->ranges[i];
        piece->state.range = (uint32_t)i;
        SJ_TRY(run_gap(&piece->state, walk->run, gap, range->first_code));
        if (range->code_count > 0) {
            SJ_TRY(walk->run(&piece->state, range->parent, module->codes + range->first_code,
                             range->code_count));
        }
        gap = code_behind(module, i);
    }
    return piece->last == module->range_count
               ? run_gap(&piece->state, walk->run, gap, module->code_count)
               : SJ_OK;
}

static void cut_walk(code_walk *walk, uint32_t most)
{
    const search *state = walk->state;
    const sj_module *module = state->module;
    const size_t share = module->code_count / most + 1;
    walk_piece next = {.state = *state};
    next.state.links = (sj_links){0};
    for (size_t i = 1; i < module->range_count && walk->piece_count + 1 < most; i++) {
        if (module->ranges[i].first_code - module->ranges[next.first].first_code >= share) {
            next.last = i;
            walk->pieces[walk->piece_count++] = next;
            next.first = i;
        }
    }
    next.last = module->range_count;
    walk->pieces[walk->piece_count++] = next;
}

static sj_status join_links(search *state, const sj_links *more)
{
    sj_links *links = &state->links;
    SJ_TRY(sj_array_reserve(&links->items, &links->capacity, links->count, more->count,
                            sizeof(*links->items)));
    if (more->count > 0) {
        memcpy(links->items + links->count, more->items, more->count * sizeof(*more->items));
        links->count += more->count;
    }
    return SJ_OK;
}

static sj_status for_all_code(search *state, record_run *run)
{
    const sj_module *module = state->module;
    const uint32_t most = sj_pieces_count(module->threads);
    code_walk walk = {.state = state, .run = run, .pieces = calloc(most, sizeof(*walk.pieces))};
    if (walk.pieces == NULL) {
        return SJ_ENOMEM;
    }
    cut_walk(&walk, most);
    sj_status status = sj_pieces_run(module->threads, walk.piece_count, walk_ranges, &walk);
    for (uint32_t i = 0; i < walk.piece_count; i++) {
        if (status == SJ_OK) {
            status = join_links(state, &walk.pieces[i].state.links);
        }
        free(walk.pieces[i].state.links.items);
    }
    free(walk.pieces);
    return status;
}

/* Records a label: code that taken addresses or switches reach. A label that is not in a table of a
 * known switch may be a pushed return address. Outside all ranges, it may also be a function. */
static void record_label(search *state, uint32_t at)
{
    const sj_module *module = state->module;
    const uint32_t range = sj_module_range_at(module, at);
    const uint32_t node = node_at(state, at);
    const sj_code *code = sj_any_code_at(module, at);
    if (code == NULL || (range != SJ_CODE_RANGE_NONE && at == module->ranges[range].start)) {
        return; /* find_pointed processes the starts of functions */
    }
    state->view.labels_of = range != SJ_CODE_RANGE_NONE ? node : (uint32_t)SJ_CODE_RANGE_NONE;
    const uint32_t uses = sj_flags_uses(&state->view, code);
    state->label_uses[node] |= (uint8_t)uses;
    if ((uses & SJ_USE_READ) != 0 && !sj_bit_get(module->table_entries, at)) {
        state->may_push[node] = true;
        state->pointed_read |= range == SJ_CODE_RANGE_NONE;
    }
}

/* Records all labels. Marks each node with a taken address as reachable by pointer. */
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
            record_label(state, at);
        }
    }
    state->view.labels_of = SJ_CODE_RANGE_NONE;
}

/* Marks nodes without other calls as reachable by pointer. Sets pointed_read. */
static void find_pointed(search *state)
{
    const sj_module *module = state->module;
    for (size_t i = 0; i < state->node_count; i++) {
        state->is_pointed[i] |= !state->is_called[i] && !state->is_filler[i];
    }
    for (size_t i = 0; i < module->range_count && !state->pointed_read; i++) {
        const sj_code *entry = sj_any_code_at(module, module->ranges[i].start);
        state->pointed_read = state->is_pointed[i] && !module->ranges[i].is_cold && entry != NULL &&
                              (sj_flags_uses(&state->view, entry) & SJ_USE_READ) != 0;
    }
}

static bool is_marked_read(const search *state, uint32_t node)
{
    return atomic_load_explicit(&state->is_read[node], memory_order_relaxed);
}

/* Marks a node. Returns true if the node was not marked before. */
static bool mark_read(search *state, uint32_t node)
{
    const bool is_new = !is_marked_read(state, node);
    set_mark(&state->is_read[node], true);
    return is_new;
}

/* Follows the links from marked nodes and marks their targets, until nothing changes. */
static void propagate_reads(search *state)
{
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (size_t i = 0; i < state->node_count && is_marked_read(state, pointer_node(state));
             i++) {
            is_changed |= state->is_pointed[i] && mark_read(state, (uint32_t)i);
        }
        for (size_t i = 0; i < state->links.count; i++) {
            const sj_link *link = &state->links.items[i];
            is_changed |= is_marked_read(state, link->from) && mark_read(state, link->to);
        }
    }
}

static sj_status run_search(search *state)
{
    SJ_TRY(sj_import_slots_read(state->module, &state->slots));
    SJ_TRY(for_all_code(state, record_called));
    find_labels(state);
    find_pointed(state);
    SJ_TRY(for_all_code(state, record_flow));
    propagate_reads(state);
    return SJ_OK;
}

/* True if the module has code in a second segment, which the planner does not read. */
static bool has_other_text(const sj_module *module)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < module->elf.segment_count; i++) {
        const sj_elf_segment *segment = &module->elf.segments[i];
        count += segment->type == PT_LOAD && (segment->flags & PF_X) != 0;
    }
    return count > 1;
}

static sj_status decide_ranges(void *context, uint32_t piece)
{
    const search *state = context;
    sj_module *module = state->module;
    const bool sees_all = !has_other_text(module);
    const size_t end = module->range_count * (piece + 1) / DECIDED_PIECES;
    for (size_t i = module->range_count * piece / DECIDED_PIECES; i < end; i++) {
        sj_code_range *range = &module->ranges[i];
        range->dead_flags_at_entry = sj_flags_are_dead(module, range->entry);
        range->dead_flags_at_return = sees_all && !is_marked_read(state, (uint32_t)i);
    }
    return SJ_OK;
}

sj_status sj_find_dead_flags(sj_module *module)
{
    if (module->range_count == 0) {
        return SJ_OK;
    }
    /* Nodes: the ranges, pointer_node, the code before each range, and the code after the last. */
    search state = {.module = module, .node_count = 2 * module->range_count + 2};
    uint8_t *label_uses = calloc(state.node_count, 1);
    bool *flags = calloc(2 * state.node_count, sizeof(bool));
    node_mark *marks = calloc(3 * state.node_count, sizeof(node_mark));
    state.is_pointed = flags;
    state.may_push = flags + state.node_count;
    state.is_read = marks;
    state.is_called = marks + state.node_count;
    state.is_filler = marks + 2 * state.node_count;
    state.label_uses = label_uses;
    state.view = (sj_flags_view){.module = module,
                                 .slots = &state.slots,
                                 .label_uses = label_uses,
                                 .labels_of = SJ_CODE_RANGE_NONE};
    sj_status status = SJ_ENOMEM;
    if (flags != NULL && marks != NULL && label_uses != NULL) {
        for (size_t i = 0; i < state.node_count; i++) {
            atomic_init(&state.is_filler[i], true);
        }
        status = run_search(&state);
    }
    if (status == SJ_OK) {
        status = sj_pieces_run(module->threads, DECIDED_PIECES, decide_ranges, &state);
    }
    free(flags);
    free(marks);
    free(label_uses);
    free(state.links.items);
    free(state.slots.items);
    return status;
}

/* Design notes.
 *
 * All blocks precede the code that removes the frame and returns, including those that a runtime
 * enters by itself (exception handlers). After it come code that throws, by calls that never
 * return, and constants. So the code of the function is everything up to the return, and whatever
 * control can reach after it. A return after the removal of the frame ends a call. A return after a
 * restored stack pointer ends a handler, not the call. */
#include "agent/planner/generated.h"

#include "agent/planner/machine.h"
#include "proto/base/array.h"

#include <stdlib.h>

/* The current function; offsets are relative to its start. */
typedef struct reach {
    const sj_module *module;
    const sj_decoder *decoder;
    const sj_generated_function *of;
    uint8_t *starts; /* one byte each: an instruction that control reaches starts here */
    uint32_t *open;  /* targets that are not followed yet */
    size_t open_count;
    uint32_t reached;  /* number of instructions */
    uint32_t returned; /* end of the first return that ends a call */
    uint32_t end;
    bool is_bad;
} reach;

static sj_code decode(const reach *state, uint32_t at)
{
    sj_code code;
    uint64_t immediate;
    sj_decode(state->decoder, state->of->bytes + at, state->of->size - at, at, &code, &immediate);
    return code;
}

static bool is_branch(const sj_code *code)
{
    return code->kind == SJ_CODE_JUMP || code->kind == SJ_CODE_JUMP_IF;
}

static bool is_call(const sj_code *code)
{
    return code->kind == SJ_CODE_CALL || code->kind == SJ_CODE_CALL_INDIRECT;
}

static bool is_inside(const reach *state, int64_t target)
{
    return target >= 0 && target < (int64_t)state->of->size;
}

/* Follows one path until it ends or reaches a followed instruction. */
static void follow(reach *state, uint32_t at)
{
    while (!state->is_bad && at < state->of->size && state->starts[at] == 0) {
        const sj_code code = decode(state, at);
        state->starts[at] = 1;
        state->reached++;
        state->end = sj_code_end(&code) > state->end ? sj_code_end(&code) : state->end;
        state->is_bad = code.kind == SJ_CODE_BAD || state->end > state->of->size;
        if (is_branch(&code) && is_inside(state, sj_code_target(&code)) && !state->is_bad) {
            state->open[state->open_count++] = (uint32_t)sj_code_target(&code);
        }
        if (sj_code_is_final(&code) || (is_call(&code) && at >= state->returned)) {
            return;
        }
        at = sj_code_end(&code);
    }
    state->is_bad = state->is_bad || at >= state->of->size;
}

typedef enum code_end { END_NOT, END_OF_CALL, END_OF_HANDLER, END_UNKNOWN } code_end;

/* Returns what an instruction ends, if `before` is the frame before it. In a function without a
 * frame, every end ends a call. */
static code_end end_of(const reach *state, const sj_code *code, sj_frame_step before,
                       bool has_frame)
{
    const bool leaves = is_branch(code) && !is_inside(state, sj_code_target(code));
    switch (code->kind) {
    case SJ_CODE_RETURN:
        if (before == SJ_FRAME_RESTORED) {
            return END_OF_HANDLER;
        }
        return before == SJ_FRAME_REMOVED || !has_frame ? END_OF_CALL : END_UNKNOWN;
    case SJ_CODE_JUMP:
        if (!leaves) {
            return END_NOT;
        }
        return before == SJ_FRAME_REMOVED || !has_frame ? END_OF_CALL : END_UNKNOWN;
    case SJ_CODE_JUMP_IF:
        return leaves ? END_UNKNOWN : END_NOT;
    case SJ_CODE_JUMP_INDIRECT:
        return before == SJ_FRAME_REMOVED ? END_OF_CALL : END_UNKNOWN;
    default:
        return END_NOT;
    }
}

/* Visits the instructions up to the first return that ends a call; returns false if there is
 * none. */
static bool find_return(reach *state)
{
    sj_frame_step before = SJ_FRAME_KEPT;
    bool has_frame = false;
    for (uint32_t at = 0; at < state->of->size;) {
        const sj_code code = decode(state, at);
        if (code.kind == SJ_CODE_BAD || sj_code_end(&code) > state->of->size) {
            return false;
        }
        at = sj_code_end(&code);
        if (code.kind == SJ_CODE_RETURN && end_of(state, &code, before, has_frame) == END_OF_CALL) {
            state->returned = at;
            return true;
        }
        before = state->module->machine->frame_step(state->of->bytes + code.at, code.length);
        has_frame = has_frame || before == SJ_FRAME_MADE;
    }
    return false;
}

static bool find_reach(reach *state)
{
    state->end = state->returned;
    follow(state, 0);
    while (state->open_count != 0 && !state->is_bad) {
        follow(state, state->open[--state->open_count]);
    }
    return !state->is_bad;
}

static sj_status add_row(sj_eh_frame *unwind, sj_fde *range, uint64_t end, bool is_entry)
{
    if (range->row_count != 0 && unwind->rows[unwind->row_count - 1].is_entry == is_entry) {
        unwind->rows[unwind->row_count - 1].end = end;
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&unwind->rows, &unwind->row_capacity, unwind->row_count, 1,
                            sizeof(*unwind->rows)));
    unwind->rows[unwind->row_count++] = (sj_cfi_row){.end = end, .is_entry = is_entry};
    range->row_count++;
    return SJ_OK;
}

/* Visits all instructions once. Sets `*is_understood` if there is an end and all ends are
 * understood. */
static sj_status read_rows(const reach *state, sj_eh_frame *unwind, sj_fde *range,
                           bool *is_understood)
{
    sj_frame_step before = SJ_FRAME_KEPT;
    uint32_t met = 0;
    bool has_frame = false;
    bool ends = false;
    *is_understood = true;
    for (uint32_t at = 0; at < state->end && *is_understood;) {
        const sj_code code = decode(state, at);
        const code_end end = end_of(state, &code, before, has_frame);
        met += state->starts[at];
        ends = ends || end == END_OF_CALL;
        *is_understood = end != END_UNKNOWN && code.kind != SJ_CODE_BAD;
        SJ_TRY(add_row(unwind, range, state->of->address + sj_code_end(&code),
                       !has_frame || end == END_OF_CALL));
        before = state->module->machine->frame_step(state->of->bytes + at, code.length);
        has_frame = has_frame || before == SJ_FRAME_MADE;
        at = sj_code_end(&code);
    }
    *is_understood = *is_understood && ends && met == state->reached;
    return SJ_OK;
}

static sj_status find_frame(reach *state, sj_eh_frame *unwind)
{
    const size_t row_count = unwind->row_count;
    bool is_understood = false;
    if (!find_return(state) || !find_reach(state)) {
        return SJ_OK;
    }
    sj_fde range = {.start = state->of->address,
                    .end = state->of->address + state->end,
                    .first_row = (uint32_t)row_count};
    SJ_TRY(read_rows(state, unwind, &range, &is_understood));
    if (!is_understood) {
        unwind->row_count = row_count;
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&unwind->ranges, &unwind->capacity, unwind->count, 1,
                            sizeof(*unwind->ranges)));
    unwind->ranges[unwind->count++] = range;
    return SJ_OK;
}

sj_status sj_generated_find_frames(sj_module *module, const sj_generated_function *functions,
                                   size_t count)
{
    uint32_t most = 0;
    sj_decoder decoder;
    for (size_t i = 0; i < count; i++) {
        most = functions[i].size > most ? functions[i].size : most;
    }
    uint8_t *starts = malloc((size_t)most + 1);
    uint32_t *open = malloc(((size_t)most + 1) * sizeof(*open));
    sj_status status = starts != NULL && open != NULL
                           ? sj_decoder_open(&decoder, module->machine, module->text_low)
                           : SJ_ENOMEM;
    const bool is_open = status == SJ_OK;
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        memset(starts, 0, functions[i].size);
        reach state = {.module = module,
                       .decoder = &decoder,
                       .of = &functions[i],
                       .starts = starts,
                       .open = open};
        status = find_frame(&state, &module->unwind);
    }
    if (is_open) {
        sj_decoder_close(&decoder);
    }
    free(starts);
    free(open);
    return status;
}

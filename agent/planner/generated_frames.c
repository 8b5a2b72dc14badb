/* Design notes.
 *
 * The code of a generated function has this order:
 *   1. its blocks, and the exception handlers that the runtime enters itself
 *   2. code that removes the frame and returns
 *   3. code that throws, by calls that never return
 *   4. constants
 *
 * So the function consists of everything up to the return, and of the code after the return that
 * control reaches. A return after the removal of the frame ends a call. A return after a load of
 * the stack pointer from memory ends a handler, not the call. */
#include "agent/planner/generated.h"

#include "agent/planner/machine.h"
#include "proto/base/array.h"

#include <stdlib.h>

/* Search state of the current function. Offsets are relative to the function's start. */
typedef struct reach {
    const sj_module *module;
    const sj_decoder *decoder;
    const sj_generated_function *of;
    /* One byte for each byte of the function. 1: an instruction starts here, and control reaches
     * the instruction. */
    uint8_t *starts;
    uint32_t *open; /* targets of branches that follow() has not followed yet */
    size_t open_count;
    uint32_t reached;  /* number of instructions that control reaches */
    uint32_t returned; /* offset after the first return that ends a call */
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

/* Follows one path until it ends or meets an instruction that was followed before. Sets is_bad if
 * the path cannot be decoded or runs past the function's end. After the first return, a call ends
 * the path: it never returns. */
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

/* Returns what the instruction ends. `before` is the frame step of the previous instruction.
 * `has_frame` is false until the function makes a frame: until then a return or a direct jump out
 * of the function ends a call. */
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

/* Sets `returned` to the end of the first return that ends a call. Returns false if there is no
 * such return, or if an instruction before it cannot be decoded. */
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

/* Visits all instructions in order and adds a row where the frame changes. Sets `*is_understood` if
 * all of these hold:
 *   * at least one instruction ends a call
 *   * no end is unknown, and every instruction can be decoded
 *   * the visit meets every instruction that follow() reached */
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

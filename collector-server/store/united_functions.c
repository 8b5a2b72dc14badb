/* Gives each function of a session one number. The device numbers functions again when a module
 * comes again, for example when a Java class is redefined back and forth. The functions in the
 * database are the same. Aggregates are kept by number and stored by function, so each function
 * must have one number. */
#include "collector-server/store/store_internal.h"
#include "proto/base/array.h"

#include <stdlib.h>

static bool is_same_module(const sj_module_range *one, const sj_module_range *other)
{
    return one->first_function_id == other->first_function_id;
}

/* Returns the lowest of the numbers that the device gave to the function with the number
 * `function`. */
static uint32_t first_number(const sj_session_state *state, uint32_t function)
{
    const sj_module_range *own = NULL;
    for (size_t i = 0; own == NULL && i < state->module_count; ++i) {
        const sj_module_range *range = &state->modules[i];
        own = function - range->first_function < range->function_count ? range : NULL;
    }
    for (size_t i = 0; own != NULL && i < state->module_count; ++i) {
        const sj_module_range *range = &state->modules[i];
        const uint32_t place = function - own->first_function;
        if (is_same_module(range, own) && place < range->function_count) {
            return range->first_function + place;
        }
    }
    return function;
}

static int compare_ids(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Checks whether a module of the session came again. Does nothing if the number of modules is
 * unchanged. */
static sj_status find_repeats(sj_session_state *state)
{
    if (state->united_modules == state->module_count) {
        return SJ_OK;
    }
    int64_t *ids = calloc(state->module_count, sizeof(*ids));
    if (ids == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < state->module_count; ++i) {
        ids[i] = state->modules[i].first_function_id;
    }
    qsort(ids, state->module_count, sizeof(*ids), compare_ids);
    state->has_repeated_modules = false;
    for (size_t i = 1; i < state->module_count; ++i) {
        state->has_repeated_modules |= ids[i] == ids[i - 1];
    }
    free(ids);
    state->united_modules = state->module_count;
    return SJ_OK;
}

sj_status sj_store_unite_frames(sj_session_state *state, sj_stack_frame *frames, size_t count)
{
    SJ_TRY(find_repeats(state));
    for (size_t i = 0; state->has_repeated_modules && i < count; ++i) {
        frames[i].function = first_number(state, frames[i].function);
    }
    return SJ_OK;
}

sj_status sj_store_unite_nodes(sj_session_state *state, sj_path_node *nodes, size_t count)
{
    SJ_TRY(find_repeats(state));
    for (size_t i = 0; state->has_repeated_modules && i < count; ++i) {
        nodes[i].function = first_number(state, nodes[i].function);
    }
    return SJ_OK;
}

sj_status sj_store_unite_functions(sj_store *store, sj_session_state *state, const sj_block *block,
                                   sj_block *united)
{
    *united = *block;
    SJ_TRY(find_repeats(state));
    if (!state->has_repeated_modules) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&store->united_functions, &store->united_function_capacity, 0,
                            block->function_count, sizeof(*store->united_functions)));
    SJ_TRY(sj_array_reserve(&store->united_frames, &store->united_frame_capacity, 0,
                            block->frame_count, sizeof(*store->united_frames)));
    for (size_t i = 0; i < block->function_count; ++i) {
        store->united_functions[i] = first_number(state, block->functions[i]);
    }
    for (size_t i = 0; i < block->frame_count; ++i) {
        store->united_frames[i] = block->frames[i];
    }
    united->functions = store->united_functions;
    united->frames = store->united_frames;
    return sj_store_unite_frames(state, store->united_frames, block->frame_count);
}

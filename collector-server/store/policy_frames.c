/* Stores frames about policies and their effects: decisions, triggers, stacks, filtered calls and
 * profiles. The sender numbers these frames within a session. A frame whose number is stored
 * already is a duplicate and changes nothing. */
#include "collector-server/store/store_internal.h"

#include "proto/base/units.h"
#include "proto/callgraph/profile.h"

#include <stdlib.h>
#include <zstd.h>

enum { PROFILE_MAX_BYTES = 64 << 20 };

sj_status sj_store_apply_policy(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Policy *policy = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, policy->session_id.data, policy->session_id.len, &state, error));
    SJ_TRY(SJ_RUN(&store->sql, policy_add, error, .session_id = state->session_id,
                  .number = policy->policy, .name = policy->name, .version = policy->version,
                  .mode = policy->mode, .budget_ppm = policy->budget_ppm,
                  .document = policy->document,
                  .not_applied = policy->not_applied[0] != '\0' ? policy->not_applied : "[]",
                  .applied_ns = sj_ticks_at_ns(&state->clock, policy->ticks)));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    return SJ_OK;
}

/* Finds the id of a function. Sets `*found` to `id`, or to NULL if `function` is 0 (the frame names
 * none). */
static sj_status find_function(const sj_session_state *state, uint32_t function, int64_t *id,
                               const int64_t **found, sj_error *error)
{
    *found = NULL;
    if (function == 0) {
        return SJ_OK;
    }
    if (!sj_session_function_id(state, function, id)) {
        return sj_fail(error, SJ_ENOTFOUND, "function %u is in no module that was sent", function);
    }
    *found = id;
    return SJ_OK;
}

sj_status sj_store_apply_decision(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Decision *decision = frame->message;
    sj_session_state *state = NULL;
    int64_t id = 0;
    const int64_t *function = NULL;
    SJ_TRY(sj_store_session(store, decision->session_id.data, decision->session_id.len, &state,
                            error));
    SJ_TRY(find_function(state, decision->function, &id, &function, error));
    SJ_TRY(SJ_RUN(
        &store->sql, decision_add, error, .session_id = state->session_id,
        .number = decision->decision, .at_ns = sj_ticks_at_ns(&state->clock, decision->ticks),
        .process_number = decision->process, .function_id = function, .what = decision->what,
        .reason = decision->reason, .calls = decision->calls, .total_calls = decision->total_calls,
        .overhead_ppm = decision->overhead_ppm, .budget_ppm = decision->budget_ppm));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    return SJ_OK;
}

sj_status sj_store_apply_trigger(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Trigger *trigger = frame->message;
    sj_session_state *state = NULL;
    const sj_slice child = {.data = trigger->child_session_id.data,
                            .size = trigger->child_session_id.len};
    SJ_TRY(
        sj_store_session(store, trigger->session_id.data, trigger->session_id.len, &state, error));
    const bool is_time =
        strcmp(trigger->event, "slow_call") == 0 || strcmp(trigger->event, "jank") == 0;
    const int64_t value = is_time ? sj_ticks_span_ns(&state->clock, trigger->value)
                                  : (int64_t)(trigger->value & INT64_MAX);
    const int64_t thread = (int64_t)(trigger->thread & INT64_MAX);
    SJ_TRY(SJ_RUN(&store->sql, trigger_add, error, .session_id = state->session_id,
                  .number = trigger->trigger,
                  .at_ns = sj_ticks_at_ns(&state->clock, trigger->ticks),
                  .thread_number = thread != 0 ? &thread : NULL, .place = trigger->place,
                  .event = trigger->event, .subject = trigger->subject, .value = value,
                  .actions = trigger->actions, .suppressed = trigger->suppressed,
                  .child_session_uuid = child.size != 0 ? child : (sj_slice){0}));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    return SJ_OK;
}

sj_status sj_store_apply_stack(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Stack *stack = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, stack->session_id.data, stack->session_id.len, &state, error));
    if (stack->n_function != stack->n_offset || stack->n_function != stack->n_module) {
        return sj_fail(error, SJ_ECORRUPT, "a stack of %s has %s",
                       SJ_COUNTED(stack->n_function, "frame"),
                       SJ_COUNTED(stack->n_offset, "offset"));
    }
    for (size_t i = 0; i < stack->n_function; i++) {
        const uint32_t module = stack->module[i];
        if (module > stack->n_path) {
            return sj_fail(error, SJ_ECORRUPT, "a stack names module %u of %zu", module,
                           stack->n_path);
        }
        SJ_TRY(SJ_RUN(
            &store->sql, stack_add, error, .session_id = state->session_id, .number = stack->stack,
            .level = i, .taken = stack->taken, .at_ns = sj_ticks_at_ns(&state->clock, stack->ticks),
            .process_number = stack->process, .tid = stack->tid, .thread_name = stack->thread_name,
            .cause = stack->cause, .function = stack->function[i],
            .module = module != 0 ? stack->path[module - 1] : "", .offset = stack->offset[i],
            .is_cut = stack->cut));
    }
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    return SJ_OK;
}

sj_status sj_store_apply_filtered(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Filtered *filtered = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, filtered->session_id.data, filtered->session_id.len, &state,
                            error));
    if (filtered->n_function != filtered->n_calls || filtered->n_function != filtered->n_ticks) {
        return sj_fail(error, SJ_ECORRUPT, "%s with %s",
                       SJ_COUNTED(filtered->n_function, "filtered function"),
                       SJ_COUNTED(filtered->n_calls, "count"));
    }
    SJ_TRY(SJ_RUN(&store->sql, filtered_frame_add, error, .session_id = state->session_id,
                  .number = filtered->filtered));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    for (size_t i = 0; i < filtered->n_function && !frame->is_duplicate; i++) {
        int64_t id = 0;
        const int64_t *function = NULL;
        SJ_TRY(find_function(state, filtered->function[i], &id, &function, error));
        SJ_TRY(SJ_RUN(&store->sql, filtered_add, error, .session_id = state->session_id,
                      .function_id = function, .reason = filtered->reason,
                      .calls = filtered->calls[i],
                      .total_ns = sj_ticks_span_ns(&state->clock, filtered->ticks[i])));
    }
    return SJ_OK;
}

static sj_status check_function(const sj_session_state *state, uint32_t function, sj_error *error)
{
    int64_t id;
    return sj_session_function_id(state, function, &id)
               ? SJ_OK
               : sj_fail(error, SJ_ENOTFOUND, "function %u is in no module that was sent",
                         function);
}

static sj_status check_functions(const sj_session_state *state, const sj_profile *profile,
                                 sj_error *error)
{
    for (uint32_t i = 0; i < profile->count; i++) {
        SJ_TRY(check_function(state, profile->nodes[i].function, error));
    }
    for (uint32_t i = 0; i < profile->open_count; i++) {
        SJ_TRY(check_function(state, profile->open_calls[i].function, error));
    }
    return SJ_OK;
}

static sj_status decompress(sj_slice payload, uint32_t raw_bytes, uint8_t **raw, sj_error *error)
{
    uint8_t *made = raw_bytes <= PROFILE_MAX_BYTES ? malloc((size_t)raw_bytes + 1) : NULL;
    if (made == NULL || ZSTD_decompress(made, raw_bytes, payload.data, payload.size) != raw_bytes) {
        free(made);
        return sj_fail(error, SJ_ECORRUPT, "a profile cannot be decompressed");
    }
    *raw = made;
    return SJ_OK;
}

static sj_status add_nodes(sj_store *store, sj_session_state *state, const sj_profile *profile,
                           sj_error *error)
{
    SJ_TRY(sj_store_rebuild_aggregates(store, state, error));
    SJ_TRY(sj_session_load_graph(&store->sql, state, error));
    SJ_TRY(sj_store_unite_nodes(state, profile->nodes, profile->count));
    const sj_status status = sj_callgraph_merge(state->graph, profile->nodes, profile->count);
    if (status == SJ_ELIMIT || status == SJ_ENOMEM) {
        sj_fail(error, status, "a profile cannot be added: %s",
                status == SJ_ELIMIT ? "too many call paths" : "out of memory");
    }
    SJ_TRY(status);
    return sj_store_fold_rare_paths(store, state, error);
}

static sj_status merge(sj_store *store, sj_session_state *state, sj_slice bytes, sj_error *error)
{
    sj_profile profile;
    sj_status status = sj_profile_decode(bytes, &profile);
    if (status != SJ_OK) {
        return sj_fail(error, status, "a profile cannot be read");
    }
    status = check_functions(state, &profile, error);
    if (status == SJ_OK) {
        status = sj_store_add_open_calls(store, state, &profile, error);
    }
    if (status == SJ_OK) {
        status = add_nodes(store, state, &profile, error);
        /* The graph may contain part of the profile, whose rows the caller rolls back. */
        if (status != SJ_OK) {
            sj_store_invalidate(state);
        }
    }
    sj_profile_deinit(&profile);
    return status;
}

sj_status sj_store_apply_profile(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Profile *profile = frame->message;
    sj_session_state *state = NULL;
    uint8_t *raw = NULL;
    SJ_TRY(
        sj_store_session(store, profile->session_id.data, profile->session_id.len, &state, error));
    if (profile->calls > INT64_MAX / 2 || profile->events > INT64_MAX / 2) {
        return sj_fail(error, SJ_ECORRUPT, "a profile's counts make no sense");
    }
    SJ_TRY(SJ_RUN(
        &store->sql, profile_add, error, .session_id = state->session_id,
        .number = profile->profile, .start_ns = sj_ticks_at_ns(&state->clock, profile->first_ticks),
        .end_ns = sj_ticks_at_ns(&state->clock, profile->last_ticks), .calls = profile->calls,
        .events = profile->events, .bytes = (uint64_t)frame->payload.size));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    if (frame->is_duplicate) {
        return SJ_OK;
    }
    SJ_TRY(decompress(frame->payload, profile->raw_bytes, &raw, error));
    const sj_slice bytes = {.data = raw, .size = profile->raw_bytes};
    const sj_status status = merge(store, state, bytes, error);
    free(raw);
    SJ_TRY(status);
    state->totals.calls += profile->calls;
    state->totals.events += profile->events;
    state->totals.bytes += frame->payload.size;
    state->dirty = true;
    /* Write the aggregates at once, because they are the only copy of the profile: no block
     * contains its calls. If the write fails, the frame is refused. */
    const sj_status written = sj_store_write_session(store, state, error);
    if (written != SJ_OK) {
        sj_store_invalidate(state);
        return written;
    }
    store->counters.calls += profile->calls;
    return SJ_OK;
}

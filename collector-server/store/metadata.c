/* Handles metadata frames. Each is an idempotent upsert by the identity in its message. */
#include "agent/abi/skip_text.h"
#include "collector-server/store/enum_text.h"
#include "collector-server/store/store_internal.h"
#include "collector-server/store/tags.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <string.h>

enum { THREAD_MEMORY = 4 }; /* counters per thread, as in sojourn.proto */

static sj_slice slice_of(const ProtobufCBinaryData *data)
{
    return (sj_slice){.data = data->data, .size = data->len};
}

static sj_status put_device(sj_store *store, const sj_slice *uuid, const Sojourn__Hello *hello,
                            sj_error *error)
{
    if (uuid->size != SJ_DEVICE_ID_BYTES) {
        return sj_fail(error, SJ_ECORRUPT, "a device id has %zu bytes, not 16", uuid->size);
    }
    char *tags = sj_tags_json(hello->tags, hello->n_tags);
    if (tags == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for tags");
    }
    const sj_status status =
        SJ_RUN(&store->sql, device_hello, error, .uuid = *uuid, .name = hello->device_name,
               .model = hello->model, .os = hello->os, .machine = hello->machine,
               .agent_version = hello->product_version, .tags = tags,
               .now_realtime_ns = sj_store_realtime_ns(), .build = hello->build);
    sqlite3_free(tags);
    return status;
}

/* Refuses a frame that names another device than its sender. */
static sj_status check_device(const sj_store *store, const sj_slice *uuid, sj_error *error)
{
    return sj_store_is_own_device(store, uuid->data, uuid->size)
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "the frame names another device than its sender");
}

sj_status sj_store_apply_hello(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Hello *hello = frame->message;
    const sj_slice uuid = slice_of(&hello->device_id);
    SJ_TRY(check_device(store, &uuid, error));
    return put_device(store, &uuid, hello, error);
}

/* Finds or creates a device. A session may arrive before its device's hello, because frames are
 * sent again. */
static sj_status find_device(sj_store *store, const sj_slice *uuid, int64_t *device_id,
                             sj_error *error)
{
    sj_status status = SJ_GET(&store->sql, device_find, device_id, error, .uuid = *uuid);
    if (status != SJ_ENOTFOUND) {
        return status;
    }
    Sojourn__Hello unknown = SOJOURN__HELLO__INIT;
    SJ_TRY(put_device(store, uuid, &unknown, error));
    return SJ_GET(&store->sql, device_find, device_id, error, .uuid = *uuid);
}

/* Finds the parent, a session of the same device. An unknown parent is left out. */
static sj_status find_parent(sj_store *store, const ProtobufCBinaryData *id, int64_t *parent_id,
                             bool *has_parent, sj_error *error)
{
    sj_session_state *parent = NULL;
    *has_parent = false;
    if (id->len != SJ_SESSION_ID_BYTES) {
        return SJ_OK;
    }
    const sj_sender *sender = store->sender;
    store->sender = NULL; /* the parent has a secret of its own */
    const sj_status status = sj_store_session(store, id->data, id->len, &parent, error);
    store->sender = sender;
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    if (!sj_store_is_own_device(store, parent->owner.device, sizeof(parent->owner.device))) {
        store->foreign_session = parent->session_id;
        return sj_fail(error, SJ_EINVAL, "the parent of a session is another device's");
    }
    *parent_id = parent->session_id;
    *has_parent = true;
    return SJ_OK;
}

/* Refuses a session that was removed or is being removed, so that a device which announces it again
 * does not restore it. A session that was imported since has a row and is found before this
 * check. */
static sj_status check_removals(sj_store *store, const ProtobufCBinaryData *id, sj_error *error)
{
    const sj_slice uuid = slice_of(id);
    int64_t removal = 0;
    const sj_status status =
        SJ_GET(&store->sql, session_was_removed, &removal, error, .session_uuid = uuid);
    if (status == SJ_OK) {
        return sj_fail(error, SJ_EINVAL, "the session was removed from the collector's database");
    }
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

/* Refuses a session that another sender began or that was removed, and a new one beyond the
 * sender's quota. */
static sj_status check_session(sj_store *store, const Sojourn__Session *session, sj_error *error)
{
    const sj_slice device = slice_of(&session->device_id);
    sj_session_state *known = NULL;
    SJ_TRY(check_device(store, &device, error));
    const sj_status status =
        sj_store_session(store, session->session_id.data, session->session_id.len, &known, error);
    if (status != SJ_ENOTFOUND) {
        return status;
    }
    SJ_TRY(check_removals(store, &session->session_id, error));
    store->begins_session = true;
    return sj_device_quotas_check_session(&store->quotas, error);
}

static sj_slice secret_of(const sj_sender *sender)
{
    static const uint8_t none[SJ_SENDER_SECRET_BYTES];
    return sender != NULL && memcmp(sender->secret, none, sizeof(none)) != 0
               ? (sj_slice){.data = sender->secret, .size = sizeof(sender->secret)}
               : (sj_slice){0};
}

sj_status sj_store_apply_session(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Session *session = frame->message;
    const sj_slice uuid = slice_of(&session->session_id);
    const sj_slice device = slice_of(&session->device_id);
    const sj_slice secret = secret_of(store->sender);
    const sj_tick_clock clock = {.started_ticks = session->started_ticks,
                                 .numerator = session->tick_ns_numerator,
                                 .denominator = session->tick_ns_denominator};
    int64_t device_id = 0;
    int64_t parent_id = 0;
    bool has_parent = false;
    if (uuid.size != SJ_SESSION_ID_BYTES || !sj_tick_clock_is_sound(&clock)) {
        return sj_fail(error, SJ_ECORRUPT, "a session's id or clock makes no sense");
    }
    SJ_TRY(check_session(store, session, error));
    SJ_TRY(find_parent(store, &session->parent_session_id, &parent_id, &has_parent, error));
    SJ_TRY(find_device(store, &device, &device_id, error));
    char *tags = sj_tags_json(session->tags, session->n_tags);
    if (tags == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for tags");
    }
    const sj_status status = SJ_RUN(
        &store->sql, session_put, error, .uuid = uuid, .device_id = device_id,
        .name = session->name, .command = session->command, .mode = session->mode,
        .started_realtime_ns = session->started_realtime_ns,
        .started_ticks = session->started_ticks, .tick_ns_numerator = session->tick_ns_numerator,
        .tick_ns_denominator = session->tick_ns_denominator, .clock_step = session->clock_step,
        .clock_name = session->clock_name, .parent_session_id = has_parent ? &parent_id : NULL,
        .cause = session->cause, .policy_version = session->policy_version, .tags = tags,
        .secret_digest = secret, .received_realtime_ns = sj_store_realtime_ns());
    sqlite3_free(tags);
    return status;
}

sj_status sj_store_apply_process(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Process *process = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(
        sj_store_session(store, process->session_id.data, process->session_id.len, &state, error));
    const sj_tick_clock *clock = &state->clock;
    const int64_t ended = sj_ticks_at_ns(clock, process->ended_ticks);
    const int64_t code = process->exit_code;
    const int64_t signal = process->exit_signal;
    return SJ_RUN(&store->sql, process_put, error, .session_id = state->session_id,
                  .number = process->process, .pid = process->pid,
                  .parent_number = process->parent_process, .executable = process->executable,
                  .command = process->command, .how = process->how,
                  .started_ns = sj_ticks_at_ns(clock, process->started_ticks),
                  .ended_ns = process->ended_ticks != 0 ? &ended : NULL,
                  .exit_code = process->has_exit && signal == 0 ? &code : NULL,
                  .exit_signal = process->has_exit && signal != 0 ? &signal : NULL,
                  .core_dumped = process->core_dumped,
                  .disarm_reason = sj_text_of_disarming(process->disarm_reason));
}

sj_status sj_store_apply_thread(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Thread *thread = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, thread->session_id.data, thread->session_id.len, &state, error));
    if (thread->n_stream > SJ_MOST_NEW_STREAMS) {
        return sj_fail(error, SJ_ELIMIT, "a thread has more than %d streams", SJ_MOST_NEW_STREAMS);
    }
    const sj_tick_clock *clock = &state->clock;
    const int64_t ended = sj_ticks_at_ns(clock, thread->ended_ticks);
    int64_t thread_id = 0;
    uint64_t memory[THREAD_MEMORY] = {0};
    for (size_t i = 0; i < THREAD_MEMORY && i < thread->n_memory_and_one; i++) {
        memory[i] = thread->memory_and_one[i];
    }
    SJ_TRY(SJ_GET(&store->sql, thread_put, &thread_id, error, .session_id = state->session_id,
                  .number = thread->thread, .process_number = thread->process, .tid = thread->tid,
                  .name = thread->name, .is_main = thread->is_main,
                  .started_ns = sj_ticks_at_ns(clock, thread->started_ticks),
                  .ended_ns = thread->ended_ticks != 0 ? &ended : NULL,
                  .dropped_calls = thread->dropped_calls, .dropped_events = thread->dropped_events,
                  .waited_ns = sj_ticks_span_ns(clock, thread->waited_ticks),
                  .cpu_ns = thread->cpu_ns_and_one,
                  .allocated_bytes = thread->allocated_bytes_and_one,
                  .malloc_allocations = memory[0], .malloc_bytes = memory[1],
                  .malloc_frees = memory[2], .malloc_freed_bytes = memory[3]));
    for (size_t i = 0; i < thread->n_stream; ++i) {
        sj_stream_state *stream = NULL;
        SJ_TRY(sj_session_add_stream(&store->sql, state, thread->stream[i], &stream, error));
        SJ_TRY(SJ_RUN(&store->sql, stream_link, error, .session_id = state->session_id,
                      .number = thread->stream[i], .thread_id = thread_id, .own_stack = (i == 0)));
    }
    return SJ_OK;
}

sj_status sj_store_apply_clock_pairs(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__ClockPairs *pairs = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, pairs->session_id.data, pairs->session_id.len, &state, error));
    for (size_t i = 0; i < pairs->n_pair; ++i) {
        const Sojourn__ClockPair *pair = pairs->pair[i];
        SJ_TRY(SJ_RUN(&store->sql, clock_add, error, .session_id = state->session_id,
                      .ticks = pair->ticks, .boot_id = pairs->boot_id,
                      .monotonic_ns = pair->monotonic_ns, .boottime_ns = pair->boottime_ns,
                      .realtime_ns = pair->realtime_ns, .uncertainty_ns = pair->uncertainty_ns));
    }
    return SJ_OK;
}

sj_status sj_store_apply_mark(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Mark *mark = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, mark->session_id.data, mark->session_id.len, &state, error));
    SJ_TRY(SJ_RUN(&store->sql, mark_add, error, .session_id = state->session_id,
                  .number = mark->mark, .name = mark->name, .is_end = mark->end,
                  .at_ns = sj_ticks_at_ns(&state->clock, mark->ticks),
                  .thread_number = mark->thread, .source = mark->source));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    return SJ_OK;
}

sj_status sj_store_apply_gap(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Gap *gap = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, gap->session_id.data, gap->session_id.len, &state, error));
    if (gap->calls > INT64_MAX / 2 || gap->events > INT64_MAX / 2 || gap->gap > INT64_MAX) {
        return sj_fail(error, SJ_ECORRUPT, "a gap's counts make no sense");
    }
    sj_stream_state *stream = NULL;
    if (gap->stream != 0) {
        SJ_TRY(sj_session_add_stream(&store->sql, state, gap->stream, &stream, error));
    }
    const int64_t thread = (int64_t)(gap->thread & INT64_MAX);
    const int64_t number = (int64_t)gap->gap;
    SJ_TRY(SJ_RUN(&store->sql, gap_add, error, .session_id = state->session_id,
                  .stream_id = stream != NULL ? &stream->stream_id : NULL,
                  .thread_number = gap->thread != 0 ? &thread : NULL, .number = &number,
                  .reason = sj_text_of_gap_reason(gap->reason), .calls = gap->calls,
                  .events = gap->events,
                  .start_ns = sj_ticks_at_ns(&state->clock, gap->start_ticks),
                  .end_ns = sj_ticks_at_ns(&state->clock, gap->end_ticks)));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    if (frame->is_duplicate) {
        return SJ_OK;
    }
    /* Add to the row at once, because no block holds the gap. The state in memory adds to the
     * totals that it read from the row. */
    SJ_TRY(SJ_RUN(&store->sql, session_lost, error, .session_id = state->session_id,
                  .calls = gap->calls, .events = gap->events));
    state->totals.lost_calls += gap->calls;
    state->totals.lost_events += gap->events;
    return SJ_OK;
}

sj_status sj_store_apply_session_end(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__SessionEnd *end = frame->message;
    static const char *const words[] = {"completed", "interrupted", "crashed", "killed", "lost"};
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, end->session_id.data, end->session_id.len, &state, error));
    const char *how = NULL;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
        how = strcmp(words[i], end->how) == 0 ? words[i] : how;
    }
    if (how == NULL) {
        return sj_fail(error, SJ_ECORRUPT, "a session cannot end as \"%.40s\"", end->how);
    }
    uint32_t ended = 0; /* number of blocks stored */
    SJ_TRY(sj_store_end_streams(store, state, &ended, error));
    SJ_TRY(sj_store_session(store, end->session_id.data, end->session_id.len, &state, error));
    /* the next commit counts the calls that are missing */
    state->dirty = state->write_now = state->has_ended = true;
    return SJ_RUN(&store->sql, session_end, error, .session_id = state->session_id, .state = how,
                  .ended_ticks = end->ended_ticks, .ended_realtime_ns = end->ended_realtime_ns,
                  .sent_records = end->records, .sent_calls = end->calls,
                  .device_lost_calls = end->lost_calls, .device_lost_events = end->lost_events,
                  .sent_blocks = end->blocks + ended, .traced_cpu_ns = end->traced_cpu_ns,
                  .estimated_probe_ns = end->estimated_probe_ns);
}

sj_status sj_store_apply_mapping(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Mapping *mapping = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(
        sj_store_session(store, mapping->session_id.data, mapping->session_id.len, &state, error));
    const int64_t unloaded = sj_ticks_at_ns(&state->clock, mapping->unloaded_ticks);
    return SJ_RUN(&store->sql, mapping_put, error, .session_id = state->session_id,
                  .process_number = mapping->process, .module_number = mapping->module,
                  .bias = mapping->bias,
                  .loaded_ns = sj_ticks_at_ns(&state->clock, mapping->loaded_ticks),
                  .unloaded_ns = mapping->unloaded_ticks != 0 ? &unloaded : NULL);
}

sj_status sj_store_apply_unhooked(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Unhooked *unhooked = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, unhooked->session_id.data, unhooked->session_id.len, &state,
                            error));
    if (unhooked->n_function != unhooked->n_skip) {
        return sj_fail(error, SJ_ECORRUPT, "%s with %s",
                       SJ_COUNTED(unhooked->n_function, "unhooked function"),
                       SJ_COUNTED(unhooked->n_skip, "reason"));
    }
    for (size_t i = 0; i < unhooked->n_function; ++i) {
        SJ_TRY(SJ_RUN(&store->sql, refused_add, error, .session_id = state->session_id,
                      .process_number = unhooked->process, .function_id = unhooked->function[i],
                      .reason = sj_skip_text(unhooked->skip[i])));
    }
    return SJ_OK;
}

sj_status sj_store_apply_device_clock(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__DeviceClock *clock = frame->message;
    const sj_slice device = slice_of(&clock->device_id);
    int64_t device_id = 0;
    if (clock->boottime_ns > INT64_MAX / 4 || clock->uncertainty_ns > INT64_MAX / 4 ||
        clock->offset_ns > INT64_MAX / 4 || clock->offset_ns < -INT64_MAX / 4) {
        return sj_fail(error, SJ_ECORRUPT, "a device's clock makes no sense");
    }
    SJ_TRY(check_device(store, &device, error));
    SJ_TRY(find_device(store, &device, &device_id, error));
    SJ_TRY(SJ_RUN(&store->sql, device_clock_add, error, .device_id = device_id,
                  .boot_id = clock->boot_id, .boottime_ns = clock->boottime_ns,
                  .offset_ns = clock->offset_ns, .uncertainty_ns = clock->uncertainty_ns));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    return SJ_OK;
}

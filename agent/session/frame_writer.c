#include "agent/session/frame_writer.h"

#include "agent/policy/redaction.h"
#include "agent/session/redacted_frames.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Blocks are refused this far below the size limit, so that metadata frames still fit. */
enum { CONTROL_RESERVE_BYTES = 64 * 1024 };

typedef struct waiting_frame {
    struct waiting_frame *next;
    size_t size;
    uint8_t bytes[];
} waiting_frame;

/* A metadata frame that child sessions start with. */
typedef struct kept_frame {
    struct kept_frame *next;
    sj_frame_type type;
    size_t header_bytes;
    size_t payload_bytes;
    uint8_t bytes[];
} kept_frame;

struct sj_frame_writer {
    sj_frame_writer_options options;
    pthread_mutex_t mutex; /* guards the members below */
    sj_frame_writer_counters counters;
    waiting_frame *first_waiting;
    waiting_frame **last_waiting;
    bool keeps_threads;
    uint64_t next_gap;
    uint64_t next_mark;
    uint32_t next_report;
    uint64_t next_profile;
    uint64_t next_trigger;
    uint64_t next_filtered;
    uint64_t resumed_blocks;
    uint64_t resumed_gaps;
    kept_frame *first_kept;
    kept_frame **last_kept;
    uint8_t *header; /* SJ_FRAME_MAX_HEADER_BYTES */
    uint8_t *frame;  /* SJ_FRAME_MAX_BYTES */
};

sj_status sj_frame_writer_new(const sj_frame_writer_options *options, sj_frame_writer **writer)
{
    sj_frame_writer *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->options = *options;
    made->last_waiting = &made->first_waiting;
    made->last_kept = &made->first_kept;
    made->header = malloc(SJ_FRAME_MAX_HEADER_BYTES);
    made->frame = malloc(SJ_FRAME_MAX_BYTES);
    pthread_mutex_init(&made->mutex, NULL);
    if (made->header == NULL || made->frame == NULL) {
        sj_frame_writer_free(made);
        return SJ_ENOMEM;
    }
    *writer = made;
    return SJ_OK;
}

void sj_frame_writer_free(sj_frame_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    while (writer->first_waiting != NULL) {
        waiting_frame *gone = writer->first_waiting;
        writer->first_waiting = gone->next;
        free(gone);
    }
    while (writer->first_kept != NULL) {
        kept_frame *gone = writer->first_kept;
        writer->first_kept = gone->next;
        free(gone);
    }
    pthread_mutex_destroy(&writer->mutex);
    free(writer->header);
    free(writer->frame);
    free(writer);
}

void sj_frame_writer_resume(sj_frame_writer *writer)
{
    const sj_journal_sums sums =
        sj_journal_recover(writer->options.journal, sj_spool_end(writer->options.spool));
    writer->next_gap = writer->resumed_gaps = sums.next_gap;
    writer->next_profile = sums.next_profile;
    writer->counters.blocks = writer->resumed_blocks = sums.blocks;
    writer->counters.block_calls = sums.block_calls;
    writer->counters.block_events = sums.block_events;
    writer->counters.block_lost_calls = sums.block_lost_calls;
    writer->counters.block_lost_events = sums.block_lost_events;
    writer->counters.gap_calls = sums.gap_calls;
    writer->counters.gap_events = sums.gap_events;
}

uint64_t sj_frame_writer_resumed_blocks(const sj_frame_writer *writer)
{
    return writer->resumed_blocks;
}

uint64_t sj_frame_writer_resumed_gaps(const sj_frame_writer *writer)
{
    return writer->resumed_gaps;
}

uint64_t sj_frame_writer_next_block(sj_frame_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    const uint64_t number = writer->counters.blocks + 1;
    pthread_mutex_unlock(&writer->mutex);
    return number;
}

uint64_t sj_frame_writer_next_gap(sj_frame_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    const uint64_t number = writer->next_gap + 1;
    pthread_mutex_unlock(&writer->mutex);
    return number;
}

/* Writes to the journal the sums that hold after the next frame is appended. */
static void begin_journal(const sj_frame_writer *writer, const sj_frame_writer_counters *after)
{
    if (writer->options.journal == NULL) {
        return;
    }
    const sj_journal_sums sums = {.next_gap = writer->next_gap,
                                  .blocks = after->blocks,
                                  .block_calls = after->block_calls,
                                  .block_events = after->block_events,
                                  .block_lost_calls = after->block_lost_calls,
                                  .block_lost_events = after->block_lost_events,
                                  .gap_calls = after->gap_calls,
                                  .gap_events = after->gap_events,
                                  .next_profile = writer->next_profile};
    sj_journal_begin(writer->options.journal, &sums, sj_spool_end(writer->options.spool));
}

static void commit_journal(const sj_frame_writer *writer, bool appended)
{
    if (writer->options.journal != NULL) {
        sj_journal_commit(writer->options.journal, appended);
    }
}

static void count_frame(sj_frame_writer *writer, size_t size)
{
    writer->counters.frames++;
    writer->counters.bytes += size;
    if (writer->options.uplink != NULL) {
        sj_uplink_wake(writer->options.uplink);
    }
}

static void retry_waiting(sj_frame_writer *writer)
{
    while (writer->first_waiting != NULL) {
        waiting_frame *first = writer->first_waiting;
        const sj_slice frame = {.data = first->bytes, .size = first->size};
        if (sj_spool_append(writer->options.spool, frame, NULL) != SJ_OK) {
            return;
        }
        count_frame(writer, first->size);
        writer->counters.waiting_frames--;
        writer->first_waiting = first->next;
        if (writer->first_waiting == NULL) {
            writer->last_waiting = &writer->first_waiting;
        }
        free(first);
    }
}

static sj_status keep_waiting(sj_frame_writer *writer, size_t size)
{
    waiting_frame *kept = malloc(sizeof(*kept) + size);
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    kept->next = NULL;
    kept->size = size;
    memcpy(kept->bytes, writer->frame, size);
    *writer->last_waiting = kept;
    writer->last_waiting = &kept->next;
    writer->counters.waiting_frames++;
    return SJ_OK;
}

static sj_status build_frame(sj_frame_writer *writer, sj_frame_type type,
                             const ProtobufCMessage *message, sj_slice payload, size_t *size)
{
    const size_t header_bytes = protobuf_c_message_get_packed_size(message);
    if (header_bytes > SJ_FRAME_MAX_HEADER_BYTES) {
        return SJ_ELIMIT;
    }
    protobuf_c_message_pack(message, writer->header);
    const sj_slice header = {.data = writer->header, .size = header_bytes};
    return sj_frame_write((uint16_t)type, header, payload, writer->frame, SJ_FRAME_MAX_BYTES, size);
}

static bool is_for_children(sj_frame_type type)
{
    return type == SJ_FRAME_SESSION || type == SJ_FRAME_PROCESS || type == SJ_FRAME_MODULE ||
           type == SJ_FRAME_THREAD || type == SJ_FRAME_MAPPING || type == SJ_FRAME_UNHOOKED;
}

static sj_status remember_control(sj_frame_writer *writer, sj_frame_type type,
                                  const uint8_t *header, size_t header_bytes, sj_slice payload)
{
    kept_frame *kept = malloc(sizeof(*kept) + header_bytes + payload.size);
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    *kept = (kept_frame){.type = type, .header_bytes = header_bytes, .payload_bytes = payload.size};
    memcpy(kept->bytes, header, header_bytes);
    if (payload.size != 0) {
        memcpy(kept->bytes + header_bytes, payload.data, payload.size);
    }
    *writer->last_kept = kept;
    writer->last_kept = &kept->next;
    return SJ_OK;
}

/* Copies the current frame: writer->header and the payload. */
static sj_status keep_control(sj_frame_writer *writer, sj_frame_type type, size_t header_bytes,
                              sj_slice payload)
{
    const sj_slice header = {.data = writer->header, .size = header_bytes};
    /* The process that finishes a killed recorder's session reads the stored frames. */
    if (writer->options.control_store != NULL && writer->keeps_threads) {
        sj_metadata_store_add(writer->options.control_store, type, header, payload);
    }
    return remember_control(writer, type, writer->header, header_bytes, payload);
}

/* Removes the kept frames for which `is_dropped` returns true. */
static void drop_kept(sj_frame_writer *writer, bool (*is_dropped)(const kept_frame *, const void *),
                      const void *context)
{
    kept_frame **at = &writer->first_kept;
    while (*at != NULL) {
        kept_frame *kept = *at;
        if (is_dropped(kept, context)) {
            *at = kept->next;
            free(kept);
        } else {
            at = &kept->next;
        }
    }
    writer->last_kept = at;
}

static bool is_thread(const kept_frame *kept, const void *context)
{
    (void)context;
    return kept->type == SJ_FRAME_THREAD;
}

/* True for a module that is reported again because other functions of it are hooked. */
static bool is_same_module(const kept_frame *kept, const void *context)
{
    const Sojourn__Module *module = context;
    if (kept->type != SJ_FRAME_MODULE) {
        return false;
    }
    Sojourn__Module *other = sojourn__module__unpack(NULL, kept->header_bytes, kept->bytes);
    const bool is_same =
        other != NULL && other->module == module->module && other->part_first == module->part_first;
    sojourn__module__free_unpacked(other, NULL);
    return is_same;
}

/* Rewrites the store with all kept frames. */
static void store_kept(const sj_frame_writer *writer)
{
    sj_metadata_store *store = writer->options.control_store;
    sj_metadata_store_clear(store);
    for (const kept_frame *kept = writer->first_kept; kept != NULL; kept = kept->next) {
        const sj_slice header = {.data = kept->bytes, .size = kept->header_bytes};
        const sj_slice payload = {.data = kept->bytes + kept->header_bytes,
                                  .size = kept->payload_bytes};
        sj_metadata_store_add(store, kept->type, header, payload);
    }
}

void sj_frame_writer_keep_threads(sj_frame_writer *writer, bool on)
{
    pthread_mutex_lock(&writer->mutex);
    writer->keeps_threads = on;
    if (!on) {
        drop_kept(writer, is_thread, NULL);
    } else if (writer->options.control_store != NULL) {
        store_kept(writer);
    }
    pthread_mutex_unlock(&writer->mutex);
}

sj_status sj_frame_writer_remember(sj_frame_writer *writer, sj_frame_type type, sj_slice header,
                                   sj_slice payload)
{
    pthread_mutex_lock(&writer->mutex);
    if (type == SJ_FRAME_MODULE) {
        Sojourn__Module *module = sojourn__module__unpack(NULL, header.size, header.data);
        if (module != NULL) {
            drop_kept(writer, is_same_module, module);
            sojourn__module__free_unpacked(module, NULL);
        }
    }
    const sj_status status = remember_control(writer, type, header.data, header.size, payload);
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

static sj_status send_built(sj_frame_writer *writer, size_t size)
{
    /* If frames are waiting, a new one waits, too, so that their order is kept. */
    if (writer->first_waiting == NULL) {
        const sj_slice frame = {.data = writer->frame, .size = size};
        const sj_status status = sj_spool_append(writer->options.spool, frame, NULL);
        if (status == SJ_OK) {
            count_frame(writer, size);
        }
        if (status != SJ_EFULL) {
            return status;
        }
    }
    return keep_waiting(writer, size);
}

/* Sends one frame. Appends no other frame, so that the journal can tell whether this frame is in
 * the spool. */
static sj_status send_alone(sj_frame_writer *writer, sj_frame_type type,
                            const ProtobufCMessage *message, sj_slice payload)
{
    size_t size = 0;
    SJ_TRY(build_frame(writer, type, message, payload, &size));
    if (is_for_children(type) && (type != SJ_FRAME_THREAD || writer->keeps_threads)) {
        if (type == SJ_FRAME_MODULE) {
            drop_kept(writer, is_same_module, message);
        }
        SJ_TRY(keep_control(writer, type, protobuf_c_message_get_packed_size(message), payload));
    }
    return send_built(writer, size);
}

static sj_status send_locked(sj_frame_writer *writer, sj_frame_type type,
                             const ProtobufCMessage *message, sj_slice payload)
{
    retry_waiting(writer);
    return send_alone(writer, type, message, payload);
}

sj_status sj_frame_writer_send(sj_frame_writer *writer, sj_frame_type type,
                               const ProtobufCMessage *message, sj_slice payload)
{
    sj_redacted_message redacted;
    const ProtobufCMessage *sent = NULL;
    sj_status status =
        sj_redacted_message_make(&redacted, writer->options.redaction, type, message, &sent);
    if (status == SJ_OK) {
        pthread_mutex_lock(&writer->mutex);
        status = send_locked(writer, type, sent, payload);
        pthread_mutex_unlock(&writer->mutex);
    }
    sj_redacted_message_deinit(&redacted);
    return status;
}

static bool is_beyond_limit(sj_frame_writer *writer, size_t block_bytes)
{
    const uint64_t limit = writer->options.max_bytes;
    if (limit == 0) {
        return false;
    }
    const uint64_t used = writer->counters.bytes + CONTROL_RESERVE_BYTES + block_bytes;
    if (used > limit) {
        writer->counters.reached_max_bytes = true;
    }
    /* After the limit is reached, smaller blocks are refused, too: the recording ends at one point
     * instead of having holes. */
    return writer->counters.reached_max_bytes;
}

static sj_status append_block(sj_frame_writer *writer, const sj_block_header *header,
                              sj_slice bytes, const sj_frame_writer_counters *after)
{
    Sojourn__BlockInfo info = SOJOURN__BLOCK_INFO__INIT;
    size_t size = 0;
    if (writer->first_waiting != NULL || is_beyond_limit(writer, bytes.size)) {
        return SJ_EFULL;
    }
    info.session_id = sj_frame_writer_session_bytes(writer);
    info.stream = header->stream;
    info.first_event = header->first_event;
    info.event_count = header->event_count;
    SJ_TRY(build_frame(writer, SJ_FRAME_BLOCK, &info.base, bytes, &size));
    const sj_slice frame = {.data = writer->frame, .size = size};
    begin_journal(writer, after);
    const sj_status status = sj_spool_append(writer->options.spool, frame, NULL);
    commit_journal(writer, status == SJ_OK);
    if (status == SJ_OK) {
        const bool reached = writer->counters.reached_max_bytes;
        writer->counters = *after;
        writer->counters.reached_max_bytes = reached;
        count_frame(writer, size);
    }
    return status;
}

sj_status sj_frame_writer_block(sj_frame_writer *writer, const sj_block_header *header,
                                sj_slice bytes)
{
    pthread_mutex_lock(&writer->mutex);
    retry_waiting(writer);
    sj_frame_writer_counters after = writer->counters;
    after.blocks++;
    after.block_bytes += bytes.size;
    after.block_calls += header->call_count;
    after.block_events += header->event_count;
    after.block_lost_calls += header->lost_calls;
    after.block_lost_events += header->lost_events;
    const sj_status status = append_block(writer, header, bytes, &after);
    if (status != SJ_OK) {
        writer->counters.refused_blocks++;
        writer->counters.refused_calls += header->call_count;
    }
    pthread_mutex_unlock(&writer->mutex);
    if (status == SJ_OK && writer->options.function_log != NULL) {
        sj_function_log_block(writer->options.function_log, bytes);
    }
    return status;
}

sj_status sj_frame_writer_gap(sj_frame_writer *writer, sj_gap_reason reason, uint64_t thread,
                              uint32_t stream, uint64_t calls, uint64_t events,
                              uint64_t start_ticks, uint64_t end_ticks)
{
    Sojourn__Gap gap = SOJOURN__GAP__INIT;
    const sj_slice nothing = {0};
    gap.session_id = sj_frame_writer_session_bytes(writer);
    gap.thread = thread;
    gap.stream = stream;
    gap.reason = (uint32_t)reason;
    gap.calls = calls;
    gap.events = events;
    gap.start_ticks = start_ticks;
    gap.end_ticks = end_ticks;
    pthread_mutex_lock(&writer->mutex);
    retry_waiting(writer);
    gap.gap = ++writer->next_gap;
    sj_frame_writer_counters after = writer->counters;
    after.gap_calls += calls;
    after.gap_events += events;
    begin_journal(writer, &after);
    const sj_status status = send_alone(writer, SJ_FRAME_GAP, &gap.base, nothing);
    commit_journal(writer, status == SJ_OK);
    if (status == SJ_OK) {
        writer->counters.gap_calls += calls;
        writer->counters.gap_events += events;
    }
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

/* Returns the number of the next mark. The journal counts marks, so that the process that finishes
 * a killed recorder's session continues the numbers. */
static uint64_t next_mark(sj_frame_writer *writer)
{
    if (writer->options.journal != NULL) {
        return atomic_fetch_add(&writer->options.journal->data->next_mark, 1) + 1;
    }
    return ++writer->next_mark;
}

static uint32_t next_report(sj_frame_writer *writer)
{
    if (writer->options.journal != NULL) {
        return atomic_fetch_add(&writer->options.journal->data->next_report, 1) + 1;
    }
    return ++writer->next_report;
}

static bool is_report_name(const char *name)
{
    const size_t length = strnlen(name, SJ_REPORT_NAME_BYTES + 1);
    return length > 0 && length <= SJ_REPORT_NAME_BYTES;
}

/* Appends a report to the spool; returns SJ_EFULL if the spool is full. Unlike metadata, reports do
 * not wait in memory: no other frame needs them, and there may be many. */
static sj_status append_report(sj_frame_writer *writer, const Sojourn__Report *report,
                               sj_slice payload)
{
    size_t size = 0;
    retry_waiting(writer);
    if (writer->first_waiting != NULL) {
        return SJ_EFULL;
    }
    SJ_TRY(build_frame(writer, SJ_FRAME_REPORT, &report->base, payload, &size));
    const sj_slice frame = {.data = writer->frame, .size = size};
    SJ_TRY(sj_spool_append(writer->options.spool, frame, NULL));
    count_frame(writer, size);
    return SJ_OK;
}

static sj_status send_report(sj_frame_writer *writer, const sj_report *report)
{
    if (report->json_bytes > SJ_REPORT_MAX_BYTES) {
        return SJ_ELIMIT;
    }
    if (!is_report_name(report->monitor) || !is_report_name(report->kind)) {
        return SJ_EINVAL;
    }
    Sojourn__Report message = SOJOURN__REPORT__INIT;
    const sj_slice payload = {.data = (const uint8_t *)report->json, .size = report->json_bytes};
    message.session_id = sj_frame_writer_session_bytes(writer);
    message.ticks = report->ticks;
    message.process = report->process;
    message.thread = report->thread;
    message.monitor = (char *)(uintptr_t)report->monitor;
    message.kind = (char *)(uintptr_t)report->kind;
    pthread_mutex_lock(&writer->mutex);
    message.report = next_report(writer);
    const sj_status status = append_report(writer, &message, payload);
    if (status == SJ_EFULL) {
        writer->counters.refused_reports++;
    }
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

sj_status sj_frame_writer_report(sj_frame_writer *writer, const sj_report *report)
{
    char *json = NULL;
    sj_report redacted = *report;
    if ((writer->options.redaction & SJ_REDACT_PATHS) == 0) {
        return send_report(writer, report);
    }
    SJ_TRY(sj_redacted_json(report->json, report->json_bytes, &json));
    redacted.json = json;
    redacted.json_bytes = strlen(json);
    const sj_status status = send_report(writer, &redacted);
    free(json);
    return status;
}

sj_status sj_frame_writer_profile(sj_frame_writer *writer, const sj_profile_sums *sums,
                                  sj_slice payload)
{
    Sojourn__Profile profile = SOJOURN__PROFILE__INIT;
    profile.session_id = sj_frame_writer_session_bytes(writer);
    profile.first_ticks = sums->first_ticks;
    profile.last_ticks = sums->last_ticks;
    profile.calls = sums->calls;
    profile.events = sums->events;
    profile.raw_bytes = sums->raw_bytes;
    pthread_mutex_lock(&writer->mutex);
    retry_waiting(writer);
    profile.profile = ++writer->next_profile;
    sj_frame_writer_counters after = writer->counters;
    after.block_calls += sums->calls;
    after.block_events += sums->events;
    begin_journal(writer, &after);
    const sj_status status = send_alone(writer, SJ_FRAME_PROFILE, &profile.base, payload);
    commit_journal(writer, status == SJ_OK);
    if (status == SJ_OK) {
        writer->counters.block_calls = after.block_calls;
        writer->counters.block_events = after.block_events;
    }
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

sj_status sj_frame_writer_mark(sj_frame_writer *writer, const char *name, bool end, uint64_t ticks,
                               uint64_t thread, const char *source)
{
    Sojourn__Mark mark = SOJOURN__MARK__INIT;
    const sj_slice nothing = {0};
    mark.session_id = sj_frame_writer_session_bytes(writer);
    mark.name = (char *)(uintptr_t)name;
    mark.end = end;
    mark.ticks = ticks;
    mark.thread = thread;
    mark.source = (char *)(uintptr_t)source;
    pthread_mutex_lock(&writer->mutex);
    mark.mark = next_mark(writer);
    const sj_status status = send_locked(writer, SJ_FRAME_MARK, &mark.base, nothing);
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

sj_status sj_frame_writer_trigger(sj_frame_writer *writer, Sojourn__Trigger *trigger)
{
    const sj_slice nothing = {0};
    trigger->session_id = sj_frame_writer_session_bytes(writer);
    pthread_mutex_lock(&writer->mutex);
    trigger->trigger = ++writer->next_trigger;
    const sj_status status = send_locked(writer, SJ_FRAME_TRIGGER, &trigger->base, nothing);
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

sj_status sj_frame_writer_filtered(sj_frame_writer *writer, Sojourn__Filtered *filtered)
{
    const sj_slice nothing = {0};
    filtered->session_id = sj_frame_writer_session_bytes(writer);
    pthread_mutex_lock(&writer->mutex);
    filtered->filtered = ++writer->next_filtered;
    const sj_status status = send_locked(writer, SJ_FRAME_FILTERED, &filtered->base, nothing);
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

/* Every message starts with its session id: field 1, 16 bytes. */
enum { SESSION_FIELD_BYTES = 2 };

/* Sends a frame of the parent under the child's id. */
static sj_status send_kept(sj_frame_writer *writer, const kept_frame *kept,
                           const sj_session_id *child)
{
    size_t size = 0;
    memcpy(writer->header, kept->bytes, kept->header_bytes);
    memcpy(writer->header + SESSION_FIELD_BYTES, child->bytes, SJ_SESSION_ID_BYTES);
    const sj_slice header = {.data = writer->header, .size = kept->header_bytes};
    const sj_slice payload = {.data = kept->bytes + kept->header_bytes,
                              .size = kept->payload_bytes};
    SJ_TRY(sj_frame_write((uint16_t)kept->type, header, payload, writer->frame, SJ_FRAME_MAX_BYTES,
                          &size));
    return send_built(writer, size);
}

static sj_status send_child_session(sj_frame_writer *writer, const kept_frame *kept,
                                    const sj_session_id *child, const char *cause)
{
    size_t size = 0;
    const sj_slice nothing = {0};
    Sojourn__Session *session = sojourn__session__unpack(NULL, kept->header_bytes, kept->bytes);
    if (session == NULL) {
        return SJ_ENOMEM;
    }
    Sojourn__Session copy = *session;
    copy.session_id.data = (uint8_t *)(uintptr_t)child->bytes;
    copy.parent_session_id = sj_frame_writer_session_bytes(writer);
    copy.mode = (char *)(uintptr_t) "flight";
    copy.cause = (char *)(uintptr_t)cause;
    sj_status status = build_frame(writer, SJ_FRAME_SESSION, &copy.base, nothing, &size);
    sojourn__session__free_unpacked(session, NULL);
    return status == SJ_OK ? send_built(writer, size) : status;
}

sj_status sj_frame_writer_child_begin(sj_frame_writer *writer, const sj_session_id *child,
                                      const char *cause)
{
    sj_status status = SJ_OK;
    pthread_mutex_lock(&writer->mutex);
    retry_waiting(writer);
    for (const kept_frame *kept = writer->first_kept; kept != NULL && status == SJ_OK;
         kept = kept->next) {
        status = kept->type == SJ_FRAME_SESSION ? send_child_session(writer, kept, child, cause)
                                                : send_kept(writer, kept, child);
    }
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

sj_status sj_frame_writer_child_block(sj_frame_writer *writer, const sj_session_id *child,
                                      const sj_block_header *header, sj_slice bytes,
                                      sj_child_sums *sums)
{
    Sojourn__BlockInfo info = SOJOURN__BLOCK_INFO__INIT;
    size_t size = 0;
    info.session_id.len = SJ_SESSION_ID_BYTES;
    info.session_id.data = (uint8_t *)(uintptr_t)child->bytes;
    info.stream = header->stream;
    info.first_event = header->first_event;
    info.event_count = header->event_count;
    pthread_mutex_lock(&writer->mutex);
    sj_status status = build_frame(writer, SJ_FRAME_BLOCK, &info.base, bytes, &size);
    if (status == SJ_OK) {
        status = send_built(writer, size);
    }
    pthread_mutex_unlock(&writer->mutex);
    if (status == SJ_OK) {
        sums->blocks++;
        sums->calls += header->call_count;
        sums->lost_calls += header->lost_calls;
        sums->lost_events += header->lost_events;
    }
    return status;
}

sj_status sj_frame_writer_child_end(sj_frame_writer *writer, const sj_session_id *child,
                                    const sj_child_sums *sums)
{
    struct timespec now;
    const sj_slice nothing = {0};
    Sojourn__SessionEnd end = SOJOURN__SESSION_END__INIT;
    clock_gettime(CLOCK_REALTIME, &now);
    end.session_id.len = SJ_SESSION_ID_BYTES;
    end.session_id.data = (uint8_t *)(uintptr_t)child->bytes;
    end.how = (char *)(uintptr_t) "completed";
    end.ended_ticks = sums->ended_ticks;
    end.ended_realtime_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    end.calls = sums->calls + sums->lost_calls;
    end.lost_calls = sums->lost_calls;
    end.lost_events = sums->lost_events;
    end.blocks = sums->blocks;
    return sj_frame_writer_send(writer, SJ_FRAME_SESSION_END, &end.base, nothing);
}

size_t sj_frame_writer_retry(sj_frame_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    retry_waiting(writer);
    const size_t waiting = writer->counters.waiting_frames;
    pthread_mutex_unlock(&writer->mutex);
    return waiting;
}

void sj_frame_writer_get_counters(sj_frame_writer *writer, sj_frame_writer_counters *counters)
{
    pthread_mutex_lock(&writer->mutex);
    *counters = writer->counters;
    pthread_mutex_unlock(&writer->mutex);
}

sj_function_log *sj_frame_writer_function_log(const sj_frame_writer *writer)
{
    return writer->options.function_log;
}

const char *sj_frame_writer_path(const sj_frame_writer *writer, const char *path)
{
    return (writer->options.redaction & SJ_REDACT_PATHS) != 0 ? sj_redacted_path(path) : path;
}

const sj_session_id *sj_frame_writer_session(const sj_frame_writer *writer)
{
    return &writer->options.session;
}

ProtobufCBinaryData sj_frame_writer_session_bytes(const sj_frame_writer *writer)
{
    /* protobuf-c has no const bytes; packing only reads them. */
    return (ProtobufCBinaryData){.len = SJ_SESSION_ID_BYTES,
                                 .data = (uint8_t *)(uintptr_t)writer->options.session.bytes};
}

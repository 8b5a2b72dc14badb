#include "agent/control/emitter.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Blocks are refused this much below the limits, so that control frames find room. */
enum { CONTROL_RESERVE_BYTES = 64 * 1024 };

typedef struct waiting_frame {
    struct waiting_frame *next;
    size_t size;
    uint8_t bytes[];
} waiting_frame;

/* A metadata frame that child sessions begin with. */
typedef struct kept_frame {
    struct kept_frame *next;
    sj_frame_type type;
    size_t header_bytes;
    size_t payload_bytes;
    uint8_t bytes[];
} kept_frame;

struct sj_emitter {
    sj_emitter_options options;
    pthread_mutex_t mutex; /* guards everything below */
    sj_emitter_counters counters;
    waiting_frame *first_waiting;
    waiting_frame **last_waiting;
    bool keeps_threads;
    uint64_t next_gap;
    uint64_t next_mark;
    uint64_t next_profile;
    uint64_t next_trigger;
    uint64_t next_filtered;
    kept_frame *first_kept;
    kept_frame **last_kept;
    uint8_t *header; /* SJ_FRAME_MAX_HEADER_BYTES */
    uint8_t *frame;  /* SJ_FRAME_MAX_BYTES */
};

sj_status sj_emitter_new(const sj_emitter_options *options, sj_emitter **emitter)
{
    sj_emitter *made = calloc(1, sizeof(*made));
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
        sj_emitter_free(made);
        return SJ_ENOMEM;
    }
    *emitter = made;
    return SJ_OK;
}

void sj_emitter_free(sj_emitter *emitter)
{
    if (emitter == NULL) {
        return;
    }
    while (emitter->first_waiting != NULL) {
        waiting_frame *gone = emitter->first_waiting;
        emitter->first_waiting = gone->next;
        free(gone);
    }
    while (emitter->first_kept != NULL) {
        kept_frame *gone = emitter->first_kept;
        emitter->first_kept = gone->next;
        free(gone);
    }
    pthread_mutex_destroy(&emitter->mutex);
    free(emitter->header);
    free(emitter->frame);
    free(emitter);
}

void sj_emitter_resume(sj_emitter *emitter)
{
    const sj_journal_sums sums =
        sj_journal_recover(emitter->options.journal, sj_spool_end(emitter->options.spool));
    emitter->next_gap = sums.next_gap;
    emitter->next_profile = sums.next_profile;
    emitter->counters.blocks = sums.blocks;
    emitter->counters.block_calls = sums.block_calls;
    emitter->counters.block_events = sums.block_events;
    emitter->counters.block_lost_calls = sums.block_lost_calls;
    emitter->counters.block_lost_events = sums.block_lost_events;
    emitter->counters.gap_calls = sums.gap_calls;
    emitter->counters.gap_events = sums.gap_events;
}

/* intend tells the journal which sums hold after the frame that is about to be appended. */
static void intend(const sj_emitter *emitter, const sj_emitter_counters *after)
{
    if (emitter->options.journal == NULL) {
        return;
    }
    const sj_journal_sums sums = {.next_gap = emitter->next_gap,
                                  .blocks = after->blocks,
                                  .block_calls = after->block_calls,
                                  .block_events = after->block_events,
                                  .block_lost_calls = after->block_lost_calls,
                                  .block_lost_events = after->block_lost_events,
                                  .gap_calls = after->gap_calls,
                                  .gap_events = after->gap_events,
                                  .next_profile = emitter->next_profile};
    sj_journal_begin(emitter->options.journal, &sums, sj_spool_end(emitter->options.spool));
}

static void settle(const sj_emitter *emitter, bool appended)
{
    if (emitter->options.journal != NULL) {
        sj_journal_commit(emitter->options.journal, appended);
    }
}

static void count_frame(sj_emitter *emitter, size_t size)
{
    emitter->counters.frames++;
    emitter->counters.bytes += size;
    if (emitter->options.uplink != NULL) {
        sj_uplink_wake(emitter->options.uplink);
    }
}

static void retry_waiting(sj_emitter *emitter)
{
    while (emitter->first_waiting != NULL) {
        waiting_frame *first = emitter->first_waiting;
        const sj_slice frame = {.data = first->bytes, .size = first->size};
        if (sj_spool_append(emitter->options.spool, frame, NULL) != SJ_OK) {
            return;
        }
        count_frame(emitter, first->size);
        emitter->counters.waiting_frames--;
        emitter->first_waiting = first->next;
        if (emitter->first_waiting == NULL) {
            emitter->last_waiting = &emitter->first_waiting;
        }
        free(first);
    }
}

static sj_status keep_waiting(sj_emitter *emitter, size_t size)
{
    waiting_frame *kept = malloc(sizeof(*kept) + size);
    if (kept == NULL) {
        return SJ_ENOMEM;
    }
    kept->next = NULL;
    kept->size = size;
    memcpy(kept->bytes, emitter->frame, size);
    *emitter->last_waiting = kept;
    emitter->last_waiting = &kept->next;
    emitter->counters.waiting_frames++;
    return SJ_OK;
}

static sj_status build_frame(sj_emitter *emitter, sj_frame_type type,
                             const ProtobufCMessage *message, sj_slice payload, size_t *size)
{
    const size_t header_bytes = protobuf_c_message_get_packed_size(message);
    if (header_bytes > SJ_FRAME_MAX_HEADER_BYTES) {
        return SJ_ELIMIT;
    }
    protobuf_c_message_pack(message, emitter->header);
    const sj_slice header = {.data = emitter->header, .size = header_bytes};
    return sj_frame_write((uint16_t)type, header, payload, emitter->frame, SJ_FRAME_MAX_BYTES,
                          size);
}

static bool is_for_children(sj_frame_type type)
{
    return type == SJ_FRAME_SESSION || type == SJ_FRAME_PROCESS || type == SJ_FRAME_MODULE ||
           type == SJ_FRAME_THREAD || type == SJ_FRAME_MAPPING || type == SJ_FRAME_UNHOOKED;
}

static sj_status remember_control(sj_emitter *emitter, sj_frame_type type, const uint8_t *header,
                                  size_t header_bytes, sj_slice payload)
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
    *emitter->last_kept = kept;
    emitter->last_kept = &kept->next;
    return SJ_OK;
}

/* keep_control copies what was just built: emitter->header, and the payload. */
static sj_status keep_control(sj_emitter *emitter, sj_frame_type type, size_t header_bytes,
                              sj_slice payload)
{
    const sj_slice header = {.data = emitter->header, .size = header_bytes};
    /* Whoever finishes the session of a killed recorder knows as much as was stored. */
    if (emitter->options.control_store != NULL && emitter->keeps_threads) {
        sj_control_store_add(emitter->options.control_store, type, header, payload);
    }
    return remember_control(emitter, type, emitter->header, header_bytes, payload);
}

/* drop_kept forgets the kept frames that `is_one` names. */
static void drop_kept(sj_emitter *emitter, bool (*is_one)(const kept_frame *, const void *),
                      const void *context)
{
    kept_frame **at = &emitter->first_kept;
    while (*at != NULL) {
        kept_frame *kept = *at;
        if (is_one(kept, context)) {
            *at = kept->next;
            free(kept);
        } else {
            at = &kept->next;
        }
    }
    emitter->last_kept = at;
}

static bool is_thread(const kept_frame *kept, const void *context)
{
    (void)context;
    return kept->type == SJ_FRAME_THREAD;
}

/* is_same_module: a module that is told again, because other functions of it are hooked. */
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

/* store_kept begins the store afresh with all that is kept. */
static void store_kept(const sj_emitter *emitter)
{
    sj_control_store *store = emitter->options.control_store;
    sj_control_store_clear(store);
    for (const kept_frame *kept = emitter->first_kept; kept != NULL; kept = kept->next) {
        const sj_slice header = {.data = kept->bytes, .size = kept->header_bytes};
        const sj_slice payload = {.data = kept->bytes + kept->header_bytes,
                                  .size = kept->payload_bytes};
        sj_control_store_add(store, kept->type, header, payload);
    }
}

void sj_emitter_keep_threads(sj_emitter *emitter, bool on)
{
    pthread_mutex_lock(&emitter->mutex);
    emitter->keeps_threads = on;
    if (!on) {
        drop_kept(emitter, is_thread, NULL);
    } else if (emitter->options.control_store != NULL) {
        store_kept(emitter);
    }
    pthread_mutex_unlock(&emitter->mutex);
}

sj_status sj_emitter_remember(sj_emitter *emitter, sj_frame_type type, sj_slice header,
                              sj_slice payload)
{
    pthread_mutex_lock(&emitter->mutex);
    if (type == SJ_FRAME_MODULE) {
        Sojourn__Module *module = sojourn__module__unpack(NULL, header.size, header.data);
        if (module != NULL) {
            drop_kept(emitter, is_same_module, module);
            sojourn__module__free_unpacked(module, NULL);
        }
    }
    const sj_status status = remember_control(emitter, type, header.data, header.size, payload);
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

static sj_status send_built(sj_emitter *emitter, size_t size)
{
    /* Behind frames that wait, a new one waits too: their order is kept. */
    if (emitter->first_waiting == NULL) {
        const sj_slice frame = {.data = emitter->frame, .size = size};
        const sj_status status = sj_spool_append(emitter->options.spool, frame, NULL);
        if (status == SJ_OK) {
            count_frame(emitter, size);
        }
        if (status != SJ_EFULL) {
            return status;
        }
    }
    return keep_waiting(emitter, size);
}

static sj_status send_locked(sj_emitter *emitter, sj_frame_type type,
                             const ProtobufCMessage *message, sj_slice payload)
{
    size_t size = 0;
    retry_waiting(emitter);
    SJ_TRY(build_frame(emitter, type, message, payload, &size));
    if (is_for_children(type) && (type != SJ_FRAME_THREAD || emitter->keeps_threads)) {
        if (type == SJ_FRAME_MODULE) {
            drop_kept(emitter, is_same_module, message);
        }
        SJ_TRY(keep_control(emitter, type, protobuf_c_message_get_packed_size(message), payload));
    }
    return send_built(emitter, size);
}

sj_status sj_emitter_send(sj_emitter *emitter, sj_frame_type type, const ProtobufCMessage *message,
                          sj_slice payload)
{
    pthread_mutex_lock(&emitter->mutex);
    const sj_status status = send_locked(emitter, type, message, payload);
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

static bool is_beyond_limit(sj_emitter *emitter, size_t block_bytes)
{
    const uint64_t limit = emitter->options.max_bytes;
    if (limit == 0) {
        return false;
    }
    const uint64_t used = emitter->counters.bytes + CONTROL_RESERVE_BYTES + block_bytes;
    if (used > limit) {
        emitter->counters.reached_max_bytes = true;
    }
    /* Once reached it stays so: a recording with one end is easier to trust than one with holes. */
    return emitter->counters.reached_max_bytes;
}

static sj_status append_block(sj_emitter *emitter, const sj_block_header *header, sj_slice bytes,
                              const sj_emitter_counters *after)
{
    Sojourn__BlockInfo info = SOJOURN__BLOCK_INFO__INIT;
    size_t size = 0;
    if (emitter->first_waiting != NULL || is_beyond_limit(emitter, bytes.size)) {
        return SJ_EFULL;
    }
    info.session_id = sj_emitter_session_bytes(emitter);
    info.stream = header->stream;
    info.first_event = header->first_event;
    info.event_count = header->event_count;
    SJ_TRY(build_frame(emitter, SJ_FRAME_BLOCK, &info.base, bytes, &size));
    const sj_slice frame = {.data = emitter->frame, .size = size};
    intend(emitter, after);
    const sj_status status = sj_spool_append(emitter->options.spool, frame, NULL);
    settle(emitter, status == SJ_OK);
    if (status == SJ_OK) {
        const bool reached = emitter->counters.reached_max_bytes;
        emitter->counters = *after;
        emitter->counters.reached_max_bytes = reached;
        count_frame(emitter, size);
    }
    return status;
}

sj_status sj_emitter_block(sj_emitter *emitter, const sj_block_header *header, sj_slice bytes)
{
    pthread_mutex_lock(&emitter->mutex);
    retry_waiting(emitter);
    sj_emitter_counters after = emitter->counters;
    after.blocks++;
    after.block_bytes += bytes.size;
    after.block_calls += header->call_count;
    after.block_events += header->event_count;
    after.block_lost_calls += header->lost_calls;
    after.block_lost_events += header->lost_events;
    const sj_status status = append_block(emitter, header, bytes, &after);
    if (status != SJ_OK) {
        emitter->counters.refused_blocks++;
        emitter->counters.refused_calls += header->call_count;
    }
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

sj_status sj_emitter_gap(sj_emitter *emitter, sj_gap_reason reason, uint64_t thread,
                         uint32_t stream, uint64_t calls, uint64_t events, uint64_t start_ticks,
                         uint64_t end_ticks)
{
    Sojourn__Gap gap = SOJOURN__GAP__INIT;
    const sj_slice nothing = {0};
    gap.session_id = sj_emitter_session_bytes(emitter);
    gap.thread = thread;
    gap.stream = stream;
    gap.reason = (uint32_t)reason;
    gap.calls = calls;
    gap.events = events;
    gap.start_ticks = start_ticks;
    gap.end_ticks = end_ticks;
    pthread_mutex_lock(&emitter->mutex);
    retry_waiting(emitter);
    gap.gap = ++emitter->next_gap;
    sj_emitter_counters after = emitter->counters;
    after.gap_calls += calls;
    after.gap_events += events;
    intend(emitter, &after);
    const sj_status status = send_locked(emitter, SJ_FRAME_GAP, &gap.base, nothing);
    settle(emitter, status == SJ_OK);
    if (status == SJ_OK) {
        emitter->counters.gap_calls += calls;
        emitter->counters.gap_events += events;
    }
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

/* Marks are numbered in the journal, so that whoever finishes a killed recorder's session goes on.
 */
static uint64_t next_mark(sj_emitter *emitter)
{
    if (emitter->options.journal != NULL) {
        return atomic_fetch_add(&emitter->options.journal->data->next_mark, 1) + 1;
    }
    return ++emitter->next_mark;
}

sj_status sj_emitter_profile(sj_emitter *emitter, const sj_profile_sums *sums, sj_slice payload)
{
    Sojourn__Profile profile = SOJOURN__PROFILE__INIT;
    profile.session_id = sj_emitter_session_bytes(emitter);
    profile.first_ticks = sums->first_ticks;
    profile.last_ticks = sums->last_ticks;
    profile.calls = sums->calls;
    profile.events = sums->events;
    profile.raw_bytes = sums->raw_bytes;
    pthread_mutex_lock(&emitter->mutex);
    retry_waiting(emitter);
    profile.profile = ++emitter->next_profile;
    sj_emitter_counters after = emitter->counters;
    after.block_calls += sums->calls;
    after.block_events += sums->events;
    intend(emitter, &after);
    const sj_status status = send_locked(emitter, SJ_FRAME_PROFILE, &profile.base, payload);
    settle(emitter, status == SJ_OK);
    if (status == SJ_OK) {
        emitter->counters.block_calls = after.block_calls;
        emitter->counters.block_events = after.block_events;
    }
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

sj_status sj_emitter_mark(sj_emitter *emitter, const char *name, bool end, uint64_t ticks,
                          uint64_t thread, const char *source)
{
    Sojourn__Mark mark = SOJOURN__MARK__INIT;
    const sj_slice nothing = {0};
    mark.session_id = sj_emitter_session_bytes(emitter);
    mark.name = (char *)(uintptr_t)name;
    mark.end = end;
    mark.ticks = ticks;
    mark.thread = thread;
    mark.source = (char *)(uintptr_t)source;
    pthread_mutex_lock(&emitter->mutex);
    mark.mark = next_mark(emitter);
    const sj_status status = send_locked(emitter, SJ_FRAME_MARK, &mark.base, nothing);
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

sj_status sj_emitter_trigger(sj_emitter *emitter, Sojourn__Trigger *trigger)
{
    const sj_slice nothing = {0};
    trigger->session_id = sj_emitter_session_bytes(emitter);
    pthread_mutex_lock(&emitter->mutex);
    trigger->trigger = ++emitter->next_trigger;
    const sj_status status = send_locked(emitter, SJ_FRAME_TRIGGER, &trigger->base, nothing);
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

sj_status sj_emitter_filtered(sj_emitter *emitter, Sojourn__Filtered *filtered)
{
    const sj_slice nothing = {0};
    filtered->session_id = sj_emitter_session_bytes(emitter);
    pthread_mutex_lock(&emitter->mutex);
    filtered->filtered = ++emitter->next_filtered;
    const sj_status status = send_locked(emitter, SJ_FRAME_FILTERED, &filtered->base, nothing);
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

/* Every message begins with its session id: field 1, 16 bytes. */
enum { SESSION_FIELD_BYTES = 2 };

/* send_kept sends a frame of the parent under the child's id. */
static sj_status send_kept(sj_emitter *emitter, const kept_frame *kept, const sj_session_id *child)
{
    size_t size = 0;
    memcpy(emitter->header, kept->bytes, kept->header_bytes);
    memcpy(emitter->header + SESSION_FIELD_BYTES, child->bytes, SJ_SESSION_ID_BYTES);
    const sj_slice header = {.data = emitter->header, .size = kept->header_bytes};
    const sj_slice payload = {.data = kept->bytes + kept->header_bytes,
                              .size = kept->payload_bytes};
    SJ_TRY(sj_frame_write((uint16_t)kept->type, header, payload, emitter->frame, SJ_FRAME_MAX_BYTES,
                          &size));
    return send_built(emitter, size);
}

static sj_status send_child_session(sj_emitter *emitter, const kept_frame *kept,
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
    copy.parent_session_id = sj_emitter_session_bytes(emitter);
    copy.mode = (char *)(uintptr_t) "flight";
    copy.cause = (char *)(uintptr_t)cause;
    sj_status status = build_frame(emitter, SJ_FRAME_SESSION, &copy.base, nothing, &size);
    sojourn__session__free_unpacked(session, NULL);
    return status == SJ_OK ? send_built(emitter, size) : status;
}

sj_status sj_emitter_child_begin(sj_emitter *emitter, const sj_session_id *child, const char *cause)
{
    sj_status status = SJ_OK;
    pthread_mutex_lock(&emitter->mutex);
    retry_waiting(emitter);
    for (const kept_frame *kept = emitter->first_kept; kept != NULL && status == SJ_OK;
         kept = kept->next) {
        status = kept->type == SJ_FRAME_SESSION ? send_child_session(emitter, kept, child, cause)
                                                : send_kept(emitter, kept, child);
    }
    pthread_mutex_unlock(&emitter->mutex);
    return status;
}

sj_status sj_emitter_child_block(sj_emitter *emitter, const sj_session_id *child,
                                 const sj_block_header *header, sj_slice bytes, sj_child_sums *sums)
{
    Sojourn__BlockInfo info = SOJOURN__BLOCK_INFO__INIT;
    size_t size = 0;
    info.session_id.len = SJ_SESSION_ID_BYTES;
    info.session_id.data = (uint8_t *)(uintptr_t)child->bytes;
    info.stream = header->stream;
    info.first_event = header->first_event;
    info.event_count = header->event_count;
    pthread_mutex_lock(&emitter->mutex);
    sj_status status = build_frame(emitter, SJ_FRAME_BLOCK, &info.base, bytes, &size);
    if (status == SJ_OK) {
        status = send_built(emitter, size);
    }
    pthread_mutex_unlock(&emitter->mutex);
    if (status == SJ_OK) {
        sums->blocks++;
        sums->calls += header->call_count;
        sums->lost_calls += header->lost_calls;
        sums->lost_events += header->lost_events;
    }
    return status;
}

sj_status sj_emitter_child_end(sj_emitter *emitter, const sj_session_id *child,
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
    return sj_emitter_send(emitter, SJ_FRAME_SESSION_END, &end.base, nothing);
}

size_t sj_emitter_retry(sj_emitter *emitter)
{
    pthread_mutex_lock(&emitter->mutex);
    retry_waiting(emitter);
    const size_t waiting = emitter->counters.waiting_frames;
    pthread_mutex_unlock(&emitter->mutex);
    return waiting;
}

void sj_emitter_get_counters(sj_emitter *emitter, sj_emitter_counters *counters)
{
    pthread_mutex_lock(&emitter->mutex);
    *counters = emitter->counters;
    pthread_mutex_unlock(&emitter->mutex);
}

const sj_session_id *sj_emitter_session(const sj_emitter *emitter)
{
    return &emitter->options.session;
}

ProtobufCBinaryData sj_emitter_session_bytes(const sj_emitter *emitter)
{
    /* protobuf-c has no const bytes; packing only reads. */
    return (ProtobufCBinaryData){.len = SJ_SESSION_ID_BYTES,
                                 .data = (uint8_t *)(uintptr_t)emitter->options.session.bytes};
}

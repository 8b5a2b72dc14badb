/* perfetto: the track events of Perfetto's binary traces: of Chromium, of programs that use its
 * SDK, and of `sojourn export` (https://perfetto.dev/docs/reference/trace-packet-proto). Slices are
 * calls. Each track becomes a thread. Memory holds one packet, the names and the tracks. */
#include "collector-server/import/importer.h"
#include "collector-server/import/perfetto_tracks.h"
#include "collector-server/import/proto_fields.h"
#include "collector-server/import/unpack.h"
#include "proto/base/array.h"
#include "proto/base/units.h"

#include <stdlib.h>

enum {
    MOST_PACKET_BYTES = 64 * 1024 * 1024,
    PACKET_TAG = 1 << 3 | 2,
    US_NS = 1000,
    /* fields of TracePacket */
    CLOCK_SNAPSHOT = 6,
    TIMESTAMP = 8,
    SEQUENCE = 10,
    TRACK_EVENT = 11,
    INTERNED = 12,
    FLAGS = 13,
    STATE_CLEARED = 41,
    DROPPED = 42,
    COMPRESSED = 50,
    CLOCK = 58,
    DEFAULTS = 59,
    TRACK_DESCRIPTOR = 60,
    PACKET_FIELDS = 64,
    /* fields of TrackEvent */
    LEGACY = 6,
    TYPE = 9,
    NAME_IID = 10,
    TRACK_UUID = 11,
    NAME = 23,
    EVENT_FIELDS = 24,
    /* values of TYPE */
    SLICE_BEGIN = 1,
    SLICE_END = 2
};

typedef struct perfetto_reader {
    sj_source *source;
    sj_import_log *log;
    sj_perfetto_tracks tracks;
    sj_hash_map names; /* functions, by the number of a name and the generation */
    uint8_t *packet;
    size_t packet_capacity;
    uint64_t at; /* offset of the packet */
    uint64_t left_out, dropped;
} perfetto_reader;

/* A packet. Numbers and messages are by field; a repeated field has its last value. */
typedef struct packet_view {
    uint64_t numbers[PACKET_FIELDS];
    sj_slice messages[PACKET_FIELDS];
    bool has_clock;
} packet_view;

static sj_status damaged(const perfetto_reader *reader, const char *what)
{
    return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at, "%s is damaged", what);
}

static bool view_packet(sj_slice packet, packet_view *view)
{
    sj_reader message = sj_proto_message(packet);
    sj_proto_field field;
    *view = (packet_view){0};
    while (sj_proto_next(&message, &field)) {
        if (field.number >= PACKET_FIELDS) {
            continue;
        }
        if (field.is_bytes) {
            view->messages[field.number] = field.bytes;
        } else {
            view->numbers[field.number] = field.value;
            view->has_clock = view->has_clock || field.number == CLOCK;
        }
    }
    return !message.bad;
}

/* Adds the names that a packet interns. */
static sj_status add_names(perfetto_reader *reader, const sj_perfetto_sequence *sequence,
                           sj_slice interned)
{
    sj_reader message = sj_proto_message(interned);
    sj_proto_field field;
    while (sj_proto_next(&message, &field)) {
        uint64_t numbers[2] = {0};
        sj_slice name;
        uint32_t function;
        if (field.number != 2 || !field.is_bytes) {
            continue;
        }
        if (!sj_proto_numbers(field.bytes, numbers, 2) || !sj_proto_bytes(field.bytes, 2, &name)) {
            return damaged(reader, "a name");
        }
        SJ_TRY(sj_import_log_function(reader->log, name, (sj_slice){0}, &function));
        SJ_TRY(sj_hash_map_put(
            &reader->names,
            &(sj_hash_entry){.key = numbers[1], .sub = sequence->generation, .first = function}));
    }
    return message.bad ? damaged(reader, "the names of a packet") : SJ_OK;
}

static sj_status set_defaults(perfetto_reader *reader, sj_perfetto_sequence *sequence,
                              sj_slice defaults)
{
    packet_view view;
    uint64_t numbers[TRACK_UUID + 1] = {0};
    if (!view_packet(defaults, &view) ||
        !sj_proto_numbers(view.messages[TRACK_EVENT], numbers, TRACK_UUID + 1)) {
        return damaged(reader, "the defaults of a packet");
    }
    sequence->default_clock = view.numbers[CLOCK];
    sequence->default_track = numbers[TRACK_UUID];
    return SJ_OK;
}

/* Finds the function of a begin event: its name, or the number of a name. */
static sj_status find_function(perfetto_reader *reader, const sj_perfetto_sequence *sequence,
                               uint64_t name_iid, sj_slice name, uint32_t *function)
{
    if (name.size != 0 || name_iid == 0) {
        return sj_import_log_function(reader->log,
                                      name.size != 0 ? name : sj_import_text("(unnamed)"),
                                      (sj_slice){0}, function);
    }
    const sj_hash_entry *known = sj_hash_map_find(&reader->names, name_iid, sequence->generation);
    if (known == NULL) {
        return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at,
                              "an event has the unknown name number %llu",
                              (unsigned long long)name_iid);
    }
    *function = known->first;
    return SJ_OK;
}

/* An event as the log needs it. */
typedef struct slice_event {
    uint64_t numbers[EVENT_FIELDS];
    sj_slice name, legacy;
    bool has_track;
} slice_event;

static bool view_event(sj_slice bytes, slice_event *event)
{
    sj_reader message = sj_proto_message(bytes);
    sj_proto_field field;
    *event = (slice_event){0};
    while (sj_proto_next(&message, &field)) {
        if (field.is_bytes && field.number == NAME) {
            event->name = field.bytes;
        } else if (field.is_bytes && field.number == LEGACY) {
            event->legacy = field.bytes;
        } else if (!field.is_bytes && field.number < EVENT_FIELDS) {
            event->numbers[field.number] = field.value;
            event->has_track = event->has_track || field.number == TRACK_UUID;
        }
    }
    return !message.bad;
}

/* Returns 'B', 'E', 'X' (a whole call) or 0 (not a call), and the duration of a whole call. */
static char phase_of(const slice_event *event, uint64_t *duration_ns)
{
    uint64_t numbers[4] = {0};
    if (event->numbers[TYPE] == SLICE_BEGIN || event->numbers[TYPE] == SLICE_END) {
        return event->numbers[TYPE] == SLICE_BEGIN ? 'B' : 'E';
    }
    if (!sj_proto_numbers(event->legacy, numbers, 4) ||
        __builtin_mul_overflow(numbers[3], US_NS, duration_ns)) {
        return 0;
    }
    return numbers[2] == 'B' || numbers[2] == 'E' || numbers[2] == 'X' ? (char)numbers[2] : 0;
}

static sj_status add_event(perfetto_reader *reader, const sj_perfetto_sequence *sequence,
                           sj_slice bytes, uint64_t at_ns)
{
    slice_event event;
    uint64_t duration_ns = 0;
    uint32_t thread;
    uint32_t function;
    if (!view_event(bytes, &event)) {
        return damaged(reader, "an event");
    }
    const char phase = phase_of(&event, &duration_ns);
    if (phase == 0) {
        reader->left_out++;
        return SJ_OK;
    }
    if (at_ns > INT64_MAX / 2 || duration_ns > INT64_MAX / 2) {
        return sj_source_fail(reader->source, SJ_ELIMIT, reader->at, "a time is too large");
    }
    SJ_TRY(sj_perfetto_track_thread(
        &reader->tracks, reader->log,
        event.has_track ? event.numbers[TRACK_UUID] : sequence->default_track, &thread));
    if (phase == 'E') {
        return sj_import_log_leave(reader->log, thread, (int64_t)at_ns, false);
    }
    SJ_TRY(find_function(reader, sequence, event.numbers[NAME_IID], event.name, &function));
    return phase == 'B' ? sj_import_log_enter(reader->log, thread, function, (int64_t)at_ns)
                        : sj_import_log_interval(reader->log, thread, function, (int64_t)at_ns,
                                                 (int64_t)(at_ns + duration_ns));
}

static sj_status read_packet(perfetto_reader *reader, sj_slice packet, bool is_unpacked);

/* Reads the packets in a compressed packet. */
static sj_status read_compressed(perfetto_reader *reader, sj_slice packed)
{
    uint8_t *bytes;
    size_t size;
    if (sj_unpack(packed, MOST_PACKET_BYTES, &bytes, &size) != SJ_OK) {
        return damaged(reader, "a compressed packet");
    }
    sj_reader message = sj_reader_of(bytes, size);
    sj_proto_field field;
    sj_status status = SJ_OK;
    while (status == SJ_OK && sj_proto_next(&message, &field)) {
        status =
            field.number == 1 && field.is_bytes ? read_packet(reader, field.bytes, true) : SJ_OK;
    }
    free(bytes);
    return status == SJ_OK && message.bad ? damaged(reader, "a compressed packet") : status;
}

static sj_status read_state(perfetto_reader *reader, sj_perfetto_sequence *sequence,
                            const packet_view *view)
{
    if ((view->numbers[FLAGS] & 1) != 0 || view->numbers[STATE_CLEARED] != 0) {
        sj_perfetto_sequence_clear(&reader->tracks, sequence);
    }
    if (view->messages[CLOCK_SNAPSHOT].size != 0 &&
        sj_perfetto_clocks_read(sequence, view->messages[CLOCK_SNAPSHOT]) != SJ_OK) {
        return damaged(reader, "a clock snapshot");
    }
    if (view->messages[DEFAULTS].size != 0) {
        SJ_TRY(set_defaults(reader, sequence, view->messages[DEFAULTS]));
    }
    return add_names(reader, sequence, view->messages[INTERNED]);
}

static sj_status read_packet(perfetto_reader *reader, sj_slice packet, bool is_unpacked)
{
    packet_view view;
    sj_perfetto_sequence *sequence;
    if (!view_packet(packet, &view)) {
        return damaged(reader, "a packet");
    }
    if (view.messages[COMPRESSED].size != 0) {
        return is_unpacked ? damaged(reader, "a compressed packet")
                           : read_compressed(reader, view.messages[COMPRESSED]);
    }
    reader->dropped += view.numbers[DROPPED] != 0 ? 1 : 0;
    SJ_TRY(sj_perfetto_sequence_find(&reader->tracks, view.numbers[SEQUENCE], &sequence));
    SJ_TRY(read_state(reader, sequence, &view));
    if (view.messages[TRACK_DESCRIPTOR].size != 0) {
        const sj_status status =
            sj_perfetto_track_read(&reader->tracks, reader->log, view.messages[TRACK_DESCRIPTOR]);
        return status == SJ_ECORRUPT ? damaged(reader, "a track") : status;
    }
    if (view.messages[TRACK_EVENT].size == 0) {
        return SJ_OK;
    }
    const uint64_t clock = view.has_clock ? view.numbers[CLOCK] : sequence->default_clock;
    return add_event(reader, sequence, view.messages[TRACK_EVENT],
                     sj_perfetto_time(sequence, clock, view.numbers[TIMESTAMP]));
}

/* Reads the length of a packet. */
static sj_status read_size(perfetto_reader *reader, uint64_t *size)
{
    *size = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        uint8_t byte;
        SJ_TRY(sj_source_bytes(reader->source, &byte, 1, "the length of a packet"));
        *size |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return *size <= MOST_PACKET_BYTES
                       ? SJ_OK
                       : sj_source_fail(reader->source, SJ_ELIMIT, reader->at,
                                        "the packet is larger than 64 MB");
        }
    }
    return damaged(reader, "the length of a packet");
}

static sj_status read_packets(perfetto_reader *reader)
{
    while (sj_source_peek(reader->source) != SJ_SOURCE_END) {
        uint64_t size;
        reader->at = sj_source_offset(reader->source);
        if (sj_source_get(reader->source) != PACKET_TAG) {
            return sj_source_fail(reader->source, SJ_ECORRUPT, reader->at,
                                  "this is not a packet of a Perfetto trace");
        }
        SJ_TRY(read_size(reader, &size));
        SJ_TRY(sj_array_reserve(&reader->packet, &reader->packet_capacity, 0, (size_t)size + 1, 1));
        SJ_TRY(sj_source_bytes(reader->source, reader->packet, (size_t)size, "a packet"));
        SJ_TRY(
            read_packet(reader, (sj_slice){.data = reader->packet, .size = (size_t)size}, false));
    }
    return SJ_OK;
}

static sj_status read_perfetto(sj_source *source, sj_import_log *log)
{
    perfetto_reader reader = {.source = source, .log = log};
    const sj_status status = read_packets(&reader);
    sj_perfetto_tracks_deinit(&reader.tracks);
    sj_hash_map_deinit(&reader.names);
    free(reader.packet);
    if (reader.left_out != 0) {
        sj_import_log_note(log, "%s could not be imported, because only calls can",
                           SJ_COUNTED(reader.left_out, "event"));
    }
    if (reader.dropped != 0) {
        sj_import_log_note(log, "the trace lost packets at %s",
                           SJ_COUNTED(reader.dropped, "place"));
    }
    sj_import_log_note(log, "the format has no modules; categories, arguments and flows of events "
                            "are not kept");
    return status;
}

/* True if the file begins with a packet whose first field has a timestamp, a sequence, or one of
 * the other fields that are first in a packet. */
static bool recognizes_perfetto(sj_slice head)
{
    sj_reader reader = sj_reader_of(head.data, head.size);
    if (sj_read_u8(&reader) != PACKET_TAG) {
        return false;
    }
    const uint64_t size = sj_read_varint(&reader);
    const uint64_t tag = sj_read_varint(&reader);
    const uint64_t type = tag & 7;
    return !reader.bad && size >= 2 && size <= MOST_PACKET_BYTES && tag >> 3 != 0 &&
           tag >> 3 < 1024 && (type == 0 || type == 2);
}

const sj_importer sj_importer_perfetto = {
    .name = "perfetto",
    .summary = "track events of Perfetto's binary traces",
    .recognizes = recognizes_perfetto,
    .read = read_perfetto,
};

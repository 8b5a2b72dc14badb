/* speedscope: speedscope's own JSON format (https://www.speedscope.app/file-format-schema.json).
 * Each track is an evented profile: a list of begin and end events. The format cannot hold values,
 * lost calls and estimates. A call without an end event (call_events.h) ends with its track. The
 * list of frames (functions) follows the profiles, because the calls show which functions are
 * needed. */
#include "schema/queries/export/speedscope.h"
#include "collector-server/export/call_events.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/json_text.h"
#include "proto/base/array.h"
#include "proto/base/hash_map.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct profile_writer {
    FILE *output;
    sj_hash_map frame_indexes; /* function id -> index of its frame */
    int64_t *function_ids;     /* the function of each frame */
    size_t frame_count, frame_capacity;
    uint32_t *open; /* frames of the open calls */
    size_t open_count, open_capacity;
    int64_t stream_id;
    int64_t last_ns;
    bool has_profile; /* a profile is being written */
} profile_writer;

static void write_moment(profile_writer *writer, char type, uint32_t frame, int64_t at_ns,
                         bool is_first)
{
    writer->last_ns = is_first || at_ns > writer->last_ns ? at_ns : writer->last_ns;
    fprintf(writer->output, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRId64 "}",
            is_first ? "\n" : ",\n", type, frame, writer->last_ns);
}

static void end_profile(profile_writer *writer)
{
    if (!writer->has_profile) {
        return;
    }
    while (writer->open_count != 0) {
        write_moment(writer, 'C', writer->open[--writer->open_count], writer->last_ns, false);
    }
    fprintf(writer->output, "],\"endValue\":%" PRId64 "}", writer->last_ns);
    writer->has_profile = false;
}

static void begin_profile(profile_writer *writer, const sj_call_event *event, bool is_first)
{
    FILE *output = writer->output;
    char name[64];
    (void)snprintf(name, sizeof(name), " %" PRId64 " of process %" PRId64, event->track->number,
                   event->track->pid);
    fputs(is_first ? "\n{\"type\":\"evented\",\"name\":" : ",\n{\"type\":\"evented\",\"name\":",
          output);
    char *full_name = NULL;
    if (asprintf(&full_name, "%s%s", event->track->name, name) < 0) {
        full_name = NULL;
    }
    sj_json_text(output, full_name != NULL ? full_name : name);
    free(full_name);
    fprintf(output, ",\"unit\":\"nanoseconds\",\"startValue\":%" PRId64 ",\"events\":[",
            event->at_ns);
    writer->has_profile = true;
}

static sj_status find_frame(profile_writer *writer, int64_t function_id, uint32_t *frame)
{
    const sj_hash_entry *known = sj_hash_map_find(&writer->frame_indexes, (uint64_t)function_id, 1);
    if (known != NULL) {
        *frame = known->first;
        return SJ_OK;
    }
    *frame = (uint32_t)writer->frame_count;
    SJ_TRY(sj_array_reserve(&writer->function_ids, &writer->frame_capacity, writer->frame_count, 1,
                            sizeof(*writer->function_ids)));
    writer->function_ids[writer->frame_count++] = function_id;
    return sj_hash_map_put(
        &writer->frame_indexes,
        &(sj_hash_entry){.key = (uint64_t)function_id, .sub = 1, .first = *frame});
}

static sj_status write_event(void *context, const sj_call_event *event)
{
    profile_writer *writer = context;
    bool is_first = false;
    if (!writer->has_profile || writer->stream_id != event->track->stream_id) {
        const bool is_first_profile = !writer->has_profile;
        end_profile(writer);
        begin_profile(writer, event, is_first_profile);
        writer->stream_id = event->track->stream_id;
        is_first = true;
    }
    if (!event->is_begin) {
        write_moment(writer, 'C', writer->open[--writer->open_count], event->at_ns, is_first);
        return SJ_OK;
    }
    uint32_t frame;
    SJ_TRY(find_frame(writer, event->function_id, &frame));
    SJ_TRY(sj_array_reserve(&writer->open, &writer->open_capacity, writer->open_count, 1,
                            sizeof(*writer->open)));
    writer->open[writer->open_count++] = frame;
    write_moment(writer, 'O', frame, event->at_ns, is_first);
    return SJ_OK;
}

static sj_status write_frames(sqlite3 *database, const profile_writer *writer, sj_error *error)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, sj_speedscope_frames_sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
    }
    FILE *output = writer->output;
    for (size_t i = 0; i < writer->frame_count; i++) {
        sqlite3_bind_int64(row, 1, writer->function_ids[i]);
        const int result = sqlite3_step(row);
        const bool is_known = result == SQLITE_ROW;
        if (!is_known && result != SQLITE_DONE) {
            sj_fail(error, SJ_EIO, "cannot read the functions: %s", sqlite3_errmsg(database));
            sqlite3_finalize(row);
            return SJ_EIO;
        }
        fputs(i == 0 ? "\n{\"name\":" : ",\n{\"name\":", output);
        sj_json_text(output,
                     is_known ? (const char *)sqlite3_column_text(row, 0) : "(unknown function)");
        if (is_known && sqlite3_column_type(row, 2) != SQLITE_NULL) {
            fputs(",\"file\":", output);
            sj_json_text(output, (const char *)sqlite3_column_text(row, 2));
            fprintf(output, ",\"line\":%lld", (long long)sqlite3_column_int64(row, 3));
        } else if (is_known) {
            fputs(",\"file\":", output);
            sj_json_text(output, (const char *)sqlite3_column_text(row, 1));
        }
        fputc('}', output);
        sqlite3_reset(row);
    }
    sqlite3_finalize(row);
    return SJ_OK;
}

static sj_status write_speedscope(sqlite3 *database, const sj_call_part *part, FILE *output,
                                  sj_error *error)
{
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
          "\"exporter\":\"sojourn\",\"profiles\":[",
          output);
    profile_writer writer = {.output = output};
    sj_status status = sj_call_events_read(database, part, write_event, &writer, error);
    end_profile(&writer);
    fputs("],\"shared\":{\"frames\":[", output);
    if (status == SJ_OK) {
        status = write_frames(database, &writer, error);
    }
    fputs("]}}\n", output);
    sj_hash_map_deinit(&writer.frame_indexes);
    free(writer.function_ids);
    free(writer.open);
    return status;
}

const sj_exporter sj_exporter_speedscope = {
    .name = "speedscope",
    .endings = ".speedscope.json",
    .summary = "speedscope's own JSON",
    .lists_calls = true,
    .write = write_speedscope,
};

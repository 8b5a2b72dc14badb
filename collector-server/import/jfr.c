/* jfr: recordings of JDK Flight Recorder (version 2 of the format, JDK 9 and later). The events
 * jdk.ExecutionSample become samples of call paths. A function is "CLASS.METHOD" with the method's
 * descriptor, so that overloaded methods stay apart. Each sample weighs 1. */
#include "collector-server/import/importer.h"
#include "collector-server/import/jfr_chunk.h"
#include "proto/base/array.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>

#define MAGIC "FLR"

enum { MAGIC_BYTES = 4, MAJOR_VERSION = 2, MOST_CHUNK_BYTES = 1 << 30, MOST_FRAMES = 64 * 1024 };

typedef struct jfr_reader {
    sj_source *source;
    sj_import_log *log;
    sj_jfr_chunk chunk;
    sj_hash_map functions; /* number of a method in the chunk -> function */
    sj_hash_map paths;     /* number of a stack trace in the chunk -> path; 0: no frames */
    uint32_t *frames;      /* functions of the current stack trace, innermost first */
    size_t frame_count, frame_capacity;
    uint64_t start; /* offset of the chunk in the file */
    uint64_t without_stack, cut_stacks, native_samples;
} jfr_reader;

static sj_status refuse(const jfr_reader *reader, const sj_reader *at, const char *problem)
{
    return sj_source_fail(reader->source, SJ_ECORRUPT,
                          reader->start + (uint64_t)(at->at - reader->chunk.bytes.data), "%s",
                          problem);
}

/* Finds the function of a method. */
static sj_status find_function(jfr_reader *reader, const sj_jfr_field *field, sj_reader at,
                               uint32_t *function)
{
    char class[SJ_JFR_TEXT_BYTES];
    char method[SJ_JFR_TEXT_BYTES];
    char descriptor[SJ_JFR_TEXT_BYTES];
    char name[3 * SJ_JFR_TEXT_BYTES];
    sj_reader number_at = at;
    const uint64_t number = sj_jfr_number(&number_at);
    const sj_hash_entry *known = sj_hash_map_find(&reader->functions, number, 1);
    if (known != NULL) {
        *function = known->first;
        return SJ_OK;
    }
    sj_reader value;
    if (!sj_jfr_field_value(&reader->chunk, field, at, &value)) {
        return refuse(reader, &at, "a stack frame has an unknown method");
    }
    sj_jfr_text_find(&reader->chunk, field->type, value, "type name string", class);
    sj_jfr_text_find(&reader->chunk, field->type, value, "name string", method);
    sj_jfr_text_find(&reader->chunk, field->type, value, "descriptor string", descriptor);
    for (char *at_slash = class; *at_slash != '\0'; at_slash++) {
        *at_slash = *at_slash == '/' ? '.' : *at_slash;
    }
    (void)snprintf(name, sizeof(name), "%s.%s%s", class, method, descriptor);
    SJ_TRY(sj_import_log_function(reader->log, sj_import_text(name), (sj_slice){0}, function));
    return sj_hash_map_put(&reader->functions,
                           &(sj_hash_entry){.key = number, .sub = 1, .first = *function});
}

/* Reads the frames of a stack trace, innermost first. */
static sj_status read_frames(jfr_reader *reader, uint32_t type, sj_reader value)
{
    sj_jfr_chunk *chunk = &reader->chunk;
    const sj_jfr_field *frames = sj_jfr_field_find(chunk, type, "frames", &value);
    const uint64_t count = frames != NULL && frames->is_array ? sj_jfr_number(&value) : 0;
    const sj_jfr_field frame = {.type = frames != NULL ? frames->type : 0};
    reader->frame_count = 0;
    if (value.bad || count > MOST_FRAMES) {
        return refuse(reader, &value, "a stack trace is damaged");
    }
    for (uint64_t i = 0; i < count; i++) {
        sj_reader inner = value;
        const sj_jfr_field *method = sj_jfr_field_find(chunk, frame.type, "method", &inner);
        if (method == NULL || !method->is_constant) {
            return refuse(reader, &inner, "a stack frame has no method");
        }
        SJ_TRY(sj_array_reserve(&reader->frames, &reader->frame_capacity, reader->frame_count, 1,
                                sizeof(*reader->frames)));
        SJ_TRY(find_function(reader, method, inner, &reader->frames[reader->frame_count++]));
        sj_jfr_field_skip(chunk, &frame, &value);
    }
    return SJ_OK;
}

/* Finds the call path of a stack trace; 0 if it has no frames. */
static sj_status find_path(jfr_reader *reader, const sj_jfr_field *field, sj_reader at,
                           uint32_t *path)
{
    sj_reader number_at = at;
    const uint64_t number = sj_jfr_number(&number_at);
    const sj_hash_entry *known = sj_hash_map_find(&reader->paths, number, 1);
    *path = 0;
    if (known != NULL) {
        *path = known->first;
        return SJ_OK;
    }
    sj_reader value;
    if (!sj_jfr_field_value(&reader->chunk, field, at, &value)) {
        return SJ_OK;
    }
    SJ_TRY(read_frames(reader, field->type, value));
    for (size_t i = reader->frame_count; i > 0; i--) {
        SJ_TRY(sj_import_log_path(reader->log, *path, reader->frames[i - 1], path));
    }
    sj_reader truncated = value;
    if (sj_jfr_field_find(&reader->chunk, field->type, "truncated", &truncated) != NULL) {
        reader->cut_stacks += sj_read_u8(&truncated) != 0 ? 1 : 0;
    }
    return sj_hash_map_put(&reader->paths,
                           &(sj_hash_entry){.key = number, .sub = 1, .first = *path});
}

static sj_status read_sample(jfr_reader *reader, uint32_t type, sj_reader event)
{
    uint32_t path = 0;
    const sj_jfr_field *trace = sj_jfr_field_find(&reader->chunk, type, "stackTrace", &event);
    if (trace == NULL || event.bad || !trace->is_constant) {
        return refuse(reader, &event, "a sample has no stack trace");
    }
    SJ_TRY(find_path(reader, trace, event, &path));
    reader->without_stack += path == 0 ? 1 : 0;
    return path != 0 ? sj_import_log_sample(reader->log, path, 1, 1) : SJ_OK;
}

/* Reads the events of the chunk. */
static sj_status read_events(jfr_reader *reader)
{
    const sj_jfr_class *sample = sj_jfr_chunk_find(&reader->chunk, "jdk.ExecutionSample");
    const sj_jfr_class *native = sj_jfr_chunk_find(&reader->chunk, "jdk.NativeMethodSample");
    sj_reader at = sj_reader_of(reader->chunk.bytes.data, reader->chunk.bytes.size);
    (void)sj_read_bytes(&at, SJ_JFR_HEAD_BYTES);
    while (sj_reader_left(&at) != 0) {
        sj_reader event = at;
        const uint64_t size = sj_jfr_number(&event);
        const uint64_t type = sj_jfr_number(&event);
        if (event.bad || (uint64_t)(event.at - at.at) > size || sj_read_bytes(&at, size) == NULL) {
            return refuse(reader, &event, "the size of an event is wrong");
        }
        event.end = at.at;
        if (sample != NULL && type == sample->number) {
            SJ_TRY(read_sample(reader, sample->number, event));
        }
        reader->native_samples += native != NULL && type == native->number ? 1 : 0;
    }
    return SJ_OK;
}

/* Reads the chunk in `bytes`. */
static sj_status read_chunk(jfr_reader *reader, const uint8_t *bytes, size_t size)
{
    sj_status status = sj_jfr_chunk_read(&reader->chunk, (sj_slice){.data = bytes, .size = size});
    if (status == SJ_ECORRUPT) {
        status = sj_source_fail(reader->source, status, reader->start + reader->chunk.bad_at, "%s",
                                reader->chunk.problem);
    }
    if (status == SJ_OK) {
        status = read_events(reader);
    }
    sj_jfr_chunk_deinit(&reader->chunk);
    sj_hash_map_deinit(&reader->functions);
    sj_hash_map_deinit(&reader->paths);
    return status;
}

/* Checks the head of a chunk, and returns its size. */
static sj_status check_head(const jfr_reader *reader, const uint8_t *head, uint64_t *size)
{
    memcpy(size, head + SJ_JFR_SIZE_AT, sizeof(*size));
    *size = be64toh(*size);
    if (memcmp(head, MAGIC, MAGIC_BYTES) != 0) {
        return sj_source_fail(reader->source, SJ_ECORRUPT, reader->start,
                              "a chunk does not begin with " MAGIC);
    }
    if (head[4] != 0 || head[5] != MAJOR_VERSION) {
        return sj_source_fail(reader->source, SJ_EVERSION, reader->start,
                              "version %u of the format is not known; it has to be %d",
                              (unsigned)head[4] << 8 | head[5], MAJOR_VERSION);
    }
    if (*size < SJ_JFR_HEAD_BYTES) {
        return sj_source_fail(reader->source, SJ_ECORRUPT, reader->start,
                              "a chunk is not complete: its program was killed; complete the "
                              "recording with \"jfr assemble\"");
    }
    return *size <= MOST_CHUNK_BYTES
               ? SJ_OK
               : sj_source_fail(reader->source, SJ_ELIMIT, reader->start,
                                "a chunk has %" PRIu64 " bytes; the limit is %d", *size,
                                MOST_CHUNK_BYTES);
}

static sj_status read_chunks(jfr_reader *reader)
{
    uint8_t head[SJ_JFR_HEAD_BYTES];
    uint64_t size;
    do {
        reader->start = sj_source_offset(reader->source);
        SJ_TRY(sj_source_bytes(reader->source, head, sizeof(head), "the head of a chunk"));
        SJ_TRY(check_head(reader, head, &size));
        uint8_t *bytes = malloc(size);
        if (bytes == NULL) {
            return SJ_ENOMEM;
        }
        memcpy(bytes, head, sizeof(head));
        sj_status status =
            sj_source_bytes(reader->source, bytes + sizeof(head), size - sizeof(head), "a chunk");
        if (status == SJ_OK) {
            status = read_chunk(reader, bytes, size);
        }
        free(bytes);
        SJ_TRY(status);
    } while (sj_source_peek(reader->source) != SJ_SOURCE_END);
    return SJ_OK;
}

static sj_status read_jfr(sj_source *source, sj_import_log *log)
{
    jfr_reader reader = {.source = source, .log = log};
    const sj_status status = read_chunks(&reader);
    if (reader.without_stack != 0) {
        sj_import_log_note(log, "%" PRIu64 " samples have no stack: they were left out",
                           reader.without_stack);
    }
    if (reader.cut_stacks != 0) {
        sj_import_log_note(log, "%" PRIu64 " stacks are cut at their outer end (stackdepth)",
                           reader.cut_stacks);
    }
    if (reader.native_samples != 0) {
        sj_import_log_note(log, "%" PRIu64 " samples of native methods were left out",
                           reader.native_samples);
    }
    sj_import_log_note(log, "the file has samples, not calls: each counts as one call of its "
                            "innermost method, and as 1 ns; threads are not kept");
    free(reader.frames);
    return status;
}

static bool recognizes_jfr(sj_slice head)
{
    return head.size >= SJ_JFR_HEAD_BYTES && memcmp(head.data, MAGIC, MAGIC_BYTES) == 0;
}

const sj_importer sj_importer_jfr = {
    .name = "jfr",
    .summary = "execution samples of JDK Flight Recorder",
    .recognizes = recognizes_jfr,
    .read = read_jfr,
};

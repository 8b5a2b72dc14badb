/* pprof: profiles of Go, gperftools and `sojourn export`, compressed by gzip or not
 * (https://github.com/google/pprof, proto/profile.proto). A sample has a call path and values. The
 * value of the profile's default type is the weight; a first value that counts is the number of
 * samples. Fields may come in any order, so the file is in memory. */
#include "collector-server/import/importer.h"
#include "collector-server/import/proto_fields.h"
#include "collector-server/import/unpack.h"
#include "proto/base/array.h"

#include <stdlib.h>

enum {
    MOST_BYTES = 256 * 1024 * 1024,
    MOST_VALUES = 16,
    MOST_FRAMES = 64 * 1024,
    /* fields of Profile */
    SAMPLE_TYPE = 1,
    SAMPLE = 2,
    MAPPING = 3,
    LOCATION = 4,
    FUNCTION = 5,
    STRING = 6,
    DEFAULT_TYPE = 14
};

typedef struct frame_list {
    uint32_t *items; /* functions of the log, innermost first */
    size_t count, capacity;
} frame_list;

typedef struct pprof_reader {
    sj_source *source;
    sj_import_log *log;
    sj_slice profile;
    sj_slice *texts;
    size_t text_count, text_capacity;
    uint64_t types[MOST_VALUES], units[MOST_VALUES]; /* texts of the values of a sample */
    size_t type_count;
    uint64_t default_type;
    size_t weight, count;  /* which value is the weight, and which the number of samples */
    uint64_t factor;       /* a weight times this is in ns; 1 if it is not a time */
    sj_hash_map mappings;  /* by id: the text of its file */
    sj_hash_map functions; /* by id: the function of the log */
    sj_hash_map locations; /* by id: first and end of its functions in `frames` */
    frame_list frames;
    frame_list path; /* frames of the current sample */
} pprof_reader;

typedef sj_status (*field_receiver)(pprof_reader *reader, const sj_proto_field *field);

/* Fails at the place of `bytes`, which counts from the start of the unpacked file. */
static sj_status refuse(const pprof_reader *reader, sj_status status, const uint8_t *bytes,
                        const char *what)
{
    return sj_source_fail(reader->source, status, (uint64_t)(bytes - reader->profile.data), "%s",
                          what);
}

/* Passes all fields of that number. */
static sj_status each_field(pprof_reader *reader, uint32_t number, field_receiver receive)
{
    sj_reader message = sj_proto_message(reader->profile);
    sj_proto_field field;
    while (sj_proto_next(&message, &field)) {
        if (field.number == number) {
            SJ_TRY(receive(reader, &field));
        }
    }
    return message.bad ? refuse(reader, SJ_ECORRUPT, message.at, "the profile is cut or damaged")
                       : SJ_OK;
}

static sj_status add_text(pprof_reader *reader, const sj_proto_field *field)
{
    SJ_TRY(sj_array_reserve(&reader->texts, &reader->text_capacity, reader->text_count, 1,
                            sizeof(*reader->texts)));
    reader->texts[reader->text_count++] = field->bytes;
    return SJ_OK;
}

/* Returns a text of the string table, an empty one if its number is wrong. */
static sj_slice text_of(const pprof_reader *reader, uint64_t number)
{
    return number < reader->text_count ? reader->texts[number] : (sj_slice){0};
}

static bool is_text(const pprof_reader *reader, uint64_t number, const char *text)
{
    const sj_slice known = text_of(reader, number);
    return known.size == strlen(text) && memcmp(known.data, text, known.size) == 0;
}

static sj_status add_type(pprof_reader *reader, const sj_proto_field *field)
{
    uint64_t numbers[3] = {0};
    if (!sj_proto_numbers(field->bytes, numbers, 3) || reader->type_count == MOST_VALUES) {
        return refuse(reader, SJ_ECORRUPT, field->bytes.data,
                      "a sample type is damaged, or one too many");
    }
    reader->types[reader->type_count] = numbers[1];
    reader->units[reader->type_count++] = numbers[2];
    return SJ_OK;
}

static sj_status set_default(pprof_reader *reader, const sj_proto_field *field)
{
    reader->default_type = field->value;
    return SJ_OK;
}

static sj_status add_mapping(pprof_reader *reader, const sj_proto_field *field)
{
    uint64_t numbers[6] = {0};
    if (!sj_proto_numbers(field->bytes, numbers, 6)) {
        return refuse(reader, SJ_ECORRUPT, field->bytes.data, "a mapping is damaged");
    }
    return numbers[5] > UINT32_MAX
               ? SJ_OK
               : sj_hash_map_put(
                     &reader->mappings,
                     &(sj_hash_entry){.key = numbers[1], .sub = 1, .first = (uint32_t)numbers[5]});
}

/* The module of a function is its source file, as in speedscope files: a function has no mapping.
 */
static sj_status add_function(pprof_reader *reader, const sj_proto_field *field)
{
    uint64_t numbers[5] = {0};
    uint32_t function;
    if (!sj_proto_numbers(field->bytes, numbers, 5)) {
        return refuse(reader, SJ_ECORRUPT, field->bytes.data, "a function is damaged");
    }
    sj_slice name = text_of(reader, numbers[2]);
    if (name.size == 0) {
        name = text_of(reader, numbers[3]);
    }
    if (name.size == 0) {
        return refuse(reader, SJ_ECORRUPT, field->bytes.data, "a function has no name");
    }
    SJ_TRY(sj_import_log_function(reader->log, name, text_of(reader, numbers[4]), &function));
    return sj_hash_map_put(&reader->functions,
                           &(sj_hash_entry){.key = numbers[1], .sub = 1, .first = function});
}

static sj_status add_frame(frame_list *list, uint32_t function)
{
    SJ_TRY(sj_array_reserve(&list->items, &list->capacity, list->count, 1, sizeof(*list->items)));
    list->items[list->count++] = function;
    return SJ_OK;
}

/* Adds a frame for an address without a function. */
static sj_status add_address(pprof_reader *reader, uint64_t address, uint64_t mapping)
{
    char name[24];
    uint32_t function;
    const sj_hash_entry *known = sj_hash_map_find(&reader->mappings, mapping, 1);
    (void)snprintf(name, sizeof(name), "0x%llx", (unsigned long long)address);
    SJ_TRY(sj_import_log_function(reader->log, sj_import_text(name),
                                  known != NULL ? text_of(reader, known->first) : (sj_slice){0},
                                  &function));
    return add_frame(&reader->frames, function);
}

static sj_status add_line(pprof_reader *reader, sj_slice line)
{
    uint64_t numbers[2] = {0};
    if (!sj_proto_numbers(line, numbers, 2)) {
        return refuse(reader, SJ_ECORRUPT, line.data, "a line of a location is damaged");
    }
    const sj_hash_entry *known = sj_hash_map_find(&reader->functions, numbers[1], 1);
    return known != NULL ? add_frame(&reader->frames, known->first)
                         : refuse(reader, SJ_ECORRUPT, line.data, "a line has no function");
}

static sj_status add_location(pprof_reader *reader, const sj_proto_field *field)
{
    uint64_t numbers[4] = {0};
    const size_t first = reader->frames.count;
    sj_reader message = sj_proto_message(field->bytes);
    sj_proto_field part;
    while (sj_proto_next(&message, &part)) {
        if (part.is_bytes && part.number == 4) {
            SJ_TRY(add_line(reader, part.bytes));
        } else if (!part.is_bytes && part.number < 4) {
            numbers[part.number] = part.value;
        }
    }
    if (message.bad) {
        return refuse(reader, SJ_ECORRUPT, field->bytes.data, "a location is damaged");
    }
    if (reader->frames.count == first) {
        SJ_TRY(add_address(reader, numbers[3], numbers[2]));
    }
    return sj_hash_map_put(&reader->locations,
                           &(sj_hash_entry){.key = numbers[1],
                                            .sub = 1,
                                            .first = (uint32_t)first,
                                            .second = (uint32_t)reader->frames.count});
}

static sj_status add_to_path(pprof_reader *reader, uint64_t id, const uint8_t *at)
{
    const sj_hash_entry *location = sj_hash_map_find(&reader->locations, id, 1);
    if (location == NULL) {
        return refuse(reader, SJ_ECORRUPT, at, "a sample has an unknown location");
    }
    for (uint32_t i = location->first; i < location->second; i++) {
        if (reader->path.count == MOST_FRAMES) {
            return refuse(reader, SJ_ELIMIT, at, "a sample has too many frames");
        }
        SJ_TRY(add_frame(&reader->path, reader->frames.items[i]));
    }
    return SJ_OK;
}

/* Reads the locations and values of a sample, each packed or not. */
static sj_status read_sample(pprof_reader *reader, sj_slice sample, uint64_t *values,
                             size_t *value_count)
{
    sj_reader message = sj_proto_message(sample);
    sj_proto_field field;
    while (sj_proto_next(&message, &field)) {
        uint64_t one = field.value;
        sj_reader packed = sj_proto_message(field.bytes);
        while (field.number <= 2 && (!field.is_bytes || sj_reader_left(&packed) != 0)) {
            one = field.is_bytes ? sj_read_varint(&packed) : one;
            if (packed.bad) {
                return refuse(reader, SJ_ECORRUPT, sample.data, "a sample is damaged");
            }
            if (field.number == 1) {
                SJ_TRY(add_to_path(reader, one, sample.data));
            } else if (*value_count < MOST_VALUES) {
                values[(*value_count)++] = one;
            }
            if (!field.is_bytes) {
                break;
            }
        }
    }
    return message.bad ? refuse(reader, SJ_ECORRUPT, sample.data, "a sample is damaged") : SJ_OK;
}

static sj_status add_sample(pprof_reader *reader, const sj_proto_field *field)
{
    uint64_t values[MOST_VALUES] = {0};
    size_t count = 0;
    uint32_t path = 0;
    uint64_t weight;
    reader->path.count = 0;
    SJ_TRY(read_sample(reader, field->bytes, values, &count));
    if (count != reader->type_count) {
        return refuse(reader, SJ_ECORRUPT, field->bytes.data,
                      "a sample does not have one value of each type");
    }
    const uint64_t samples = reader->count != reader->weight ? values[reader->count] : 1;
    if (values[reader->weight] > INT64_MAX || samples > INT64_MAX) {
        return refuse(reader, SJ_EUNSUPPORTED, field->bytes.data,
                      "a value is negative: differences of profiles cannot be imported");
    }
    if (__builtin_mul_overflow(values[reader->weight], reader->factor, &weight)) {
        return SJ_ELIMIT;
    }
    for (size_t i = reader->path.count; i > 0; i--) {
        SJ_TRY(sj_import_log_path(reader->log, path, reader->path.items[i - 1], &path));
    }
    return path != 0 ? sj_import_log_samples(reader->log, path, samples, weight) : SJ_OK;
}

/* Decides which values count. Notes what they mean. */
static sj_status choose_values(pprof_reader *reader)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"nanoseconds", 1},
                 {"microseconds", 1000},
                 {"milliseconds", 1000000},
                 {"seconds", 1000000000}};
    if (reader->type_count == 0) {
        return refuse(reader, SJ_ECORRUPT, reader->profile.data, "the profile has no sample types");
    }
    reader->weight = reader->type_count - 1;
    for (size_t i = 0; i < reader->type_count && reader->default_type != 0; i++) {
        reader->weight = reader->types[i] == reader->default_type ? i : reader->weight;
    }
    /* In memory profiles, each number of objects is before its number of bytes. */
    reader->count = reader->weight != 0 ? reader->weight - 1 : 0;
    if (!is_text(reader, reader->units[reader->count], "count")) {
        reader->count = reader->weight;
    }
    reader->factor = 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (is_text(reader, reader->units[reader->weight], units[i].unit)) {
            reader->factor = units[i].ns;
        }
    }
    const sj_slice type = text_of(reader, reader->types[reader->weight]);
    const sj_slice unit = text_of(reader, reader->units[reader->weight]);
    if (reader->factor == 0) {
        sj_import_log_note(reader->log,
                           "the weights are %.*s in %.*s: they are shown as nanoseconds",
                           (int)(type.size < 40 ? type.size : 40), (const char *)type.data,
                           (int)(unit.size < 40 ? unit.size : 40), (const char *)unit.data);
        reader->factor = 1;
    }
    if (reader->type_count > (reader->count != reader->weight ? 2 : 1)) {
        sj_import_log_note(reader->log, "of %zu values of a sample, only %.*s was imported",
                           reader->type_count, (int)(type.size < 40 ? type.size : 40),
                           (const char *)type.data);
    }
    return SJ_OK;
}

static sj_status read_profile(pprof_reader *reader)
{
    SJ_TRY(each_field(reader, STRING, add_text));
    SJ_TRY(each_field(reader, SAMPLE_TYPE, add_type));
    SJ_TRY(each_field(reader, DEFAULT_TYPE, set_default));
    SJ_TRY(choose_values(reader));
    SJ_TRY(each_field(reader, MAPPING, add_mapping));
    SJ_TRY(each_field(reader, FUNCTION, add_function));
    SJ_TRY(each_field(reader, LOCATION, add_location));
    SJ_TRY(each_field(reader, SAMPLE, add_sample));
    sj_import_log_note(reader->log, "the format has sums of call paths, not calls or threads; "
                                    "labels of samples and line numbers are not kept");
    return SJ_OK;
}

static sj_status unpack_profile(pprof_reader *reader, uint8_t **bytes)
{
    uint8_t *packed = *bytes;
    size_t size;
    const sj_status status = sj_unpack(reader->profile, MOST_BYTES, bytes, &size);
    free(packed);
    if (status == SJ_OK) {
        reader->profile = (sj_slice){.data = *bytes, .size = size};
        return SJ_OK;
    }
    return sj_source_fail(reader->source, status, sj_source_offset(reader->source),
                          status == SJ_ELIMIT ? "the unpacked profile is larger than 256 MB"
                                              : "the compressed profile is cut or damaged");
}

static sj_status read_pprof(sj_source *source, sj_import_log *log)
{
    pprof_reader reader = {.source = source, .log = log};
    uint8_t *bytes = NULL;
    size_t size = 0;
    SJ_TRY(sj_source_rest(source, MOST_BYTES, &bytes, &size));
    reader.profile = (sj_slice){.data = bytes, .size = size};
    sj_status status = sj_unpack_is_gzip(reader.profile) ? unpack_profile(&reader, &bytes) : SJ_OK;
    if (status == SJ_OK) {
        status = read_profile(&reader);
    }
    free(bytes);
    free(reader.texts);
    free(reader.frames.items);
    free(reader.path.items);
    sj_hash_map_deinit(&reader.mappings);
    sj_hash_map_deinit(&reader.functions);
    sj_hash_map_deinit(&reader.locations);
    return status;
}

/* True if the file begins with a sample type: a message of two numbers. */
static bool recognizes_pprof(sj_slice head)
{
    uint8_t unpacked[64];
    sj_slice bytes = head;
    if (sj_unpack_is_gzip(head)) {
        bytes =
            (sj_slice){.data = unpacked, .size = sj_unpack_head(head, unpacked, sizeof(unpacked))};
    }
    sj_reader reader = sj_proto_message(bytes);
    sj_proto_field field;
    if (bytes.size == 0 || bytes.data[0] != (SAMPLE_TYPE << 3 | 2) ||
        !sj_proto_next(&reader, &field) || field.bytes.size == 0 || field.bytes.size > 12) {
        return false;
    }
    uint32_t last = 0;
    sj_reader type = sj_proto_message(field.bytes);
    while (sj_proto_next(&type, &field)) {
        if (field.is_bytes || field.number > 2 || field.number <= last) {
            return false;
        }
        last = field.number;
    }
    return !type.bad;
}

const sj_importer sj_importer_pprof = {
    .name = "pprof",
    .summary = "profiles of Go, gperftools and other tools for pprof",
    .recognizes = recognizes_pprof,
    .read = read_pprof,
};

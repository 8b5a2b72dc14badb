/* arrow: an Arrow IPC file of the session's calls, with dictionaries of function names and endings
 * (https://arrow.apache.org/docs/format/Columnar.html).
 *
 * Design notes. The file is a stream of messages, followed by a footer with their positions. So the
 * exporter writes the file in a single pass, and the output can be a pipe. A message consists of
 * metadata and a body. The metadata is a flatbuffer of the Arrow columnar format, version 5. The
 * body consists of buffers, each padded to 8 bytes. More tools open such files than bare streams of
 * messages.
 *
 * Bodies are not compressed, because not every reader can decompress them; `parquet` is the small
 * format. The dictionary of names contains every function of the session's modules: it precedes the
 * calls, and not every reader supports later additions. */
#include "collector-server/export/call_columns.h"
#include "collector-server/export/exporter.h"
#include "collector-server/export/flat_buffer.h"
#include "proto/base/array.h"
#include "proto/base/utf8_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "ARROW1"

/* Constants of Arrow's Schema.fbs and Message.fbs. */
enum { VERSION_5 = 4, TYPE_INT = 2, TYPE_UTF8 = 5, TYPE_TIMESTAMP = 10, UNIT_NANOSECOND = 3 };
enum { HEADER_SCHEMA = 1, HEADER_DICTIONARY, HEADER_RECORDS };
enum { DICTIONARY_FUNCTIONS, DICTIONARY_ENDINGS, DICTIONARIES };
enum { PREFIX_BYTES = 8, BLOCK_BYTES = 24, BUFFER_BYTES = 16 };

/* The position of a message in the file. */
typedef struct message_place {
    uint64_t offset, metadata_bytes, body_bytes;
} message_place;

typedef struct arrow_writer {
    FILE *output;
    uint64_t written;
    sj_call_reader calls;
    sj_byte_buffer metadata, column;
    message_place dictionaries[DICTIONARIES];
    message_place *batches;
    size_t batch_count, batch_capacity;
} arrow_writer;

typedef struct body_plan {
    uint64_t buffers[2 * SJ_CALL_COLUMNS]; /* sizes in bytes without padding, in file order */
    size_t buffer_count;
    uint64_t rows[SJ_CALL_COLUMNS], null_counts[SJ_CALL_COLUMNS]; /* by column */
    size_t column_count;
} body_plan;

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static void write_bytes(arrow_writer *writer, const void *data, size_t size)
{
    if (size != 0) {
        fwrite(data, 1, size, writer->output);
    }
    writer->written += size;
}

static void write_padding(arrow_writer *writer)
{
    static const uint8_t zeros[8];
    write_bytes(writer, zeros, padded(writer->written) - writer->written);
}

static unsigned type_bits(sj_call_column_kind kind)
{
    return kind == SJ_CALL_ENDING ? 8 : kind == SJ_CALL_INT || kind == SJ_CALL_FUNCTION ? 32 : 64;
}

static size_t put_int_type(sj_byte_buffer *out, unsigned bits)
{
    return sj_flat_table(out, (const sj_flat_field[]){{4, bits}, {1, 1}}, 2, NULL);
}

static size_t put_value_type(sj_byte_buffer *out, const sj_call_column *column)
{
    if (column->kind == SJ_CALL_FUNCTION || column->kind == SJ_CALL_ENDING) {
        return sj_flat_table(out, NULL, 0, NULL);
    }
    if (column->kind != SJ_CALL_TIME) {
        return put_int_type(out, type_bits(column->kind));
    }
    size_t places[2];
    const size_t type = sj_flat_table(
        out, (const sj_flat_field[]){{2, UNIT_NANOSECOND}, SJ_FLAT_REFERENCE}, 2, places);
    sj_flat_point(out, places[1], sj_flat_text(out, "UTC"));
    return type;
}

static size_t put_field(sj_byte_buffer *out, const sj_call_column *column)
{
    const bool is_text = column->kind == SJ_CALL_FUNCTION || column->kind == SJ_CALL_ENDING;
    const unsigned type = is_text                        ? TYPE_UTF8
                          : column->kind == SJ_CALL_TIME ? TYPE_TIMESTAMP
                                                         : TYPE_INT;
    const sj_flat_field none = {0, 0};
    const sj_flat_field fields[] = {SJ_FLAT_REFERENCE,
                                    {1, column->nullable},
                                    {1, type},
                                    SJ_FLAT_REFERENCE,
                                    is_text ? SJ_FLAT_REFERENCE : none,
                                    SJ_FLAT_REFERENCE};
    size_t places[6];
    const size_t field = sj_flat_table(out, fields, 6, places);
    sj_flat_point(out, places[0], sj_flat_text(out, column->name));
    sj_flat_point(out, places[3], put_value_type(out, column));
    if (is_text) {
        const unsigned id =
            column->kind == SJ_CALL_FUNCTION ? DICTIONARY_FUNCTIONS : DICTIONARY_ENDINGS;
        size_t inner[2];
        const size_t encoding =
            sj_flat_table(out, (const sj_flat_field[]){{8, id}, SJ_FLAT_REFERENCE}, 2, inner);
        sj_flat_point(out, places[4], encoding);
        sj_flat_point(out, inner[1], put_int_type(out, type_bits(column->kind)));
    }
    sj_flat_point(out, places[5], sj_flat_vector(out, 0, 4, 4)); /* no children */
    return field;
}

static size_t put_schema(sj_byte_buffer *out)
{
    size_t places[2];
    const size_t schema =
        sj_flat_table(out, (const sj_flat_field[]){{2, 0}, SJ_FLAT_REFERENCE}, 2, places);
    const size_t fields = sj_flat_vector(out, SJ_CALL_COLUMNS, 4, 4);
    sj_flat_point(out, places[1], fields);
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        sj_flat_point(out, fields + 4 + 4 * i, put_field(out, &sj_call_columns[i]));
    }
    return schema;
}

static size_t put_records(sj_byte_buffer *out, const body_plan *plan)
{
    size_t places[3];
    const size_t records = sj_flat_table(
        out, (const sj_flat_field[]){{8, plan->rows[0]}, SJ_FLAT_REFERENCE, SJ_FLAT_REFERENCE}, 3,
        places);
    const size_t nodes = sj_flat_vector(out, plan->column_count, BUFFER_BYTES, 8);
    sj_flat_point(out, places[1], nodes);
    for (size_t i = 0; i < plan->column_count; ++i) {
        sj_byte_buffer_set(out, nodes + 4 + i * BUFFER_BYTES, plan->rows[i], 8);
        sj_byte_buffer_set(out, nodes + 12 + i * BUFFER_BYTES, plan->null_counts[i], 8);
    }
    const size_t buffers = sj_flat_vector(out, plan->buffer_count, BUFFER_BYTES, 8);
    sj_flat_point(out, places[2], buffers);
    uint64_t offset = 0;
    for (size_t i = 0; i < plan->buffer_count; ++i) {
        sj_byte_buffer_set(out, buffers + 4 + i * BUFFER_BYTES, offset, 8);
        sj_byte_buffer_set(out, buffers + 12 + i * BUFFER_BYTES, plan->buffers[i], 8);
        offset += padded(plan->buffers[i]);
    }
    return records;
}

static size_t put_dictionary(sj_byte_buffer *out, unsigned id, const body_plan *plan)
{
    size_t places[2];
    const size_t dictionary =
        sj_flat_table(out, (const sj_flat_field[]){{8, id}, SJ_FLAT_REFERENCE}, 2, places);
    sj_flat_point(out, places[1], put_records(out, plan));
    return dictionary;
}

/* Writes the metadata of a message and returns the position of the message. The caller writes the
 * body. `plan` is NULL for HEADER_SCHEMA, which has no body. */
static message_place write_message(arrow_writer *writer, unsigned header, unsigned dictionary,
                                   const body_plan *plan)
{
    sj_byte_buffer *out = &writer->metadata;
    uint64_t body = 0;
    for (size_t i = 0; plan != NULL && i < plan->buffer_count; ++i) {
        body += padded(plan->buffers[i]);
    }
    sj_byte_buffer_clear(out);
    sj_byte_buffer_put_number(out, 0, 4);
    size_t places[4];
    const sj_flat_field fields[] = {{2, VERSION_5}, {1, header}, SJ_FLAT_REFERENCE, {8, body}};
    sj_flat_point(out, 0, sj_flat_table(out, fields, 4, places));
    sj_flat_point(out, places[2],
                  header == HEADER_SCHEMA       ? put_schema(out)
                  : header == HEADER_DICTIONARY ? put_dictionary(out, dictionary, plan)
                                                : put_records(out, plan));
    sj_byte_buffer_align(out, 8);
    const message_place place = {writer->written, PREFIX_BYTES + out->size, body};
    const uint32_t prefix[] = {UINT32_MAX, (uint32_t)out->size};
    write_bytes(writer, prefix, sizeof(prefix));
    write_bytes(writer, out->bytes, out->size);
    return place;
}

/* Writes the metadata of a dictionary. Its body has three buffers: validity bits (empty, as no text
 * is NULL), the offsets of the texts, and the texts. */
static void write_dictionary_head(arrow_writer *writer, unsigned dictionary, uint32_t count,
                                  uint64_t bytes)
{
    const body_plan plan = {.buffers = {0, 4 * ((uint64_t)count + 1), bytes},
                            .buffer_count = 3,
                            .rows = {count},
                            .column_count = 1};
    writer->dictionaries[dictionary] = write_message(writer, HEADER_DICTIONARY, dictionary, &plan);
}

static const char *text_at(arrow_writer *writer, unsigned dictionary, uint32_t place)
{
    return dictionary == DICTIONARY_FUNCTIONS ? sj_call_reader_name(&writer->calls, place)
                                              : sj_call_endings[place];
}

static sj_status write_dictionary(arrow_writer *writer, unsigned dictionary, uint32_t count,
                                  uint64_t bytes)
{
    write_dictionary_head(writer, dictionary, count, bytes);
    uint32_t offset = 0;
    write_bytes(writer, &offset, sizeof(offset));
    for (uint32_t i = 0; i < count; ++i) {
        offset += (uint32_t)sj_utf8_clean(text_at(writer, dictionary, i), NULL);
        write_bytes(writer, &offset, sizeof(offset));
    }
    write_padding(writer);
    for (uint32_t i = 0; i < count; ++i) {
        const char *text = text_at(writer, dictionary, i);
        sj_byte_buffer_clear(&writer->column);
        uint8_t *place = sj_byte_buffer_add(&writer->column, sj_utf8_clean(text, NULL));
        if (writer->column.failed) {
            return SJ_ENOMEM;
        }
        if (place != NULL) { /* an empty text has no bytes */
            write_bytes(writer, place, sj_utf8_clean(text, (char *)place));
        }
    }
    write_padding(writer);
    return offset == bytes ? SJ_OK : SJ_ECORRUPT;
}

/* Writes the values of a column in the width of the column's type. */
static sj_status write_values(arrow_writer *writer, size_t column)
{
    const sj_call_reader *calls = &writer->calls;
    const size_t bytes = type_bits(sj_call_columns[column].kind) / 8;
    if (bytes == sizeof(int64_t)) {
        write_bytes(writer, calls->values[column], calls->rows * bytes);
        return SJ_OK;
    }
    sj_byte_buffer_clear(&writer->column);
    uint8_t *place = sj_byte_buffer_add(&writer->column, calls->rows * bytes);
    if (place == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t row = 0; row < calls->rows; ++row) {
        /* The low bytes come first in memory: all supported machines are little-endian. */
        memcpy(place + row * bytes, &calls->values[column][row], bytes);
    }
    write_bytes(writer, place, calls->rows * bytes);
    return SJ_OK;
}

static sj_status write_batch(arrow_writer *writer)
{
    const sj_call_reader *calls = &writer->calls;
    body_plan plan = {.column_count = SJ_CALL_COLUMNS, .buffer_count = 2 * SJ_CALL_COLUMNS};
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        plan.rows[i] = calls->rows;
        plan.null_counts[i] = calls->null_count[i];
        plan.buffers[2 * i] = calls->null_count[i] != 0 ? (calls->rows + 7) / 8 : 0;
        plan.buffers[2 * i + 1] = calls->rows * (type_bits(sj_call_columns[i].kind) / 8);
    }
    SJ_TRY(sj_array_reserve(&writer->batches, &writer->batch_capacity, writer->batch_count, 1,
                            sizeof(*writer->batches)));
    writer->batches[writer->batch_count++] = write_message(writer, HEADER_RECORDS, 0, &plan);
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        write_bytes(writer, calls->valid[i], plan.buffers[2 * i]);
        write_padding(writer);
        SJ_TRY(write_values(writer, i));
        write_padding(writer);
    }
    return SJ_OK;
}

static size_t put_message_places(sj_byte_buffer *out, const message_place *places, size_t count)
{
    const size_t blocks = sj_flat_vector(out, count, BLOCK_BYTES, 8);
    for (size_t i = 0; i < count; ++i) {
        sj_byte_buffer_set(out, blocks + 4 + i * BLOCK_BYTES, places[i].offset, 8);
        sj_byte_buffer_set(out, blocks + 12 + i * BLOCK_BYTES, places[i].metadata_bytes, 4);
        sj_byte_buffer_set(out, blocks + 20 + i * BLOCK_BYTES, places[i].body_bytes, 8);
    }
    return blocks;
}

static void write_footer(arrow_writer *writer)
{
    static const uint32_t end_of_stream[] = {UINT32_MAX, 0};
    sj_byte_buffer *out = &writer->metadata;
    write_bytes(writer, end_of_stream, sizeof(end_of_stream));
    sj_byte_buffer_clear(out);
    sj_byte_buffer_put_number(out, 0, 4);
    size_t places[4];
    const sj_flat_field fields[] = {
        {2, VERSION_5}, SJ_FLAT_REFERENCE, SJ_FLAT_REFERENCE, SJ_FLAT_REFERENCE};
    sj_flat_point(out, 0, sj_flat_table(out, fields, 4, places));
    sj_flat_point(out, places[1], put_schema(out));
    sj_flat_point(out, places[2], put_message_places(out, writer->dictionaries, DICTIONARIES));
    sj_flat_point(out, places[3], put_message_places(out, writer->batches, writer->batch_count));
    const uint32_t footer_bytes = (uint32_t)out->size;
    write_bytes(writer, out->bytes, out->size);
    write_bytes(writer, &footer_bytes, sizeof(footer_bytes));
    write_bytes(writer, MAGIC, strlen(MAGIC));
}

static sj_status write_file(arrow_writer *writer, sj_error *error)
{
    sj_call_reader *calls = &writer->calls;
    if (calls->name_bytes > INT32_MAX) {
        return sj_fail(error, SJ_ELIMIT,
                       "the names of the session's functions take %" PRIu64
                       " bytes, and Arrow's dictionaries no more than 2 GB",
                       calls->name_bytes);
    }
    write_bytes(writer, MAGIC, strlen(MAGIC));
    write_padding(writer);
    (void)write_message(writer, HEADER_SCHEMA, 0, NULL);
    SJ_TRY(
        write_dictionary(writer, DICTIONARY_FUNCTIONS, calls->function_count, calls->name_bytes));
    uint64_t bytes = 0;
    for (size_t i = 0; i < SJ_CALL_ENDINGS; ++i) {
        bytes += strlen(sj_call_endings[i]);
    }
    SJ_TRY(write_dictionary(writer, DICTIONARY_ENDINGS, SJ_CALL_ENDINGS, bytes));
    SJ_TRY(sj_call_reader_next(calls, error));
    while (calls->rows != 0) {
        SJ_TRY(write_batch(writer));
        SJ_TRY(sj_call_reader_next(calls, error));
    }
    write_footer(writer);
    return SJ_OK;
}

static sj_status write_arrow(sqlite3 *database, const sj_call_part *part, FILE *output,
                             sj_error *error)
{
    arrow_writer writer = {.output = output};
    sj_status status = sj_call_reader_open(&writer.calls, database, part, error);
    if (status == SJ_OK) {
        status = write_file(&writer, error);
    }
    if (writer.metadata.failed || status == SJ_ENOMEM) {
        status = sj_fail(error, SJ_ENOMEM, "no memory for the columns");
    } else if (status == SJ_ECORRUPT) {
        status = sj_fail(error, status, "names of functions cannot be read");
    }
    sj_call_reader_close(&writer.calls);
    sj_byte_buffer_deinit(&writer.metadata);
    sj_byte_buffer_deinit(&writer.column);
    free(writer.batches);
    return status;
}

const sj_exporter sj_exporter_arrow = {
    .name = "arrow",
    .endings = ".arrow",
    .summary = "the calls as an Arrow IPC file, for Python, R and data frames",
    .lists_calls = true,
    .write = write_arrow,
};

/* parquet: a compressed Parquet file of the session's calls (https://parquet.apache.org/docs/). The
 * numbers in the calls of sj_thrift_* are field ids of parquet.thrift.
 *
 * Design notes. A row group is a batch of the reader. Each of its column chunks has one page of
 * values, which parquet_pages.c encodes. The footer describes all chunks, so it stays in memory:
 * some kilobytes per row group. */
#include "collector-server/export/exporter.h"
#include "collector-server/export/parquet_pages.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "PAR1"

enum { REQUIRED = 0, OPTIONAL = 1, CONVERTED_UTF8 = 0, LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8 };

typedef struct parquet_writer {
    FILE *output;
    uint64_t written;
    int64_t rows, groups;
    sj_call_reader calls;
    sj_parquet_pages pages;
    sj_byte_buffer footer, group_list; /* `group_list`: encoded row groups for the footer */
} parquet_writer;

static void write_bytes(parquet_writer *writer, const void *data, size_t size)
{
    if (size != 0) {
        fwrite(data, 1, size, writer->output);
    }
    writer->written += size;
}

static bool is_text(const sj_call_column *column)
{
    return column->kind == SJ_CALL_FUNCTION || column->kind == SJ_CALL_ENDING;
}

static int physical_type(const sj_call_column *column)
{
    return is_text(column)               ? SJ_PARQUET_BYTE_ARRAY
           : column->kind == SJ_CALL_INT ? SJ_PARQUET_INT32
                                         : SJ_PARQUET_INT64;
}

static void put_column(sj_thrift_writer *thrift, const sj_call_column *column)
{
    sj_thrift_element_begin(thrift);
    sj_thrift_number(thrift, 1, SJ_THRIFT_I32, physical_type(column));
    sj_thrift_number(thrift, 3, SJ_THRIFT_I32, column->nullable ? OPTIONAL : REQUIRED);
    sj_thrift_text(thrift, 4, column->name);
    if (is_text(column)) {
        sj_thrift_number(thrift, 6, SJ_THRIFT_I32, CONVERTED_UTF8);
        sj_thrift_begin(thrift, 10);
        sj_thrift_empty(thrift, LOGICAL_STRING);
        sj_thrift_end(thrift);
    } else if (column->kind == SJ_CALL_TIME) {
        sj_thrift_begin(thrift, 10);
        sj_thrift_begin(thrift, LOGICAL_TIMESTAMP);
        sj_thrift_true(thrift, 1); /* UTC */
        sj_thrift_begin(thrift, 2);
        sj_thrift_empty(thrift, 3); /* nanoseconds */
        sj_thrift_end(thrift);
        sj_thrift_end(thrift);
        sj_thrift_end(thrift);
    }
    sj_thrift_end(thrift);
}

static void put_schema(sj_thrift_writer *thrift)
{
    sj_thrift_list(thrift, 2, SJ_THRIFT_STRUCT, SJ_CALL_COLUMNS + 1);
    sj_thrift_element_begin(thrift);
    sj_thrift_text(thrift, 4, "calls");
    sj_thrift_number(thrift, 5, SJ_THRIFT_I32, SJ_CALL_COLUMNS);
    sj_thrift_end(thrift);
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        put_column(thrift, &sj_call_columns[i]);
    }
}

static void put_range(sj_thrift_writer *thrift, const sj_parquet_chunk *chunk,
                      const sj_call_column *column, size_t null_count)
{
    const size_t bytes = physical_type(column) == SJ_PARQUET_INT32 ? 4 : 8;
    sj_thrift_begin(thrift, 12);
    sj_thrift_number(thrift, 3, SJ_THRIFT_I64, (int64_t)null_count);
    if (chunk->has_range) {
        /* The low bytes come first in memory: all supported machines are little-endian. */
        sj_thrift_bytes(thrift, 5, &chunk->greatest, bytes);
        sj_thrift_bytes(thrift, 6, &chunk->least, bytes);
    }
    sj_thrift_end(thrift);
}

static void put_chunk(parquet_writer *writer, sj_thrift_writer *thrift, size_t number,
                      const sj_parquet_chunk *chunk)
{
    const sj_call_column *column = &sj_call_columns[number];
    sj_thrift_element_begin(thrift);
    sj_thrift_number(thrift, 2, SJ_THRIFT_I64, (int64_t)writer->written);
    sj_thrift_begin(thrift, 3);
    sj_thrift_number(thrift, 1, SJ_THRIFT_I32, physical_type(column));
    sj_thrift_list(thrift, 2, SJ_THRIFT_I32, 3);
    sj_thrift_element_number(thrift, SJ_PARQUET_PLAIN);
    sj_thrift_element_number(thrift, SJ_PARQUET_RLE);
    sj_thrift_element_number(thrift, is_text(column) ? SJ_PARQUET_DICTIONARY : SJ_PARQUET_DELTA);
    sj_thrift_list(thrift, 3, SJ_THRIFT_BINARY, 1);
    sj_thrift_element_text(thrift, column->name);
    sj_thrift_number(thrift, 4, SJ_THRIFT_I32, SJ_PARQUET_ZSTD);
    sj_thrift_number(thrift, 5, SJ_THRIFT_I64, (int64_t)writer->calls.rows);
    sj_thrift_number(thrift, 6, SJ_THRIFT_I64, (int64_t)chunk->plain_bytes);
    sj_thrift_number(thrift, 7, SJ_THRIFT_I64, (int64_t)chunk->stored_bytes);
    sj_thrift_number(thrift, 9, SJ_THRIFT_I64,
                     (int64_t)(writer->written + chunk->dictionary_bytes));
    if (chunk->dictionary_bytes != 0) {
        sj_thrift_number(thrift, 11, SJ_THRIFT_I64, (int64_t)writer->written);
    }
    put_range(thrift, chunk, column, writer->calls.null_count[number]);
    sj_thrift_end(thrift);
    sj_thrift_end(thrift);
}

static sj_status write_group(parquet_writer *writer)
{
    sj_thrift_writer thrift = {.out = &writer->group_list};
    uint64_t plain_bytes = 0;
    sj_thrift_element_begin(&thrift);
    sj_thrift_list(&thrift, 1, SJ_THRIFT_STRUCT, SJ_CALL_COLUMNS);
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        sj_parquet_chunk chunk;
        SJ_TRY(sj_parquet_pages_make(&writer->pages, &writer->calls, i, &chunk));
        put_chunk(writer, &thrift, i, &chunk);
        write_bytes(writer, writer->pages.out.bytes, writer->pages.out.size);
        plain_bytes += chunk.plain_bytes;
    }
    sj_thrift_number(&thrift, 2, SJ_THRIFT_I64, (int64_t)plain_bytes);
    sj_thrift_number(&thrift, 3, SJ_THRIFT_I64, (int64_t)writer->calls.rows);
    sj_thrift_end(&thrift);
    writer->rows += (int64_t)writer->calls.rows;
    ++writer->groups;
    return writer->group_list.failed ? SJ_ENOMEM : SJ_OK;
}

static sj_status write_footer(parquet_writer *writer)
{
    sj_thrift_writer thrift = {.out = &writer->footer};
    sj_thrift_number(&thrift, 1, SJ_THRIFT_I32, 2); /* version of the format */
    put_schema(&thrift);
    sj_thrift_number(&thrift, 3, SJ_THRIFT_I64, writer->rows);
    sj_thrift_list(&thrift, 4, SJ_THRIFT_STRUCT, (size_t)writer->groups);
    sj_byte_buffer_put(thrift.out, writer->group_list.bytes, writer->group_list.size);
    sj_thrift_text(&thrift, 6, "Sojourn");
    /* the order by which least and greatest are defined */
    sj_thrift_list(&thrift, 7, SJ_THRIFT_STRUCT, SJ_CALL_COLUMNS);
    for (size_t i = 0; i < SJ_CALL_COLUMNS; ++i) {
        sj_thrift_element_begin(&thrift);
        sj_thrift_empty(&thrift, 1); /* the order of the type */
        sj_thrift_end(&thrift);
    }
    sj_byte_buffer_put_number(thrift.out, 0, 1);
    sj_byte_buffer_put_number(thrift.out, writer->footer.size, 4);
    sj_byte_buffer_put(thrift.out, MAGIC, strlen(MAGIC));
    write_bytes(writer, writer->footer.bytes, writer->footer.size);
    return writer->footer.failed ? SJ_ENOMEM : SJ_OK;
}

static sj_status write_file(parquet_writer *writer, sj_error *error)
{
    SJ_TRY(sj_parquet_pages_open(&writer->pages, writer->calls.function_count));
    write_bytes(writer, MAGIC, strlen(MAGIC));
    SJ_TRY(sj_call_reader_next(&writer->calls, error));
    while (writer->calls.rows != 0) {
        SJ_TRY(write_group(writer));
        SJ_TRY(sj_call_reader_next(&writer->calls, error));
    }
    return write_footer(writer);
}

static sj_status write_parquet(sqlite3 *database, const sj_call_part *part, FILE *output,
                               sj_error *error)
{
    parquet_writer writer = {.output = output};
    sj_status status = sj_call_reader_open(&writer.calls, database, part, error);
    if (status == SJ_OK) {
        status = write_file(&writer, error);
    }
    if (status == SJ_ENOMEM) {
        status = sj_fail(error, status, "no memory for the columns");
    }
    sj_call_reader_close(&writer.calls);
    sj_parquet_pages_close(&writer.pages);
    sj_byte_buffer_deinit(&writer.footer);
    sj_byte_buffer_deinit(&writer.group_list);
    return status;
}

const sj_exporter sj_exporter_parquet = {
    .name = "parquet",
    .endings = ".parquet",
    .summary = "the calls as a Parquet file, for DuckDB, ClickHouse and data frames",
    .lists_calls = true,
    .write = write_parquet,
};

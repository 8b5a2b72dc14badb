#include "collector-server/export/thrift_writer.h"

#include <string.h>

enum { SHORT_LIST = 15, LONG_LIST = 0xf0 };

/* Writes a field header, in its one-byte form: ids must ascend by less than 16. */
static void put_header(sj_thrift_writer *writer, unsigned id, sj_thrift_type type)
{
    unsigned *last = &writer->last[writer->depth];
    sj_byte_buffer_put_number(writer->out, (id - *last) << 4 | (unsigned)type, 1);
    *last = id;
}

void sj_thrift_number(sj_thrift_writer *writer, unsigned id, sj_thrift_type type, int64_t value)
{
    put_header(writer, id, type);
    sj_byte_buffer_put_zigzag(writer->out, value);
}

void sj_thrift_true(sj_thrift_writer *writer, unsigned id)
{
    put_header(writer, id, SJ_THRIFT_TRUE);
}

void sj_thrift_bytes(sj_thrift_writer *writer, unsigned id, const void *data, size_t size)
{
    put_header(writer, id, SJ_THRIFT_BINARY);
    sj_byte_buffer_put_varint(writer->out, size);
    sj_byte_buffer_put(writer->out, data, size);
}

void sj_thrift_text(sj_thrift_writer *writer, unsigned id, const char *text)
{
    sj_thrift_bytes(writer, id, text, strlen(text));
}

void sj_thrift_list(sj_thrift_writer *writer, unsigned id, sj_thrift_type type, size_t count)
{
    put_header(writer, id, SJ_THRIFT_LIST);
    if (count < SHORT_LIST) {
        sj_byte_buffer_put_number(writer->out, count << 4 | (unsigned)type, 1);
        return;
    }
    sj_byte_buffer_put_number(writer->out, LONG_LIST | (unsigned)type, 1);
    sj_byte_buffer_put_varint(writer->out, count);
}

void sj_thrift_element_number(sj_thrift_writer *writer, int64_t value)
{
    sj_byte_buffer_put_zigzag(writer->out, value);
}

void sj_thrift_element_text(sj_thrift_writer *writer, const char *text)
{
    sj_byte_buffer_put_varint(writer->out, strlen(text));
    sj_byte_buffer_put(writer->out, text, strlen(text));
}

void sj_thrift_element_begin(sj_thrift_writer *writer)
{
    writer->last[++writer->depth] = 0;
}

void sj_thrift_begin(sj_thrift_writer *writer, unsigned id)
{
    put_header(writer, id, SJ_THRIFT_STRUCT);
    sj_thrift_element_begin(writer);
}

void sj_thrift_end(sj_thrift_writer *writer)
{
    sj_byte_buffer_put_number(writer->out, 0, 1);
    --writer->depth;
}

void sj_thrift_empty(sj_thrift_writer *writer, unsigned id)
{
    sj_thrift_begin(writer, id);
    sj_thrift_end(writer);
}

/* Writes Thrift's compact protocol, the format of Parquet's metadata. The caller writes the fields
 * of a structure in ascending order of their ids. If out of memory, out->failed is set. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_THRIFT_WRITER_H
#define SJ_COLLECTOR_SERVER_EXPORT_THRIFT_WRITER_H

#include "proto/base/byte_buffer.h"

enum { SJ_THRIFT_MAX_NESTING = 8 };

typedef enum sj_thrift_type {
    SJ_THRIFT_TRUE = 1,
    SJ_THRIFT_I32 = 5,
    SJ_THRIFT_I64 = 6,
    SJ_THRIFT_BINARY = 8,
    SJ_THRIFT_LIST = 9,
    SJ_THRIFT_STRUCT = 12
} sj_thrift_type;

/* Initialize it with `{.out = &buffer}`. */
typedef struct sj_thrift_writer {
    sj_byte_buffer *out;
    unsigned depth; /* number of open structures inside the outermost one */
    /* by nesting level: id of the latest field of the structure */
    unsigned last[SJ_THRIFT_MAX_NESTING];
} sj_thrift_writer;

/* Write one field of the innermost open structure. */
void sj_thrift_number(sj_thrift_writer *writer, unsigned id, sj_thrift_type type, int64_t value);
void sj_thrift_true(sj_thrift_writer *writer, unsigned id);
void sj_thrift_bytes(sj_thrift_writer *writer, unsigned id, const void *data, size_t size);
void sj_thrift_text(sj_thrift_writer *writer, unsigned id, const char *text);

/* Begins a field that is a list of `count` elements. The caller then writes the elements with the
 * functions below, or appends the bytes of encoded structures. sj_thrift_element_begin opens a
 * structure, which sj_thrift_end closes. */
void sj_thrift_list(sj_thrift_writer *writer, unsigned id, sj_thrift_type type, size_t count);
void sj_thrift_element_number(sj_thrift_writer *writer, int64_t value);
void sj_thrift_element_text(sj_thrift_writer *writer, const char *text);
void sj_thrift_element_begin(sj_thrift_writer *writer);

/* sj_thrift_begin opens a field that is a structure. sj_thrift_end closes the innermost open
 * structure. */
void sj_thrift_begin(sj_thrift_writer *writer, unsigned id);
void sj_thrift_end(sj_thrift_writer *writer);

/* Writes a field that is a structure without fields, for example the chosen member of a union. */
void sj_thrift_empty(sj_thrift_writer *writer, unsigned id);

#endif

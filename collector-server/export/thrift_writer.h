/* Thrift's compact protocol: what Parquet's metadata is made of. Structures nest, fields of each
 * come by rising ids. Failures are kept in the buffer. */
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

/* Begins in a structure: `{.out = &buffer}`. */
typedef struct sj_thrift_writer {
    sj_byte_buffer *out;
    unsigned depth;
    unsigned last[SJ_THRIFT_MAX_NESTING]; /* id of the last field of each open structure */
} sj_thrift_writer;

/* Fields of the open structure. */
void sj_thrift_number(sj_thrift_writer *writer, unsigned id, sj_thrift_type type, int64_t value);
void sj_thrift_true(sj_thrift_writer *writer, unsigned id);
void sj_thrift_bytes(sj_thrift_writer *writer, unsigned id, const void *data, size_t size);
void sj_thrift_text(sj_thrift_writer *writer, unsigned id, const char *text);

/* sj_thrift_list begins a list, whose elements are put by the functions below, or as bytes of
 * structures that were written elsewhere. */
void sj_thrift_list(sj_thrift_writer *writer, unsigned id, sj_thrift_type type, size_t count);
void sj_thrift_element_number(sj_thrift_writer *writer, int64_t value);
void sj_thrift_element_text(sj_thrift_writer *writer, const char *text);
void sj_thrift_element_begin(sj_thrift_writer *writer);

/* sj_thrift_begin opens a structure that is a field, sj_thrift_end closes the innermost. */
void sj_thrift_begin(sj_thrift_writer *writer, unsigned id);
void sj_thrift_end(sj_thrift_writer *writer);

/* sj_thrift_empty is a field that is a structure without fields: a choice of a union. */
void sj_thrift_empty(sj_thrift_writer *writer, unsigned id);

#endif

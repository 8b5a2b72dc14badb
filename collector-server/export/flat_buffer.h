/* Writes flatbuffers, the format of Arrow's metadata. Write a table before the objects that it
 * refers to: sj_flat_table stores the positions of its fields, and sj_flat_point sets each
 * reference when its object has been written. Positions are offsets in the buffer. If out of
 * memory, buffer->failed is set. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_FLAT_BUFFER_H
#define SJ_COLLECTOR_SERVER_EXPORT_FLAT_BUFFER_H

#include "proto/base/byte_buffer.h"

enum { SJ_FLAT_MAX_FIELDS = 8 };

/* A field of a table, in the order of the schema. `bytes` is 1, 2, 4 or 8, or 0 if the field is
 * absent. */
typedef struct sj_flat_field {
    unsigned bytes;
    uint64_t value;
} sj_flat_field;

/* A field that is a reference to an object. sj_flat_point sets its value. */
#define SJ_FLAT_REFERENCE ((sj_flat_field){4, 0})

/* Writes a table of up to SJ_FLAT_MAX_FIELDS fields and returns its position. Stores the positions
 * of the fields in `places`, which may be NULL. */
size_t sj_flat_table(sj_byte_buffer *buffer, const sj_flat_field *fields, size_t count,
                     size_t *places);

/* Makes the reference at `place` refer to the object at `target`, which must be after `place`. */
void sj_flat_point(sj_byte_buffer *buffer, size_t place, size_t target);

/* Writes a string and returns its position. */
size_t sj_flat_text(sj_byte_buffer *buffer, const char *text);

/* Writes a vector of `count` elements, all zero, and returns its position. The elements begin 4
 * bytes after that position, aligned to `alignment`. */
size_t sj_flat_vector(sj_byte_buffer *buffer, size_t count, size_t element_bytes, size_t alignment);

#endif

/* A forward writer of flatbuffers, the format of Arrow's metadata. A table is written before the
 * objects that it refers to. sj_flat_table returns the positions of its fields, and sj_flat_point
 * fills the references in later. */
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

/* A reference. sj_flat_point sets its value. */
#define SJ_FLAT_REFERENCE ((sj_flat_field){4, 0})

/* Writes a table of up to SJ_FLAT_MAX_FIELDS fields and returns its position. Stores the positions
 * of the fields in `places`, which may be NULL. */
size_t sj_flat_table(sj_byte_buffer *buffer, const sj_flat_field *fields, size_t count,
                     size_t *places);

/* Makes the reference at `place` refer to the object at `target`, which must come later in the
 * buffer. */
void sj_flat_point(sj_byte_buffer *buffer, size_t place, size_t target);

/* Each writes an object and returns its position. sj_flat_text writes a string. sj_flat_vector
 * writes the length of a vector and zeros for its elements. The elements begin 4 bytes after the
 * returned position, aligned to `alignment`. */
size_t sj_flat_text(sj_byte_buffer *buffer, const char *text);
size_t sj_flat_vector(sj_byte_buffer *buffer, size_t count, size_t element_bytes, size_t alignment);

#endif

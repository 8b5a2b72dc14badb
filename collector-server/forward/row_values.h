/* Values as ClickHouse has them in its binary formats, one after the other: numbers little-endian,
 * texts with their length as a varint before them (proto/base/byte_buffer.h), and these. */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_ROW_VALUES_H
#define SJ_COLLECTOR_SERVER_FORWARD_ROW_VALUES_H

#include "proto/base/byte_buffer.h"
#include "proto/base/cursor.h"
#include "proto/base/error.h"

void sj_row_put_text(sj_byte_buffer *buffer, sj_slice text);
/* sj_row_put_fixed fills up with zeros, or cuts, to `bytes`. */
void sj_row_put_fixed(sj_byte_buffer *buffer, sj_slice value, size_t bytes);
/* sj_row_put_hex writes two digits for each byte, for `bytes` bytes. */
void sj_row_put_hex(sj_byte_buffer *buffer, sj_slice value, size_t bytes);

#endif

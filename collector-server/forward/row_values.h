/* Appends values in ClickHouse's binary formats to a buffer. Numbers are little-endian. The bytes
 * of a text follow their number, a varint (proto/base/byte_buffer.h). */
#ifndef SJ_COLLECTOR_SERVER_FORWARD_ROW_VALUES_H
#define SJ_COLLECTOR_SERVER_FORWARD_ROW_VALUES_H

#include "proto/base/byte_buffer.h"
#include "proto/base/cursor.h"
#include "proto/base/error.h"

void sj_row_put_text(sj_byte_buffer *buffer, sj_slice text);
/* Writes `value` with exactly `bytes` bytes: cuts it, or pads it with zeros. */
void sj_row_put_fixed(sj_byte_buffer *buffer, sj_slice value, size_t bytes);
/* Writes the first `bytes` bytes of `value` as 2 * `bytes` hexadecimal digits. If `value` is
 * shorter, the missing bytes are zeros. */
void sj_row_put_hex(sj_byte_buffer *buffer, sj_slice value, size_t bytes);

#endif

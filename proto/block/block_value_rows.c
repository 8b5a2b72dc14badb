/* The value column of older blocks. It is only read.
 *
 *   varint count of rules | rules x { u8 bytes, bytes of its name }
 *   varint count | count x { zigzag call index - previous one's (first_call at first) |
 *       u8 descriptor | u8 note | u8 rule (0: none, else 1 + its index above) | the value }
 *   the value: text { u8 bytes, bytes }; float, double: 8 bytes; signed kinds: zigzag; else varint
 */
#include "proto/block/block_internal.h"

enum { MIN_VALUE_BYTES = 5 };

size_t sj_block_value_rows_bound(size_t count)
{
    enum { HEAD_BYTES = 4096, VALUE_BYTES = 80 };
    return count != 0 ? HEAD_BYTES + count * VALUE_BYTES : 0;
}

/* Copies a text to `to`. */
static void read_text(sj_reader *reader, uint8_t *to, sj_block_value *value)
{
    const uint8_t bytes = sj_read_u8(reader);
    const uint8_t *from = bytes <= SJ_VALUE_TEXT_BYTES ? sj_read_bytes(reader, bytes) : NULL;
    if (from == NULL) {
        reader->bad = true;
        return;
    }
    memcpy(to, from, bytes);
    value->text = (const char *)to;
    value->text_bytes = bytes;
}

static void read_value(sj_reader *reader, uint8_t *text, sj_block_value *value)
{
    *value = (sj_block_value){.call_index = value->call_index};
    value->descriptor = sj_read_u8(reader);
    value->note = sj_read_u8(reader);
    value->rule = sj_read_u8(reader);
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    if (sj_value_is_text(kind)) {
        read_text(reader, text, value);
    } else if (sj_value_is_real(kind)) {
        value->bits = sj_read_u64(reader);
    } else if (sj_value_is_signed(kind)) {
        value->bits = (uint64_t)sj_read_zigzag(reader);
    } else {
        value->bits = sj_read_varint(reader);
    }
}

sj_status sj_value_rows_decode(sj_slice bytes, const sj_block_header *header,
                               sj_block_buffer *buffer, sj_block_rules *rules, size_t *count)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    sj_values_read_rules(&reader, rules);
    const size_t stored = sj_values_read_count(&reader, MIN_VALUE_BYTES, SJ_BLOCK_MAX_VALUES);
    SJ_TRY(sj_block_buffer_reserve(buffer, stored * sizeof(sj_block_value) + bytes.size));
    sj_block_value *values = (void *)buffer->data;
    uint8_t *text = buffer->data + stored * sizeof(sj_block_value);
    uint64_t call = header->first_call;
    for (size_t i = 0; i < stored && !reader.bad; i++) {
        call += (uint64_t)sj_read_zigzag(&reader);
        values[i].call_index = call;
        read_value(&reader, text, &values[i]);
        text += values[i].text_bytes;
        if (!sj_values_is_sound(&values[i], header, rules->count)) {
            return SJ_ECORRUPT;
        }
    }
    if (reader.bad || sj_reader_left(&reader) != 0 || stored == 0) {
        return SJ_ECORRUPT;
    }
    *count = stored;
    return SJ_OK;
}

/* The values of a block: arguments and results that a policy asked for, beside the calls.
 *
 *   varint count of rules | rules x { u8 bytes, bytes of its name }
 *   varint count | count x { zigzag call index - previous one's (first_call at first) |
 *       u8 descriptor | u8 note | u8 rule (0: none, else 1 + its place above) | the value }
 *   the value: text { u8 bytes, bytes }; float, double: 8 bytes; signed kinds: zigzag; else varint
 */
#include "proto/block/block_internal.h"

enum { MIN_VALUE_BYTES = 5, MIN_RULE_BYTES = 1 };

size_t sj_block_values_bound(size_t count)
{
    enum { HEAD_BYTES = 4096, VALUE_BYTES = 80 };
    return count != 0 ? HEAD_BYTES + count * VALUE_BYTES : 0;
}

_Static_assert(SJ_VALUE_RULES *SJ_VALUE_RULE_BYTES + 2 * SJ_VARINT_MAX_BYTES <= 4096,
               "the head of the column has room");
_Static_assert(SJ_VARINT_MAX_BYTES + 4 + SJ_VALUE_TEXT_BYTES <= 80, "a value has room");

static void write_value(sj_writer *writer, const sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    sj_write_u8(writer, value->descriptor);
    sj_write_u8(writer, value->note);
    sj_write_u8(writer, value->rule);
    if (sj_value_is_text(kind)) {
        sj_write_u8(writer, value->text_bytes);
        sj_write_bytes(writer, value->text, value->text_bytes);
    } else if (sj_value_is_real(kind)) {
        sj_write_u64(writer, value->bits);
    } else if (sj_value_is_signed(kind)) {
        sj_write_zigzag(writer, (int64_t)value->bits);
    } else {
        sj_write_varint(writer, value->bits);
    }
}

void sj_values_encode(const sj_block_input *input, sj_writer *writer)
{
    uint64_t previous = input->header.first_call;
    sj_write_varint(writer, input->rule_count);
    for (size_t i = 0; i < input->rule_count; i++) {
        const size_t whole = strlen(input->rules[i]);
        const size_t bytes = whole < SJ_VALUE_RULE_BYTES ? whole : SJ_VALUE_RULE_BYTES - 1;
        sj_write_u8(writer, (uint8_t)bytes);
        sj_write_bytes(writer, input->rules[i], bytes);
    }
    sj_write_varint(writer, input->value_count);
    for (size_t i = 0; i < input->value_count; i++) {
        sj_write_zigzag(writer, (int64_t)(input->values[i].call_index - previous));
        previous = input->values[i].call_index;
        write_value(writer, &input->values[i]);
    }
}

static bool is_sound(const sj_block_value *value, const sj_block_header *header, size_t rule_count)
{
    const uint64_t next_call = header->first_call + header->call_count + header->lost_calls;
    const bool is_text = sj_value_is_text(sj_value_kind_of(value->descriptor));
    return sj_value_is_sound(value->descriptor) && value->rule <= rule_count &&
           value->note <= (is_text ? SJ_VALUE_NULL : SJ_VALUE_WHOLE) &&
           value->call_index < next_call;
}

sj_status sj_values_check(const sj_block_input *input)
{
    if (input->value_count > SJ_BLOCK_MAX_VALUES || input->rule_count > SJ_VALUE_RULES) {
        return SJ_EINVAL;
    }
    for (size_t i = 0; i < input->value_count; i++) {
        if (!is_sound(&input->values[i], &input->header, input->rule_count) ||
            input->values[i].text_bytes > SJ_VALUE_TEXT_BYTES) {
            return SJ_EINVAL;
        }
    }
    return SJ_OK;
}

static void read_text(sj_reader *reader, char *text, size_t limit, uint8_t *bytes)
{
    *bytes = sj_read_u8(reader);
    const uint8_t *from = *bytes <= limit ? sj_reader_take(reader, *bytes) : NULL;
    if (from == NULL) {
        reader->bad = true;
        *bytes = 0;
        return;
    }
    memcpy(text, from, *bytes);
}

static void read_value(sj_reader *reader, sj_block_value *value)
{
    *value = (sj_block_value){.call_index = value->call_index};
    value->descriptor = sj_read_u8(reader);
    value->note = sj_read_u8(reader);
    value->rule = sj_read_u8(reader);
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    if (sj_value_is_text(kind)) {
        read_text(reader, value->text, SJ_VALUE_TEXT_BYTES, &value->text_bytes);
    } else if (sj_value_is_real(kind)) {
        value->bits = sj_read_u64(reader);
    } else if (sj_value_is_signed(kind)) {
        value->bits = (uint64_t)sj_read_zigzag(reader);
    } else {
        value->bits = sj_read_varint(reader);
    }
}

/* Reads a count of items of which each takes at least `item_bytes`. */
static size_t read_count(sj_reader *reader, size_t item_bytes, size_t limit)
{
    const uint64_t count = sj_read_varint(reader);
    if (count > limit || count > sj_reader_left(reader) / item_bytes) {
        reader->bad = true;
        return 0;
    }
    return (size_t)count;
}

static void read_rules(sj_reader *reader, sj_block_rules *rules)
{
    rules->count = read_count(reader, MIN_RULE_BYTES, SJ_VALUE_RULES);
    for (size_t i = 0; i < rules->count; i++) {
        uint8_t bytes = 0;
        read_text(reader, rules->names[i], SJ_VALUE_RULE_BYTES - 1, &bytes);
        rules->names[i][bytes] = '\0';
    }
}

sj_status sj_values_decode(sj_slice bytes, const sj_block_header *header, sj_block_buffer *buffer,
                           sj_block_rules *rules, size_t *count)
{
    *count = 0;
    rules->count = 0;
    if (bytes.size == 0) {
        return SJ_OK;
    }
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    read_rules(&reader, rules);
    const size_t stored = read_count(&reader, MIN_VALUE_BYTES, SJ_BLOCK_MAX_VALUES);
    SJ_TRY(sj_block_buffer_reserve(buffer, stored * sizeof(sj_block_value)));
    sj_block_value *values = (void *)buffer->data;
    uint64_t call = header->first_call;
    for (size_t i = 0; i < stored && !reader.bad; i++) {
        call += (uint64_t)sj_read_zigzag(&reader);
        values[i].call_index = call;
        read_value(&reader, &values[i]);
        if (!is_sound(&values[i], header, rules->count)) {
            return SJ_ECORRUPT;
        }
    }
    if (reader.bad || sj_reader_left(&reader) != 0 || stored == 0) {
        return SJ_ECORRUPT;
    }
    *count = stored;
    return SJ_OK;
}

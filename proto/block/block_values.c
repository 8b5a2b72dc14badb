/* The value column of a block: arguments and results that a policy asked for.
 *
 *   varint count of rules | rules x { u8 bytes, bytes of its name }
 *   varint count of values
 *   varint count of texts | texts x { varint bytes, bytes }
 *   varint count of shapes | shapes x { u8 descriptor | u8 note |
 *       varint rule (0: none, else 1 + its index above) }
 *   count x zigzag call index - previous one's (first_call at first)
 *   count x varint index of its shape
 *   count x the value: text: varint index above; float, double: 8 bytes;
 *       else zigzag distance to the previous value of its shape
 *
 * A shape is what values have in common: descriptor, note and rule. Texts and shapes stand in the
 * order of their first values. Older blocks have rows instead: see block_value_rows.c. */
#include "proto/block/block_internal.h"

#include <stdlib.h>

enum { MIN_VALUE_BYTES = 3, MIN_SHAPE_BYTES = 3, SLOT_BITS = 15, SLOTS = 1 << SLOT_BITS };

_Static_assert(SLOTS >= 2 * SJ_BLOCK_MAX_VALUES, "a free slot is found soon");

size_t sj_block_values_bound(size_t count, size_t text_bytes)
{
    enum { HEAD_BYTES = 4 * SJ_VARINT_MAX_BYTES + SJ_VALUE_RULES * SJ_VALUE_RULE_BYTES };
    enum { SHAPE_BYTES = 5, PLACE_BYTES = 3, TEXT_HEAD_BYTES = 2 };
    enum { VALUE_BYTES = 2 * SJ_VARINT_MAX_BYTES + PLACE_BYTES + SHAPE_BYTES + TEXT_HEAD_BYTES };
    return count != 0 ? HEAD_BYTES + count * VALUE_BYTES + text_bytes : 0;
}

/* A hash set of the distinct shapes, or texts, of the block's values. */
typedef struct value_dictionary {
    uint32_t count;
    uint32_t slots[SLOTS];               /* 1 + index; 0: free */
    uint32_t first[SJ_BLOCK_MAX_VALUES]; /* by index: the first value with this shape or text */
} value_dictionary;

struct sj_value_columns {
    value_dictionary shapes;
    value_dictionary texts;
    uint32_t shape_of[SJ_BLOCK_MAX_VALUES];       /* by value: index of its shape */
    uint32_t text_of[SJ_BLOCK_MAX_VALUES];        /* by value: index of its text */
    uint64_t previous[SJ_BLOCK_MAX_VALUES];       /* by shape: bits of its previous value */
    sj_block_value shape_at[SJ_BLOCK_MAX_VALUES]; /* used while decoding */
    sj_slice text_at[SJ_BLOCK_MAX_VALUES];        /* used while decoding */
};

sj_status sj_value_columns_new(sj_value_columns **columns)
{
    *columns = malloc(sizeof(**columns));
    return *columns != NULL ? SJ_OK : SJ_ENOMEM;
}

static bool same_shape(const sj_block_value *left, const sj_block_value *right)
{
    return left->descriptor == right->descriptor && left->note == right->note &&
           left->rule == right->rule;
}

static bool same_text(const sj_block_value *left, const sj_block_value *right)
{
    return left->text_bytes == right->text_bytes &&
           (left->text_bytes == 0 || memcmp(left->text, right->text, left->text_bytes) == 0);
}

static uint64_t hash_shape(const sj_block_value *value)
{
    return (uint64_t)value->descriptor | (uint64_t)value->note << 8 | (uint64_t)value->rule << 16;
}

static uint64_t hash_text(const sj_block_value *value)
{
    uint64_t hash = value->text_bytes;
    for (size_t i = 0; i < value->text_bytes; i++) {
        hash = (hash ^ (uint8_t)value->text[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Returns the index of value number `at` in a dictionary. Adds the value if it is new. */
static uint32_t add_to(value_dictionary *dictionary, const sj_block_value *values, uint32_t at,
                       uint64_t hash,
                       bool (*same)(const sj_block_value *left, const sj_block_value *right))
{
    uint32_t slot = (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SLOT_BITS));
    while (dictionary->slots[slot] != 0) {
        const uint32_t place = dictionary->slots[slot] - 1;
        if (same(&values[dictionary->first[place]], &values[at])) {
            return place;
        }
        slot = (slot + 1) & (SLOTS - 1);
    }
    dictionary->first[dictionary->count] = at;
    dictionary->slots[slot] = ++dictionary->count;
    return dictionary->count - 1;
}

static void begin_dictionary(value_dictionary *dictionary)
{
    dictionary->count = 0;
    memset(dictionary->slots, 0, sizeof(dictionary->slots));
}

static void find_places(const sj_block_input *input, sj_value_columns *columns)
{
    const sj_block_value *values = input->values;
    begin_dictionary(&columns->shapes);
    begin_dictionary(&columns->texts);
    for (uint32_t i = 0; i < input->value_count; i++) {
        columns->shape_of[i] =
            add_to(&columns->shapes, values, i, hash_shape(&values[i]), same_shape);
        if (sj_value_is_text(sj_value_kind_of(values[i].descriptor))) {
            columns->text_of[i] =
                add_to(&columns->texts, values, i, hash_text(&values[i]), same_text);
        }
    }
    memset(columns->previous, 0, columns->shapes.count * sizeof(columns->previous[0]));
}

static void write_rules(const sj_block_input *input, sj_writer *writer)
{
    sj_write_varint(writer, input->rule_count);
    for (size_t i = 0; i < input->rule_count; i++) {
        const size_t whole = strlen(input->rules[i]);
        const size_t bytes = whole < SJ_VALUE_RULE_BYTES ? whole : SJ_VALUE_RULE_BYTES - 1;
        sj_write_u8(writer, (uint8_t)bytes);
        sj_write_bytes(writer, input->rules[i], bytes);
    }
}

static void write_dictionaries(const sj_block_input *input, const sj_value_columns *columns,
                               sj_writer *writer)
{
    sj_write_varint(writer, input->value_count);
    sj_write_varint(writer, columns->texts.count);
    for (uint32_t i = 0; i < columns->texts.count; i++) {
        const sj_block_value *value = &input->values[columns->texts.first[i]];
        sj_write_varint(writer, value->text_bytes);
        sj_write_bytes(writer, value->text, value->text_bytes);
    }
    sj_write_varint(writer, columns->shapes.count);
    for (uint32_t i = 0; i < columns->shapes.count; i++) {
        const sj_block_value *value = &input->values[columns->shapes.first[i]];
        sj_write_u8(writer, value->descriptor);
        sj_write_u8(writer, value->note);
        sj_write_varint(writer, value->rule);
    }
}

static void write_bits(const sj_block_value *value, uint64_t *previous, sj_writer *writer)
{
    if (sj_value_is_real(sj_value_kind_of(value->descriptor))) {
        sj_write_u64(writer, value->bits);
        return;
    }
    sj_write_zigzag(writer, (int64_t)(value->bits - *previous));
    *previous = value->bits;
}

void sj_values_encode(const sj_block_input *input, sj_value_columns *columns, sj_writer *writer)
{
    uint64_t previous = input->header.first_call;
    find_places(input, columns);
    write_rules(input, writer);
    write_dictionaries(input, columns, writer);
    for (size_t i = 0; i < input->value_count; i++) {
        sj_write_zigzag(writer, (int64_t)(input->values[i].call_index - previous));
        previous = input->values[i].call_index;
    }
    for (size_t i = 0; i < input->value_count; i++) {
        sj_write_varint(writer, columns->shape_of[i]);
    }
    for (size_t i = 0; i < input->value_count; i++) {
        const sj_block_value *value = &input->values[i];
        if (sj_value_is_text(sj_value_kind_of(value->descriptor))) {
            sj_write_varint(writer, columns->text_of[i]);
        } else {
            write_bits(value, &columns->previous[columns->shape_of[i]], writer);
        }
    }
}

bool sj_values_is_sound(const sj_block_value *value, const sj_block_header *header,
                        size_t rule_count)
{
    const uint64_t next_call = header->first_call + header->call_count + header->lost_calls;
    const bool is_text = sj_value_is_text(sj_value_kind_of(value->descriptor));
    return sj_value_is_sound(value->descriptor) && value->rule <= rule_count &&
           value->note <= (is_text ? SJ_VALUE_NULL : SJ_VALUE_WHOLE) &&
           value->call_index < next_call;
}

size_t sj_values_text_bytes(const sj_block_value *values, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += values[i].text_bytes;
    }
    return bytes;
}

sj_status sj_values_check(const sj_block_input *input)
{
    if (input->value_count > SJ_BLOCK_MAX_VALUES || input->rule_count > SJ_VALUE_RULES ||
        sj_values_text_bytes(input->values, input->value_count) > SJ_BLOCK_MAX_TEXT_BYTES) {
        return SJ_EINVAL;
    }
    for (size_t i = 0; i < input->value_count; i++) {
        if (!sj_values_is_sound(&input->values[i], &input->header, input->rule_count) ||
            input->values[i].text_bytes > SJ_VALUE_TEXT_MOST) {
            return SJ_EINVAL;
        }
    }
    return SJ_OK;
}

size_t sj_values_read_count(sj_reader *reader, size_t item_bytes, size_t limit)
{
    const uint64_t count = sj_read_varint(reader);
    if (count > limit || count > sj_reader_left(reader) / item_bytes) {
        reader->bad = true;
        return 0;
    }
    return (size_t)count;
}

void sj_values_read_rules(sj_reader *reader, sj_block_rules *rules)
{
    enum { MIN_RULE_BYTES = 1 };
    rules->count = sj_values_read_count(reader, MIN_RULE_BYTES, SJ_VALUE_RULES);
    for (size_t i = 0; i < rules->count; i++) {
        const uint8_t bytes = sj_read_u8(reader);
        const uint8_t *from = bytes < SJ_VALUE_RULE_BYTES ? sj_read_bytes(reader, bytes) : NULL;
        rules->names[i][0] = '\0';
        if (from == NULL) {
            reader->bad = true;
            continue;
        }
        memcpy(rules->names[i], from, bytes);
        rules->names[i][bytes] = '\0';
    }
}

/* Copies the texts to `to`, which has space for all bytes of the column. Returns their number. */
static size_t read_texts(sj_reader *reader, sj_value_columns *columns, uint8_t *to)
{
    enum { MIN_TEXT_BYTES = 1 };
    const size_t count = sj_values_read_count(reader, MIN_TEXT_BYTES, SJ_BLOCK_MAX_VALUES);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = sj_read_varint(reader);
        const uint8_t *from =
            bytes <= SJ_VALUE_TEXT_MOST ? sj_read_bytes(reader, (size_t)bytes) : NULL;
        if (from == NULL) {
            reader->bad = true;
            return 0;
        }
        memcpy(to, from, (size_t)bytes);
        columns->text_at[i] = (sj_slice){.data = to, .size = (size_t)bytes};
        to += bytes;
    }
    return count;
}

static size_t read_shapes(sj_reader *reader, sj_value_columns *columns)
{
    const size_t count = sj_values_read_count(reader, MIN_SHAPE_BYTES, SJ_BLOCK_MAX_VALUES);
    for (size_t i = 0; i < count; i++) {
        sj_block_value *shape = &columns->shape_at[i];
        *shape = (sj_block_value){.descriptor = sj_read_u8(reader), .note = sj_read_u8(reader)};
        const uint64_t rule = sj_read_varint(reader);
        reader->bad = reader->bad || rule > SJ_VALUE_RULES;
        shape->rule = (uint16_t)rule;
        columns->previous[i] = 0;
    }
    return count;
}

typedef struct value_counts {
    size_t texts;
    size_t shapes;
    size_t values;
} value_counts;

static void read_bits(sj_reader *reader, const sj_value_columns *columns, size_t texts,
                      uint64_t *previous, sj_block_value *value)
{
    const uint32_t kind = sj_value_kind_of(value->descriptor);
    if (sj_value_is_text(kind)) {
        const uint64_t place = sj_read_varint(reader);
        if (place >= texts) {
            reader->bad = true;
            return;
        }
        value->text = (const char *)columns->text_at[place].data;
        value->text_bytes = (uint16_t)columns->text_at[place].size;
    } else if (sj_value_is_real(kind)) {
        value->bits = sj_read_u64(reader);
    } else {
        *previous += (uint64_t)sj_read_zigzag(reader);
        value->bits = *previous;
    }
}

/* Reads call indexes, shapes and contents of the values. */
static void read_values(sj_reader *reader, uint64_t call, const value_counts *counts,
                        sj_value_columns *columns, sj_block_value *values)
{
    for (size_t i = 0; i < counts->values; i++) {
        call += (uint64_t)sj_read_zigzag(reader);
        values[i].call_index = call;
    }
    for (size_t i = 0; i < counts->values; i++) {
        const uint64_t shape = sj_read_varint(reader);
        const uint64_t of = values[i].call_index;
        if (shape >= counts->shapes) {
            reader->bad = true;
            return;
        }
        columns->shape_of[i] = (uint32_t)shape;
        values[i] = columns->shape_at[shape];
        values[i].call_index = of;
    }
    for (size_t i = 0; i < counts->values && !reader->bad; i++) {
        read_bits(reader, columns, counts->texts, &columns->previous[columns->shape_of[i]],
                  &values[i]);
    }
}

sj_status sj_values_decode(sj_slice bytes, const sj_block_header *header, sj_value_columns *columns,
                           sj_block_buffer *buffer, sj_block_rules *rules, size_t *count)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    value_counts counts;
    sj_values_read_rules(&reader, rules);
    counts.values = sj_values_read_count(&reader, MIN_VALUE_BYTES, SJ_BLOCK_MAX_VALUES);
    const size_t values_bytes = counts.values * sizeof(sj_block_value);
    SJ_TRY(sj_block_buffer_reserve(buffer, values_bytes + bytes.size));
    sj_block_value *values = (void *)buffer->data;
    counts.texts = read_texts(&reader, columns, buffer->data + values_bytes);
    counts.shapes = read_shapes(&reader, columns);
    read_values(&reader, header->first_call, &counts, columns, values);
    if (reader.bad || sj_reader_left(&reader) != 0 || counts.values == 0 ||
        sj_values_text_bytes(values, counts.values) > SJ_BLOCK_MAX_TEXT_BYTES) {
        return SJ_ECORRUPT;
    }
    for (size_t i = 0; i < counts.values; i++) {
        if (!sj_values_is_sound(&values[i], header, rules->count)) {
            return SJ_ECORRUPT;
        }
    }
    *count = counts.values;
    return SJ_OK;
}

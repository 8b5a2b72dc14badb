#include "collector-server/import/jfr_chunk.h"

#include "proto/base/array.h"

#include <endian.h>
#include <stdlib.h>

enum {
    CONSTANTS_AT = 16, /* offsets in the head of a chunk */
    METADATA_AT = 24,
    FLAGS_AT = 67,
    COMPRESSED = 1,
    MOST_DEPTH = 16, /* elements or values in one another */
    NUMBER_BYTES = 9,
    MOST_ATTRIBUTES = 64
};

/* How the bytes of a text are stored. */
typedef enum text_encoding {
    TEXT_NULL,
    TEXT_EMPTY,
    TEXT_CONSTANT,
    TEXT_UTF8,
    TEXT_CHARS,
    TEXT_LATIN1
} text_encoding;

static sj_status refuse(sj_jfr_chunk *chunk, const sj_reader *reader, const char *problem)
{
    chunk->bad_at = (size_t)(reader->at - chunk->bytes.data);
    chunk->problem = problem;
    return SJ_ECORRUPT;
}

static bool is_text(sj_slice text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.data, wanted, text.size) == 0;
}

uint64_t sj_jfr_number(sj_reader *reader)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < NUMBER_BYTES; i++) {
        const uint8_t byte = sj_read_u8(reader);
        if (i == NUMBER_BYTES - 1) {
            return number | (uint64_t)byte << (7 * i);
        }
        number |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            break;
        }
    }
    return number;
}

/* Reads a text without converting it: characters beyond ASCII stay as they are stored. */
static sj_slice read_stored_text(sj_reader *reader, text_encoding *encoding)
{
    *encoding = (text_encoding)sj_read_u8(reader);
    if (*encoding <= TEXT_EMPTY) {
        return (sj_slice){0};
    }
    const uint8_t *at_number = reader->at;
    const uint64_t size = sj_jfr_number(reader);
    const uint8_t *start = *encoding == TEXT_CONSTANT ? at_number : reader->at;
    if (*encoding == TEXT_CHARS) {
        for (uint64_t i = 0; i < size && !reader->bad; i++) {
            (void)sj_jfr_number(reader);
        }
    } else if (*encoding == TEXT_UTF8 || *encoding == TEXT_LATIN1) {
        (void)sj_read_bytes(reader, size);
    } else if (*encoding != TEXT_CONSTANT) {
        reader->bad = true;
    }
    return reader->bad ? (sj_slice){0}
                       : (sj_slice){.data = start, .size = (size_t)(reader->at - start)};
}

static sj_slice text_of(const sj_jfr_chunk *chunk, uint64_t number)
{
    return number < chunk->text_count ? chunk->texts[number] : (sj_slice){0};
}

static uint32_t number_of(sj_slice text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.size && number <= UINT32_MAX; i++) {
        number = text.data[i] >= '0' && text.data[i] <= '9' ? number * 10 + text.data[i] - '0'
                                                            : UINT64_MAX / 16;
    }
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

/* An element of the tree of the metadata. */
typedef struct tree_element {
    sj_slice name;
    sj_slice own_name, id, type, is_constant, dimension;
} tree_element;

static void set_attribute(tree_element *element, sj_slice key, sj_slice value)
{
    const struct {
        const char *key;
        sj_slice *value;
    } known[] = {{"name", &element->own_name},
                 {"id", &element->id},
                 {"class", &element->type},
                 {"constantPool", &element->is_constant},
                 {"dimension", &element->dimension}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (is_text(key, known[i].key)) {
            *known[i].value = value;
        }
    }
}

static sj_status add_class(sj_jfr_chunk *chunk, const tree_element *element,
                           const sj_reader *reader)
{
    const uint32_t number = number_of(element->id);
    if (number == 0) {
        return refuse(chunk, reader, "a class has no number");
    }
    SJ_TRY(sj_array_reserve(&chunk->classes, &chunk->class_capacity, chunk->class_count, 1,
                            sizeof(*chunk->classes)));
    chunk->classes[chunk->class_count] =
        (sj_jfr_class){.name = element->own_name, .number = number};
    return sj_hash_map_put(
        &chunk->by_number,
        &(sj_hash_entry){.key = number, .sub = 1, .first = (uint32_t)chunk->class_count++});
}

static sj_status add_field(sj_jfr_chunk *chunk, const tree_element *element,
                           const sj_reader *reader)
{
    if (chunk->class_count == 0) {
        return refuse(chunk, reader, "a field has no class");
    }
    sj_jfr_class *class = &chunk->classes[chunk->class_count - 1];
    SJ_TRY(sj_array_reserve(&class->fields, &class->field_capacity, class->field_count, 1,
                            sizeof(*class->fields)));
    class->fields[class->field_count++] =
        (sj_jfr_field){.name = element->own_name,
                       .type = number_of(element->type),
                       .is_constant = is_text(element->is_constant, "true"),
                       .is_array = number_of(element->dimension) != 0};
    return SJ_OK;
}

static sj_status read_element(sj_jfr_chunk *chunk, sj_reader *reader, unsigned depth)
{
    tree_element element = {.name = text_of(chunk, sj_jfr_number(reader))};
    const uint64_t attributes = sj_jfr_number(reader);
    if (reader->bad || depth > MOST_DEPTH || attributes > MOST_ATTRIBUTES) {
        return refuse(chunk, reader, "the tree of classes is damaged");
    }
    for (uint64_t i = 0; i < attributes; i++) {
        const sj_slice key = text_of(chunk, sj_jfr_number(reader));
        set_attribute(&element, key, text_of(chunk, sj_jfr_number(reader)));
    }
    if (is_text(element.name, "class")) {
        SJ_TRY(add_class(chunk, &element, reader));
    } else if (is_text(element.name, "field")) {
        SJ_TRY(add_field(chunk, &element, reader));
    }
    for (uint64_t left = sj_jfr_number(reader); left != 0; left--) {
        SJ_TRY(read_element(chunk, reader, depth + 1));
    }
    return SJ_OK;
}

/* Sets a reader to the event at `offset`, behind the fields that both kinds of events have: size,
 * number of the class, start and duration. */
static bool open_event(const sj_jfr_chunk *chunk, uint64_t offset, sj_reader *reader)
{
    *reader = sj_reader_of(chunk->bytes.data, chunk->bytes.size);
    (void)sj_read_bytes(reader, offset);
    const size_t left = sj_reader_left(reader);
    const uint8_t *start = reader->at;
    const uint64_t size = sj_jfr_number(reader);
    if (reader->bad || offset < SJ_JFR_HEAD_BYTES || size > left ||
        size < (uint64_t)(reader->at - start)) {
        return false;
    }
    reader->end = start + size;
    for (int i = 0; i < 3; i++) {
        (void)sj_jfr_number(reader);
    }
    return !reader->bad && reader->at <= reader->end;
}

static sj_status read_metadata(sj_jfr_chunk *chunk, uint64_t offset)
{
    sj_reader reader;
    if (!open_event(chunk, offset, &reader)) {
        return refuse(chunk, &reader, "the description of classes is not where the chunk says");
    }
    (void)sj_jfr_number(&reader);
    for (uint64_t left = sj_jfr_number(&reader); left != 0 && !reader.bad; left--) {
        text_encoding encoding;
        SJ_TRY(sj_array_reserve(&chunk->texts, &chunk->text_capacity, chunk->text_count, 1,
                                sizeof(*chunk->texts)));
        chunk->texts[chunk->text_count++] = read_stored_text(&reader, &encoding);
    }
    return reader.bad ? refuse(chunk, &reader, "the texts of the classes are damaged")
                      : read_element(chunk, &reader, 0);
}

static const sj_jfr_class *class_of(const sj_jfr_chunk *chunk, uint32_t number)
{
    const sj_hash_entry *entry = sj_hash_map_find(&chunk->by_number, number, 1);
    return entry != NULL ? &chunk->classes[entry->first] : NULL;
}

static void skip_class(sj_jfr_chunk *chunk, uint32_t type, sj_reader *reader, unsigned depth);

static void skip_field(sj_jfr_chunk *chunk, const sj_jfr_field *field, sj_reader *reader,
                       unsigned depth)
{
    uint64_t count = field->is_array ? sj_jfr_number(reader) : 1;
    while (count != 0 && !reader->bad) {
        const uint8_t *before = reader->at;
        if (field->is_constant) {
            (void)sj_jfr_number(reader);
        } else {
            skip_class(chunk, field->type, reader, depth);
        }
        /* an element without bytes could repeat without end */
        reader->bad |= field->is_array && reader->at == before;
        count--;
    }
}

static void skip_class(sj_jfr_chunk *chunk, uint32_t type, sj_reader *reader, unsigned depth)
{
    static const struct {
        const char *name;
        size_t bytes; /* 0: a number */
    } simple[] = {{"boolean", 1}, {"byte", 1}, {"char", 0},  {"short", 0},
                  {"int", 0},     {"long", 0}, {"float", 4}, {"double", 8}};
    const sj_jfr_class *class = class_of(chunk, type);
    if (class == NULL || depth > MOST_DEPTH) {
        reader->bad = true;
        return;
    }
    if (is_text(class->name, "java.lang.String")) {
        text_encoding encoding;
        (void)read_stored_text(reader, &encoding);
        return;
    }
    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
        if (is_text(class->name, simple[i].name)) {
            if (simple[i].bytes == 0) {
                (void)sj_jfr_number(reader);
            } else {
                (void)sj_read_bytes(reader, simple[i].bytes);
            }
            return;
        }
    }
    /* Without this check, values without bytes could contain others without end. */
    reader->bad |= class->field_count == 0;
    for (size_t i = 0; i < class->field_count && !reader->bad; i++) {
        skip_field(chunk, &class->fields[i], reader, depth + 1);
    }
}

/* Notes the offsets of the constants of one class. */
static sj_status read_pool(sj_jfr_chunk *chunk, sj_reader *reader)
{
    const uint64_t type = sj_jfr_number(reader);
    const uint64_t count = sj_jfr_number(reader);
    if (reader->bad || type == 0 || type > UINT32_MAX || class_of(chunk, (uint32_t)type) == NULL) {
        return refuse(chunk, reader, "constants have an unknown class");
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t number = sj_jfr_number(reader);
        SJ_TRY(
            sj_hash_map_put(&chunk->constants,
                            &(sj_hash_entry){.key = number,
                                             .sub = (uint32_t)type,
                                             .first = (uint32_t)(reader->at - chunk->bytes.data)}));
        skip_class(chunk, (uint32_t)type, reader, 0);
        if (reader->bad) {
            return refuse(chunk, reader, "a constant is damaged");
        }
    }
    return SJ_OK;
}

/* Reads all lists of constants. Each list names the distance to the one before it. */
static sj_status read_constants(sj_jfr_chunk *chunk, uint64_t offset)
{
    for (;;) {
        sj_reader reader;
        if (!open_event(chunk, offset, &reader)) {
            return refuse(chunk, &reader, "constants are not where the chunk says");
        }
        const int64_t distance = (int64_t)sj_jfr_number(&reader);
        (void)sj_read_u8(&reader);
        for (uint64_t left = sj_jfr_number(&reader); left != 0; left--) {
            SJ_TRY(read_pool(chunk, &reader));
        }
        if (distance == 0) {
            return SJ_OK;
        }
        /* lists lie one before the other, so that this ends */
        const uint64_t back = -(uint64_t)distance;
        if (distance > 0 || back > offset) {
            return refuse(chunk, &reader, "the distance between constants is wrong");
        }
        offset -= back;
    }
}

static uint64_t head_number(sj_slice bytes, size_t at)
{
    uint64_t number;
    memcpy(&number, bytes.data + at, sizeof(number));
    return be64toh(number);
}

sj_status sj_jfr_chunk_read(sj_jfr_chunk *chunk, sj_slice bytes)
{
    *chunk = (sj_jfr_chunk){.bytes = bytes};
    const sj_reader head = sj_reader_of(bytes.data, bytes.size);
    if (bytes.size < SJ_JFR_HEAD_BYTES || bytes.size > UINT32_MAX) {
        return refuse(chunk, &head, "the chunk is too short or too long");
    }
    if ((bytes.data[FLAGS_AT] & COMPRESSED) == 0) {
        return refuse(chunk, &head, "the numbers of the chunk are not compressed");
    }
    SJ_TRY(read_metadata(chunk, head_number(bytes, METADATA_AT)));
    return read_constants(chunk, head_number(bytes, CONSTANTS_AT));
}

void sj_jfr_chunk_deinit(sj_jfr_chunk *chunk)
{
    for (size_t i = 0; i < chunk->class_count; i++) {
        free(chunk->classes[i].fields);
    }
    free(chunk->classes);
    free(chunk->texts);
    sj_hash_map_deinit(&chunk->by_number);
    sj_hash_map_deinit(&chunk->constants);
    *chunk = (sj_jfr_chunk){0};
}

const sj_jfr_class *sj_jfr_chunk_find(const sj_jfr_chunk *chunk, const char *name)
{
    for (size_t i = 0; i < chunk->class_count; i++) {
        if (is_text(chunk->classes[i].name, name)) {
            return &chunk->classes[i];
        }
    }
    return NULL;
}

const sj_jfr_field *sj_jfr_field_find(sj_jfr_chunk *chunk, uint32_t type, const char *name,
                                      sj_reader *reader)
{
    const sj_jfr_class *class = class_of(chunk, type);
    for (size_t i = 0; class != NULL && i < class->field_count && !reader->bad; i++) {
        if (is_text(class->fields[i].name, name)) {
            return &class->fields[i];
        }
        skip_field(chunk, &class->fields[i], reader, 0);
    }
    return NULL;
}

void sj_jfr_field_skip(sj_jfr_chunk *chunk, const sj_jfr_field *field, sj_reader *reader)
{
    skip_field(chunk, field, reader, 0);
}

bool sj_jfr_field_value(const sj_jfr_chunk *chunk, const sj_jfr_field *field, sj_reader at,
                        sj_reader *value)
{
    *value = at;
    if (!field->is_constant) {
        return !at.bad;
    }
    const uint64_t number = sj_jfr_number(&at);
    const sj_hash_entry *entry =
        at.bad ? NULL : sj_hash_map_find(&chunk->constants, number, field->type);
    if (entry == NULL) {
        return false;
    }
    *value = sj_reader_of(chunk->bytes.data + entry->first, chunk->bytes.size - entry->first);
    return true;
}

/* Appends a character as UTF-8, if it fits. */
static size_t put_character(char *text, size_t size, uint64_t character)
{
    if (size + 4 > SJ_JFR_TEXT_BYTES) {
        return size;
    }
    if (character < 0x80) {
        text[size++] = (char)character;
    } else if (character < 0x800) {
        text[size++] = (char)(0xc0 | character >> 6);
        text[size++] = (char)(0x80 | (character & 0x3f));
    } else {
        text[size++] = (char)(0xe0 | (character >> 12 & 0x0f));
        text[size++] = (char)(0x80 | (character >> 6 & 0x3f));
        text[size++] = (char)(0x80 | (character & 0x3f));
    }
    return size;
}

static void convert_text(sj_slice stored, text_encoding encoding, char *text)
{
    sj_reader reader = sj_reader_of(stored.data, stored.size);
    size_t size = 0;
    while (encoding != TEXT_UTF8 && sj_reader_left(&reader) != 0) {
        size = put_character(text, size,
                             encoding == TEXT_CHARS ? sj_jfr_number(&reader) : sj_read_u8(&reader));
    }
    if (encoding == TEXT_UTF8) {
        size = stored.size < SJ_JFR_TEXT_BYTES ? stored.size : SJ_JFR_TEXT_BYTES - 1;
        memcpy(text, stored.data, size);
    }
    text[size] = '\0';
}

/* Writes the text of a value of the class `type`. */
static void read_text(const sj_jfr_chunk *chunk, uint32_t type, sj_reader value, char *text)
{
    text_encoding encoding;
    sj_slice stored = read_stored_text(&value, &encoding);
    if (encoding == TEXT_CONSTANT) {
        const sj_jfr_field field = {.type = type, .is_constant = true};
        const sj_reader number = sj_reader_of(stored.data, stored.size);
        stored = (sj_slice){0};
        if (sj_jfr_field_value(chunk, &field, number, &value)) {
            stored = read_stored_text(&value, &encoding);
        }
    }
    if (stored.size != 0 && encoding != TEXT_CONSTANT) {
        convert_text(stored, encoding, text);
    }
}

void sj_jfr_text_find(sj_jfr_chunk *chunk, uint32_t type, sj_reader value, const char *names,
                      char text[SJ_JFR_TEXT_BYTES])
{
    text[0] = '\0';
    while (*names != '\0') {
        char name[32];
        const size_t length = strcspn(names, " ");
        memcpy(name, names, length);
        name[length] = '\0';
        names += length + (names[length] == ' ' ? 1 : 0);
        const sj_jfr_field *field = sj_jfr_field_find(chunk, type, name, &value);
        if (field == NULL || field->is_array || !sj_jfr_field_value(chunk, field, value, &value)) {
            return;
        }
        type = field->type;
    }
    read_text(chunk, type, value, text);
}

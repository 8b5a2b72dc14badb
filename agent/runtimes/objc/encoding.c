#include "agent/runtimes/objc/encoding.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS_BYTES = 16, DEPTH_MAX = 32, SIZE_MAX_BYTES = 1 << 20 };

typedef struct type_reader {
    const char *at;
    unsigned depth;
    bool bad;
    /* True if a union has a long double. Whether it is returned in memory depends on its members.
     */
    bool is_mixed;
} type_reader;

typedef struct type_size {
    uint32_t bytes;
    uint32_t alignment;
} type_size;

static type_size read_type(type_reader *reader);

static type_size fail_reading(type_reader *reader)
{
    reader->bad = true;
    return (type_size){0, 1};
}

static void skip_qualifiers(type_reader *reader)
{
    while (*reader->at != '\0' && strchr("rnNoORVA|", *reader->at) != NULL) {
        reader->at++;
    }
}

static uint32_t align_offset(uint32_t bytes, uint32_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Reads {name=members} or (name=members) after its first bracket. Fails for a type without "=",
 * whose size is not known. */
static type_size read_members(type_reader *reader, char end)
{
    type_size whole = {0, 1};
    const char *start = reader->at;
    reader->at += strcspn(reader->at, "=})({");
    if (*reader->at++ != '=') {
        return fail_reading(reader);
    }
    while (*reader->at != end && !reader->bad) {
        const type_size member = read_type(reader);
        const uint32_t offset = end == '}' ? align_offset(whole.bytes, member.alignment) : 0;
        const uint32_t bytes = offset + member.bytes;
        whole.bytes = bytes > whole.bytes ? bytes : whole.bytes;
        whole.alignment = member.alignment > whole.alignment ? member.alignment : whole.alignment;
        if (whole.bytes > SIZE_MAX_BYTES) {
            return fail_reading(reader);
        }
    }
    if (reader->bad) {
        return whole;
    }
    if (end == ')' && memchr(start, 'D', (size_t)(reader->at - start)) != NULL) {
        reader->is_mixed = true;
    }
    reader->at++;
    whole.bytes = align_offset(whole.bytes, whole.alignment);
    return whole;
}

static type_size read_array(type_reader *reader)
{
    char *end;
    const unsigned long count = strtoul(reader->at, &end, 10);
    reader->at = end;
    type_size element = read_type(reader);
    if (reader->bad || *reader->at++ != ']' || count > SIZE_MAX_BYTES ||
        (uint64_t)count * element.bytes > SIZE_MAX_BYTES) {
        return fail_reading(reader);
    }
    element.bytes *= (uint32_t)count;
    return element;
}

static type_size scalar_size(char code)
{
    static const struct {
        const char *codes;
        uint32_t bytes;
    } sizes[] = {{"cCB", 1}, {"sS", 2}, {"iIf", 4}, {"lLqQd*@#:", 8}, {"tTD", 16}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (strchr(sizes[i].codes, code) != NULL) {
            return (type_size){sizes[i].bytes, sizes[i].bytes};
        }
    }
    return (type_size){0, 1};
}

/* Skips the target of a pointer. Its size need not be known. */
static type_size read_pointer(type_reader *reader)
{
    skip_qualifiers(reader);
    const char open = *reader->at;
    if (open == '{' || open == '(' || open == '[') {
        int depth = 0;
        do {
            const char code = *reader->at++;
            if (code == '\0') {
                reader->at--;
                return fail_reading(reader);
            }
            depth += strchr("{([", code) != NULL;
            depth -= strchr("})]", code) != NULL;
        } while (depth != 0);
    } else if (open == '^') {
        reader->at++;
        (void)read_pointer(reader);
    } else if (open != '\0') {
        reader->at++;
    }
    return (type_size){8, 8};
}

static type_size read_type(type_reader *reader)
{
    type_size size;
    skip_qualifiers(reader);
    if (*reader->at == '\0' || reader->depth == DEPTH_MAX) {
        return fail_reading(reader);
    }
    const char code = *reader->at++;
    reader->depth++;
    switch (code) {
    case '{':
        size = read_members(reader, '}');
        break;
    case '(':
        size = read_members(reader, ')');
        break;
    case '[':
        size = read_array(reader);
        break;
    case '^':
        size = read_pointer(reader);
        break;
    case 'j':
        size = read_type(reader);
        size.bytes *= 2;
        break;
    default:
        size = scalar_size(code);
        reader->bad |= size.bytes == 0;
        break;
    }
    reader->depth--;
    return size;
}

sj_objc_result sj_objc_encoding_result(const char *types)
{
    type_reader reader = {.at = types};
    skip_qualifiers(&reader);
    if (*reader.at != '{' && *reader.at != '(') {
        return *reader.at == '!' || *reader.at == '\0' ? SJ_OBJC_RESULT_UNKNOWN
                                                       : SJ_OBJC_RESULT_REGISTERS;
    }
    const type_size size = read_type(&reader);
    if (reader.bad || (reader.is_mixed && size.bytes <= REGISTERS_BYTES)) {
        return SJ_OBJC_RESULT_UNKNOWN;
    }
    return size.bytes > REGISTERS_BYTES ? SJ_OBJC_RESULT_MEMORY : SJ_OBJC_RESULT_REGISTERS;
}

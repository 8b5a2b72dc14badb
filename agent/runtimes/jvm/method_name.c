#include "agent/runtimes/jvm/method_name.h"

#include <stdio.h>
#include <string.h>

typedef struct name_text {
    char *text;
    size_t used;
} name_text;

static void append(name_text *name, const char *text)
{
    const size_t bytes = strlen(text);
    if (name->used + bytes < SJ_JAVA_NAME_BYTES) {
        memcpy(name->text + name->used, text, bytes + 1);
        name->used += bytes;
    }
}

/* Returns the size of the UTF-8 character at `at`, 1 to 3 bytes. Returns 0 if it is malformed, a
 * control character, or has 4 bytes, which class files do not use. */
static size_t character_bytes(sj_slice text, size_t at)
{
    const uint8_t first = text.data[at];
    const size_t left = text.size - at;
    const size_t bytes = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : 3;
    if (first < 0x20 || first == 0x7f || first >= 0xf0 || (first >= 0x80 && first < 0xc2) ||
        bytes > left) {
        return 0;
    }
    for (size_t i = 1; i < bytes; i++) {
        if ((text.data[at + i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool is_overlong = first == 0xe0 && text.data[at + 1] < 0xa0;
    const bool is_surrogate = first == 0xed && text.data[at + 1] >= 0xa0;
    return is_overlong || is_surrogate ? 0 : bytes;
}

/* Appends a text. With `is_class`, writes slashes as dots. */
static void append_text(name_text *name, sj_slice text, bool is_class)
{
    for (size_t at = 0; at < text.size;) {
        char piece[8] = "";
        const size_t bytes = character_bytes(text, at);
        if (bytes == 0) {
            snprintf(piece, sizeof(piece), "\\x%02x", text.data[at]);
        } else {
            memcpy(piece, text.data + at, bytes);
        }
        append(name, is_class && piece[0] == '/' ? "." : piece);
        at += bytes != 0 ? bytes : 1;
    }
}

static const char *primitive_name(uint8_t letter)
{
    switch (letter) {
    case 'B':
        return "byte";
    case 'C':
        return "char";
    case 'D':
        return "double";
    case 'F':
        return "float";
    case 'I':
        return "int";
    case 'J':
        return "long";
    case 'S':
        return "short";
    case 'Z':
        return "boolean";
    default:
        return NULL;
    }
}

/* Appends the type at `*at` of a descriptor, and advances `*at` past it. Returns false if it is not
 * a type. */
static bool append_type(name_text *name, sj_slice descriptor, size_t *at)
{
    size_t dimensions = 0;
    while (*at < descriptor.size && descriptor.data[*at] == '[') {
        dimensions++;
        (*at)++;
    }
    if (*at >= descriptor.size) {
        return false;
    }
    const uint8_t *type = descriptor.data + *at;
    size_t bytes = 1;
    if (*type == 'L') {
        const uint8_t *end = memchr(type, ';', descriptor.size - *at);
        if (end == NULL) {
            return false;
        }
        bytes = (size_t)(end - type) + 1;
        append_text(name, (sj_slice){type + 1, bytes - 2}, true);
    } else if (primitive_name(*type) != NULL) {
        append(name, primitive_name(*type));
    } else {
        return false;
    }
    *at += bytes;
    while (dimensions-- != 0) {
        append(name, "[]");
    }
    return true;
}

/* Appends the parameter types of a descriptor. Returns false if the descriptor is malformed. */
static bool append_parameter_types(name_text *name, sj_slice descriptor)
{
    size_t at = 1;
    if (descriptor.size == 0 || descriptor.data[0] != '(') {
        return false;
    }
    append(name, "(");
    while (at < descriptor.size && descriptor.data[at] != ')') {
        if (at != 1) {
            append(name, ",");
        }
        if (!append_type(name, descriptor, &at)) {
            return false;
        }
    }
    append(name, ")");
    return at < descriptor.size;
}

void sj_java_class_name(sj_slice internal, char name[SJ_JAVA_NAME_BYTES])
{
    name_text text = {.text = name};
    name[0] = '\0';
    append_text(&text, internal, true);
}

void sj_java_method_name(const sj_class_file *file, const sj_class_method *method,
                         char name[SJ_JAVA_NAME_BYTES])
{
    name_text text = {.text = name};
    name[0] = '\0';
    append_text(&text, file->name, true);
    append(&text, ".");
    append_text(&text, method->name, false);
    const size_t used = text.used;
    if (!append_parameter_types(&text, method->descriptor)) {
        text.used = used;
        name[used] = '\0';
        append_text(&text, method->descriptor, false);
    }
}

#include "agent/runtimes/jvm/class_file.h"

#include "agent/runtimes/jvm/big_endian.h"

#include <stdlib.h>

#define CLASS_MAGIC UINT32_C(0xcafebabe)

enum constant_tag {
    CONSTANT_UTF8 = 1,
    CONSTANT_INTEGER = 3,
    CONSTANT_FLOAT = 4,
    CONSTANT_LONG = 5,
    CONSTANT_DOUBLE = 6,
    CONSTANT_CLASS = 7,
    CONSTANT_STRING = 8,
    CONSTANT_FIELD = 9,
    CONSTANT_METHOD = 10,
    CONSTANT_INTERFACE_METHOD = 11,
    CONSTANT_NAME_AND_TYPE = 12,
    CONSTANT_METHOD_HANDLE = 15,
    CONSTANT_METHOD_TYPE = 16,
    CONSTANT_DYNAMIC = 17,
    CONSTANT_INVOKE_DYNAMIC = 18,
    CONSTANT_MODULE = 19,
    CONSTANT_PACKAGE = 20,
    CONSTANT_TAGS
};

/* Number of bytes of a constant after its tag; for Utf8, of its size field only. 0 if the tag is
 * not valid. */
static const uint8_t constant_bytes[CONSTANT_TAGS] = {
    [CONSTANT_UTF8] = 2,          [CONSTANT_INTEGER] = 4,        [CONSTANT_FLOAT] = 4,
    [CONSTANT_LONG] = 8,          [CONSTANT_DOUBLE] = 8,         [CONSTANT_CLASS] = 2,
    [CONSTANT_STRING] = 2,        [CONSTANT_FIELD] = 4,          [CONSTANT_METHOD] = 4,
    [CONSTANT_MODULE] = 2,        [CONSTANT_PACKAGE] = 2,        [CONSTANT_INTERFACE_METHOD] = 4,
    [CONSTANT_DYNAMIC] = 4,       [CONSTANT_INVOKE_DYNAMIC] = 4, [CONSTANT_NAME_AND_TYPE] = 4,
    [CONSTANT_METHOD_HANDLE] = 3, [CONSTANT_METHOD_TYPE] = 2};

static uint32_t offset_of(const sj_class_file *file, const sj_reader *reader)
{
    return (uint32_t)(reader->at - file->bytes.data);
}

static sj_status fail_damaged(const sj_class_file *file, const sj_reader *reader, const char *what,
                              sj_error *error)
{
    return sj_fail(error, SJ_ECORRUPT, "the class file is damaged at byte %u: %s",
                   offset_of(file, reader), what);
}

/* Returns the bytes of a constant after its tag, or NULL if it has another tag. */
static const uint8_t *constant_at(const sj_class_file *file, uint16_t index, uint8_t tag)
{
    const uint32_t at = index < file->constant_count ? file->constants[index] : 0;
    return at != 0 && file->bytes.data[at] == tag ? file->bytes.data + at + 1 : NULL;
}

static uint16_t be16_at(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

sj_slice sj_class_utf8(const sj_class_file *file, uint16_t index)
{
    const uint8_t *constant = constant_at(file, index, CONSTANT_UTF8);
    return constant != NULL ? (sj_slice){constant + 2, be16_at(constant)} : (sj_slice){0};
}

static sj_slice class_name(const sj_class_file *file, uint16_t index)
{
    const uint8_t *constant = constant_at(file, index, CONSTANT_CLASS);
    return constant != NULL ? sj_class_utf8(file, be16_at(constant)) : (sj_slice){0};
}

/* Returns the bytes of a Methodref, InterfaceMethodref or Fieldref after its tag, or NULL. */
static const uint8_t *reference_at(const sj_class_file *file, uint16_t index)
{
    const uint8_t *constant = constant_at(file, index, CONSTANT_METHOD);
    constant = constant != NULL ? constant : constant_at(file, index, CONSTANT_INTERFACE_METHOD);
    return constant != NULL ? constant : constant_at(file, index, CONSTANT_FIELD);
}

sj_slice sj_class_reference_name(const sj_class_file *file, uint16_t index)
{
    const uint8_t *constant = reference_at(file, index);
    const uint8_t *pair =
        constant != NULL ? constant_at(file, be16_at(constant + 2), CONSTANT_NAME_AND_TYPE) : NULL;
    return pair != NULL ? sj_class_utf8(file, be16_at(pair)) : (sj_slice){0};
}

bool sj_class_text_is(sj_slice text, const char *string)
{
    return text.size == strlen(string) && memcmp(text.data, string, text.size) == 0;
}

static sj_status read_constants(sj_class_file *file, sj_reader *reader, sj_error *error)
{
    file->constant_count = sj_read_be16(reader);
    if (file->constant_count == 0) {
        return fail_damaged(file, reader, "it has no constants", error);
    }
    file->constants = calloc(file->constant_count, sizeof(*file->constants));
    if (file->constants == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the constants of a class");
    }
    for (uint32_t i = 1; i < file->constant_count; i++) {
        const uint32_t at = offset_of(file, reader);
        const uint8_t tag = sj_read_u8(reader);
        if (tag >= CONSTANT_TAGS || constant_bytes[tag] == 0) {
            return fail_damaged(file, reader, "an unknown kind of constant", error);
        }
        if (tag == CONSTANT_UTF8) {
            sj_read_bytes(reader, sj_read_be16(reader));
        } else {
            sj_read_bytes(reader, constant_bytes[tag]);
        }
        if (reader->bad) {
            return fail_damaged(file, reader, "it ends within its constants", error);
        }
        file->constants[i] = at;
        /* These constants use two indices. */
        i += tag == CONSTANT_LONG || tag == CONSTANT_DOUBLE ? 1 : 0;
        if (i == file->constant_count) { /* The second index does not exist. */
            return fail_damaged(file, reader, "its last constant has half a number", error);
        }
    }
    file->pool_end = offset_of(file, reader);
    return SJ_OK;
}

static void skip_attributes(sj_reader *reader)
{
    for (uint16_t count = sj_read_be16(reader); count > 0 && !reader->bad; count--) {
        sj_read_bytes(reader, 2);
        sj_read_bytes(reader, sj_read_be32(reader));
    }
}

static void skip_fields(sj_reader *reader)
{
    for (uint16_t count = sj_read_be16(reader); count > 0 && !reader->bad; count--) {
        sj_read_bytes(reader, 6);
        skip_attributes(reader);
    }
}

static sj_status read_method(sj_class_file *file, sj_reader *reader, sj_class_method *method,
                             sj_error *error)
{
    method->start = offset_of(file, reader);
    method->access = sj_read_be16(reader);
    method->name = sj_class_utf8(file, sj_read_be16(reader));
    method->descriptor = sj_class_utf8(file, sj_read_be16(reader));
    method->attributes = offset_of(file, reader);
    for (uint16_t count = sj_read_be16(reader); count > 0 && !reader->bad; count--) {
        const sj_slice name = sj_class_utf8(file, sj_read_be16(reader));
        const uint32_t size = sj_read_be32(reader);
        const uint32_t at = offset_of(file, reader);
        sj_read_bytes(reader, size);
        if (sj_class_text_is(name, "Code")) {
            if (method->code != 0) {
                return fail_damaged(file, reader, "a method has two bodies", error);
            }
            method->code = at;
            method->code_bytes = size;
        }
    }
    method->end = offset_of(file, reader);
    return reader->bad || method->name.size == 0
               ? fail_damaged(file, reader, "a method has no name, or no end", error)
               : SJ_OK;
}

static sj_status read_methods(sj_class_file *file, sj_reader *reader, sj_error *error)
{
    file->methods_count_at = offset_of(file, reader);
    file->method_count = sj_read_be16(reader);
    file->methods = calloc((size_t)file->method_count + 1, sizeof(*file->methods));
    if (file->methods == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the methods of a class");
    }
    for (uint32_t i = 0; i < file->method_count; i++) {
        SJ_TRY(read_method(file, reader, &file->methods[i], error));
    }
    file->methods_end = offset_of(file, reader);
    return SJ_OK;
}

sj_status sj_class_file_read(sj_slice bytes, sj_class_file *file, sj_error *error)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    *file = (sj_class_file){.bytes = bytes};
    if (bytes.size > UINT32_MAX || sj_read_be32(&reader) != CLASS_MAGIC) {
        return sj_fail(error, SJ_ECORRUPT, "these bytes are not a class file");
    }
    sj_read_bytes(&reader, 2);
    file->major = sj_read_be16(&reader);
    SJ_TRY(read_constants(file, &reader, error));
    file->access = sj_read_be16(&reader);
    file->name = class_name(file, sj_read_be16(&reader));
    file->super = class_name(file, sj_read_be16(&reader));
    sj_read_bytes(&reader, (size_t)sj_read_be16(&reader) * 2);
    skip_fields(&reader);
    if (reader.bad || file->name.size == 0) {
        return fail_damaged(file, &reader, "it names no class, or ends within its fields", error);
    }
    SJ_TRY(read_methods(file, &reader, error));
    skip_attributes(&reader);
    return reader.bad ? fail_damaged(file, &reader, "it ends within its attributes", error) : SJ_OK;
}

void sj_class_file_deinit(sj_class_file *file)
{
    free(file->constants);
    free(file->methods);
    *file = (sj_class_file){0};
}

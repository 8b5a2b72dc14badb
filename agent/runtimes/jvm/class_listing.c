#include "agent/runtimes/jvm/class_listing.h"

#include "proto/base/array.h"

static sj_slice read_text(sj_reader *reader)
{
    const uint8_t *text = reader->at;
    const size_t left = sj_reader_left(reader);
    const size_t bytes = left != 0 ? strnlen((const char *)text, left) : 0;
    return sj_read_bytes(reader, bytes + 1) != NULL ? (sj_slice){text, bytes} : (sj_slice){0};
}

static sj_status add_method(sj_class_file *file, size_t *capacity, const sj_class_method *method,
                            sj_error *error)
{
    if (file->method_count == UINT16_MAX) {
        return sj_fail(error, SJ_ELIMIT, "a class has more methods than a class file can have");
    }
    if (sj_array_reserve(&file->methods, capacity, file->method_count, 1, sizeof(*method)) !=
        SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the methods of a class");
    }
    file->methods[file->method_count++] = *method;
    return SJ_OK;
}

sj_status sj_class_listing_read(sj_slice bytes, sj_class_file *file, sj_error *error)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    size_t capacity = 0;
    *file = (sj_class_file){.bytes = bytes};
    file->name = read_text(&reader);
    while (sj_reader_left(&reader) > 0 && !reader.bad) {
        sj_class_method method = {.code = sj_read_u8(&reader) == '+' ? 1 : 0};
        method.name = read_text(&reader);
        method.descriptor = read_text(&reader);
        if (!reader.bad) {
            SJ_TRY(add_method(file, &capacity, &method, error));
        }
    }
    return reader.bad || file->name.size == 0
               ? sj_fail(error, SJ_ECORRUPT,
                         "a JVM reported a class without a name, or only a part of it")
               : SJ_OK;
}

#include "agent/runtimes/jvm/class_rewrite.h"

#include <stdlib.h>

enum {
    TAG_UTF8 = 1,
    TAG_INTEGER = 3,
    TAG_CLASS = 7,
    TAG_METHOD = 10,
    TAG_NAME_AND_TYPE = 12,
    POOL_COUNT_AT = 8, /* Offset of constant_pool_count. */
    PROBE_CONSTANTS = 24,
    VALUE_CONSTANTS = 6 + 4 * (SJ_JAVA_NATIVES + SJ_JAVA_CONVERSIONS),
    SHORT_ID_MAX = INT16_MAX
};

/* The constants that are appended to the class's constants. */
typedef struct pool_growth {
    sj_be_output bytes;
    uint32_t next; /* Index of the next constant. */
    sj_probe_constants probes;
} pool_growth;

/* The add functions append a constant and return its index. */
static uint16_t add_utf8(pool_growth *pool, const char *text)
{
    sj_be_put8(&pool->bytes, TAG_UTF8);
    sj_be_put16(&pool->bytes, (uint16_t)strlen(text));
    sj_be_put(&pool->bytes, text, strlen(text));
    return (uint16_t)pool->next++;
}

static uint16_t add_class(pool_growth *pool, const char *name)
{
    const uint16_t text = add_utf8(pool, name);
    sj_be_put8(&pool->bytes, TAG_CLASS);
    sj_be_put16(&pool->bytes, text);
    return (uint16_t)pool->next++;
}

static uint16_t add_method_reference(pool_growth *pool, uint16_t class, uint16_t descriptor,
                                     const char *name)
{
    const uint16_t text = add_utf8(pool, name);
    sj_be_put8(&pool->bytes, TAG_NAME_AND_TYPE);
    sj_be_put16(&pool->bytes, text);
    sj_be_put16(&pool->bytes, descriptor);
    const uint16_t pair = (uint16_t)pool->next++;
    sj_be_put8(&pool->bytes, TAG_METHOD);
    sj_be_put16(&pool->bytes, class);
    sj_be_put16(&pool->bytes, pair);
    return (uint16_t)pool->next++;
}

static void add_probes(pool_growth *pool)
{
    const uint16_t class = add_class(pool, SJ_PROBE_CLASS);
    const uint16_t descriptor = add_utf8(pool, "(I)V");
    pool->probes.enter = add_method_reference(pool, class, descriptor, "enter");
    pool->probes.leave = add_method_reference(pool, class, descriptor, "leave");
    pool->probes.unwind = add_method_reference(pool, class, descriptor, "unwind");
    pool->probes.throwable = add_class(pool, "java/lang/Throwable");
    pool->probes.stack_map_name = add_utf8(pool, "StackMapTable");
}

static void add_value_methods(pool_growth *pool)
{
    sj_value_constants *constants = &pool->probes.values;
    const uint16_t class = add_class(pool, SJ_JAVA_VALUES_CLASS);
    const uint16_t real = add_class(pool, "java/lang/Float");
    const uint16_t wide = add_class(pool, "java/lang/Double");
    for (uint32_t i = 0; i < SJ_JAVA_NATIVES; i++) {
        const uint16_t descriptor = add_utf8(pool, sj_java_natives[i].descriptor);
        constants->natives[i] =
            add_method_reference(pool, class, descriptor, sj_java_natives[i].name);
    }
    constants->conversions[SJ_JAVA_FLOAT_TO_BITS] =
        add_method_reference(pool, real, add_utf8(pool, "(F)I"), "floatToRawIntBits");
    constants->conversions[SJ_JAVA_BITS_TO_FLOAT] =
        add_method_reference(pool, real, add_utf8(pool, "(I)F"), "intBitsToFloat");
    constants->conversions[SJ_JAVA_DOUBLE_TO_BITS] =
        add_method_reference(pool, wide, add_utf8(pool, "(D)J"), "doubleToRawLongBits");
    constants->conversions[SJ_JAVA_BITS_TO_DOUBLE] =
        add_method_reference(pool, wide, add_utf8(pool, "(J)D"), "longBitsToDouble");
}

static bool has_values(const sj_class_rewrite_request *request)
{
    for (uint32_t i = 0; request->values != NULL && i < request->file->method_count; i++) {
        if (sj_java_values_wanted(&request->values[i])) {
            return true;
        }
    }
    return false;
}

/* Appends the id of a method as a constant if sipush cannot hold it. Returns false if the constant
 * pool is full. */
static bool add_id(pool_growth *pool, uint32_t function)
{
    if (function <= SHORT_ID_MAX) {
        return true;
    }
    if (pool->next >= UINT16_MAX) {
        return false;
    }
    sj_be_put8(&pool->bytes, TAG_INTEGER);
    sj_be_put32(&pool->bytes, function);
    pool->probes.values.id = (uint16_t)pool->next++;
    return true;
}

/* Copies a method, but with the new content of its Code attribute. */
static void put_method(const sj_class_file *file, const sj_class_method *method,
                       const sj_be_output *code, sj_be_output *output)
{
    const uint8_t *bytes = file->bytes.data;
    const uint32_t length_at = method->code - 4;
    const uint32_t code_end = method->code + method->code_bytes;
    sj_be_put(output, bytes + method->start, length_at - method->start);
    sj_be_put32(output, (uint32_t)code->size);
    sj_be_put(output, code->data, code->size);
    sj_be_put(output, bytes + code_end, method->end - code_end);
}

static sj_java_skip rewrite_method(const sj_class_rewrite_request *request, uint32_t index,
                                   pool_growth *pool, sj_be_output *methods)
{
    static const sj_java_values none;
    const sj_class_file *file = request->file;
    const sj_class_method *method = &file->methods[index];
    const uint32_t function = request->first_function + index;
    sj_be_output code = {0};
    sj_java_skip skip = SJ_JAVA_SKIP_NO_CODE;
    if (method->code != 0) {
        skip = request->wanted != NULL && !request->wanted(request->context, method)
                   ? SJ_JAVA_SKIP_NOT_WANTED
               : add_id(pool, function)
                   ? sj_code_rewrite(file, method, function,
                                     request->values != NULL ? &request->values[index] : &none,
                                     &pool->probes, &code)
                   : SJ_JAVA_SKIP_POOL_FULL;
    }
    if (skip == SJ_JAVA_REWRITTEN) {
        put_method(file, method, &code, methods);
    } else {
        sj_be_put(methods, file->bytes.data + method->start, method->end - method->start);
    }
    methods->bad = methods->bad || code.bad;
    free(code.data);
    return skip;
}

/* True if the class refers to the class of the probes. */
static bool has_probes(const sj_class_file *file)
{
    for (uint32_t i = 1; i < file->constant_count; i++) {
        if (sj_class_text_is(sj_class_utf8(file, (uint16_t)i), SJ_PROBE_CLASS)) {
            return true;
        }
    }
    return false;
}

/* Writes the new class file from the old one, the new constants and the new methods. */
static sj_status write_class_file(const sj_class_file *file, const pool_growth *pool,
                                  const sj_be_output *methods, sj_class_rewrite_result *result)
{
    const uint8_t *bytes = file->bytes.data;
    const uint32_t methods_at = file->methods_count_at + 2;
    sj_be_output output = {0};
    sj_be_put(&output, bytes, POOL_COUNT_AT);
    sj_be_put16(&output, (uint16_t)pool->next);
    sj_be_put(&output, bytes + POOL_COUNT_AT + 2, file->pool_end - POOL_COUNT_AT - 2);
    sj_be_put(&output, pool->bytes.data, pool->bytes.size);
    sj_be_put(&output, bytes + file->pool_end, methods_at - file->pool_end);
    sj_be_put(&output, methods->data, methods->size);
    sj_be_put(&output, bytes + file->methods_end, file->bytes.size - file->methods_end);
    if (output.bad || pool->bytes.bad || methods->bad) {
        free(output.data);
        return SJ_ENOMEM;
    }
    result->bytes = output.data;
    result->size = output.size;
    return SJ_OK;
}

sj_status sj_class_rewrite(const sj_class_rewrite_request *request, sj_class_rewrite_result *result)
{
    const sj_class_file *file = request->file;
    pool_growth pool = {.next = file->constant_count};
    sj_be_output methods = {0};
    *result = (sj_class_rewrite_result){.skips = calloc((size_t)file->method_count + 1, 1)};
    if (result->skips == NULL) {
        return SJ_ENOMEM;
    }
    if (has_probes(file)) {
        return SJ_EEXIST;
    }
    const uint32_t added = PROBE_CONSTANTS + (has_values(request) ? (uint32_t)VALUE_CONSTANTS : 0);
    if (file->constant_count + added > UINT16_MAX) {
        memset(result->skips, SJ_JAVA_SKIP_POOL_FULL, file->method_count);
        return SJ_OK;
    }
    add_probes(&pool);
    if (has_values(request)) {
        add_value_methods(&pool);
    }
    for (uint32_t i = 0; i < file->method_count; i++) {
        const sj_java_skip skip = rewrite_method(request, i, &pool, &methods);
        result->skips[i] = (uint8_t)skip;
        result->rewritten += skip == SJ_JAVA_REWRITTEN ? 1 : 0;
    }
    const sj_status status =
        result->rewritten != 0 ? write_class_file(file, &pool, &methods, result) : SJ_OK;
    free(pool.bytes.data);
    free(methods.data);
    return status;
}

void sj_class_rewrite_deinit(sj_class_rewrite_result *result)
{
    free(result->bytes);
    free(result->skips);
    *result = (sj_class_rewrite_result){0};
}

/* Reads and rewrites arbitrary bytes as a class file. All accesses stay within its bounds. The
 * result must be readable and have the same methods. */
#include "agent/runtimes/jvm/line_table.h"
#include "tests/agent/runtimes/jvm/any_values.h"

enum { FIRST_FUNCTION = 40000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_output(const sj_class_file *file, const sj_class_rewrite_result *result)
{
    sj_class_file again;
    if (sj_class_file_read((sj_slice){result->bytes, result->size}, &again, NULL) != SJ_OK ||
        again.method_count != file->method_count) {
        abort();
    }
    sj_class_file_deinit(&again);
}

static void rewrite(const sj_class_file *file, const sj_java_values *values)
{
    const sj_class_rewrite_request request = {
        .file = file, .first_function = FIRST_FUNCTION, .values = values};
    sj_class_rewrite_result result;
    if (sj_class_rewrite(&request, &result) == SJ_OK && result.bytes != NULL) {
        check_output(file, &result);
    }
    sj_class_rewrite_deinit(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_class_file file;
    if (sj_class_file_read((sj_slice){data, size}, &file, NULL) == SJ_OK) {
        (void)sj_line_table_source(&file);
        for (uint32_t i = 0; i < file.method_count; i++) {
            (void)sj_line_table_first(&file, &file.methods[i]);
        }
        sj_java_values *values = any_values_new(file.method_count);
        rewrite(&file, NULL);
        rewrite(&file, values);
        free(values);
    }
    sj_class_file_deinit(&file);
    return 0;
}

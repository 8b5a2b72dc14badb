/* Any bytes as a class file: it is read and rewritten within its bounds, and what comes out can be
 * read and has the same methods. */
#include "agent/runtimes/jvm/class_rewrite.h"

#include <stdlib.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_class_file file;
    if (sj_class_file_read((sj_slice){data, size}, &file, NULL) == SJ_OK) {
        const sj_class_rewrite_request request = {.file = &file, .first_function = FIRST_FUNCTION};
        sj_class_rewrite_result result;
        if (sj_class_rewrite(&request, &result) == SJ_OK && result.bytes != NULL) {
            check_output(&file, &result);
        }
        sj_class_rewrite_deinit(&result);
    }
    sj_class_file_deinit(&file);
    return 0;
}

/* rewrite_class FIRST_ID [values] < CLASS > CLASS: a class file with probes, for tests, which take
 * values with "values"; says on standard error what was done. Exits with 1 when a method with code
 * was left without probes. */
#include "tests/agent/runtimes/jvm/any_values.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST_CLASS = 8 * 1024 * 1024 };

int main(int count, char **arguments)
{
    static uint8_t bytes[LARGEST_CLASS];
    const size_t size = fread(bytes, 1, sizeof(bytes), stdin);
    sj_class_file file;
    sj_error error = {0};
    if (sj_class_file_read((sj_slice){bytes, size}, &file, &error) != SJ_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    const uint32_t first = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 1;
    sj_java_values *values =
        count > 2 && strcmp(arguments[2], "values") == 0 ? any_values_new(file.method_count) : NULL;
    const sj_class_rewrite_request request = {
        .file = &file, .first_function = first, .values = values};
    sj_class_rewrite_result result;
    int exit_code = sj_class_rewrite(&request, &result) == SJ_OK ? 0 : 2;
    for (uint32_t i = 0; exit_code == 0 && i < file.method_count; i++) {
        if (result.skips[i] > SJ_JAVA_SKIP_NO_CODE) {
            fprintf(stderr, "%.*s: sj_java_skip %d\n", (int)file.methods[i].name.size,
                    (const char *)file.methods[i].name.data, (int)result.skips[i]);
            exit_code = 1;
        }
    }
    if (result.bytes != NULL) {
        fwrite(result.bytes, 1, result.size, stdout);
    } else {
        fwrite(bytes, 1, size, stdout);
    }
    sj_class_rewrite_deinit(&result);
    free(values);
    sj_class_file_deinit(&file);
    return exit_code;
}

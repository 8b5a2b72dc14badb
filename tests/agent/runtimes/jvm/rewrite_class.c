/* rewrite_class FIRST_ID [values] < LIST writes class files with probes, for tests. With "values"
 * the probes record values. Each line of LIST is "INPUT<tab>OUTPUT". For each it prints a line: a
 * verdict, a tab, and the reasons.
 *
 * "whole": all methods with code have probes. "partial": a method with code has none. "refused":
 * the input is not a class file, and OUTPUT is not written. "covered": the handler of a
 * method does not cover all of its code except the exits. */
#include "agent/runtimes/jvm/bytecode.h"
#include "agent/runtimes/jvm/code_layout.h"
#include "tests/agent/runtimes/jvm/any_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the bytes of `path` in a block of exactly their size, so that ASan sees a read beyond
 * them. The caller frees it. */
static uint8_t *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(3);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size) {
        perror(path);
        exit(3);
    }
    fclose(file);
    return bytes;
}

static void write_whole(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(3);
    }
}

/* Prints a text of a class file, which may contain any bytes, within its line. */
static void print_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        putchar(text[i] > ' ' && text[i] <= '~' ? text[i] : ' ');
    }
}

/* Prints the verdict, and the methods with code that have no probes. */
static void print_verdict(const sj_class_file *file, const uint8_t *skips)
{
    bool whole = true;
    for (uint32_t i = 0; i < file->method_count; i++) {
        whole = whole && skips[i] <= SJ_JAVA_SKIP_NO_CODE;
    }
    printf("%s\t", whole ? "whole" : "partial");
    for (uint32_t i = 0; i < file->method_count; i++) {
        if (skips[i] > SJ_JAVA_SKIP_NO_CODE) {
            print_text((const char *)file->methods[i].name.data, file->methods[i].name.size);
            printf(": sj_java_skip %d ", (int)skips[i]);
        }
    }
    putchar('\n');
}

enum { HANDLER_END_BYTES = 4 /* invokestatic, athrow */ };

/* Returns the last handler if it is the handler of the probes, else 0. */
static uint16_t find_own(const sj_class_file *file, sj_slice code, sj_slice table)
{
    sj_reader reader = sj_reader_of(table.data, table.size);
    const uint8_t *call = code.data + code.size - HANDLER_END_BYTES;
    uint16_t last = 0;
    while (sj_reader_left(&reader) != 0) {
        (void)sj_read_be32(&reader);
        const uint16_t handler = sj_read_be16(&reader);
        last = handler > last ? handler : last;
        (void)sj_read_be16(&reader);
    }
    return code.size > HANDLER_END_BYTES && call[0] == SJ_BYTECODE_INVOKESTATIC &&
                   sj_class_text_is(
                       sj_class_reference_name(file, (uint16_t)(call[1] << 8 | call[2])), "unwind")
               ? last
               : 0;
}

/* Marks the bytes that `handler` covers. Returns the first one, or the code's size if there is
 * none. */
static size_t mark_covered(sj_slice table, uint16_t handler, size_t code_bytes, bool *is_covered)
{
    sj_reader reader = sj_reader_of(table.data, table.size);
    size_t first = code_bytes;
    while (sj_reader_left(&reader) != 0) {
        const uint16_t start = sj_read_be16(&reader);
        const uint16_t end = sj_read_be16(&reader);
        const bool is_own = sj_read_be16(&reader) == handler;
        (void)sj_read_be16(&reader);
        for (uint32_t i = start; is_own && i < end && i < code_bytes; i++) {
            is_covered[i] = true;
        }
        first = is_own && start < first ? start : first;
    }
    return first;
}

/* Marks the bytes of each return and of the probe before it. */
static bool mark_exits(sj_slice code, bool *is_exit)
{
    sj_bytecode instruction;
    for (uint32_t at = 0; at < code.size; at += instruction.size) {
        if (sj_bytecode_read(code, at, &instruction) != SJ_OK) {
            return false;
        }
        const uint32_t before = at < SJ_PROBE_BYTES ? at : SJ_PROBE_BYTES;
        if (instruction.kind == SJ_BYTECODE_RETURN) {
            memset(is_exit + at - before, true, before + 1);
        }
    }
    return true;
}

/* True if an exception is recorded exactly once: the handler covers all of the code except its
 * exits. */
static bool has_right_handler(const sj_class_file *file, const sj_class_method *method)
{
    enum { EXCEPTION_BYTES = 8, LIMITS_BYTES = 4 /* in front of the code's size */ };
    const uint8_t *at = file->bytes.data + method->code;
    sj_reader reader = sj_reader_of(at + LIMITS_BYTES, method->code_bytes - LIMITS_BYTES);
    sj_slice code = {.size = sj_read_be32(&reader)};
    code.data = sj_read_bytes(&reader, code.size);
    sj_slice table = {.size = (size_t)EXCEPTION_BYTES * sj_read_be16(&reader)};
    table.data = sj_read_bytes(&reader, table.size);
    const uint16_t handler = find_own(file, code, table);
    if (handler == 0) {
        return true;
    }
    bool *is_covered = calloc(2 * code.size, sizeof(*is_covered));
    bool *is_exit = is_covered != NULL ? is_covered + code.size : NULL;
    bool is_right = is_covered != NULL && mark_exits(code, is_exit);
    size_t i = is_right ? mark_covered(table, handler, code.size, is_covered) : handler;
    for (; is_right && i < handler; i++) {
        is_right = is_covered[i] != is_exit[i];
    }
    free(is_covered);
    return is_right;
}

/* Checks the methods with probes of a class that was rewritten. */
static bool has_right_handlers(const sj_class_rewrite_result *result)
{
    sj_class_file file;
    sj_error error = {0};
    bool are_right = true;
    if (result->bytes == NULL) {
        return true;
    }
    are_right = sj_class_file_read((sj_slice){result->bytes, result->size}, &file, &error) == SJ_OK;
    for (uint32_t i = 0; are_right && i < file.method_count; i++) {
        are_right =
            result->skips[i] != SJ_JAVA_REWRITTEN || has_right_handler(&file, &file.methods[i]);
    }
    sj_class_file_deinit(&file);
    return are_right;
}

static void rewrite(const char *input, const char *output, uint32_t first, bool with_values)
{
    size_t size;
    uint8_t *bytes = read_whole(input, &size);
    sj_class_file file;
    sj_error error = {0};
    if (sj_class_file_read((sj_slice){bytes, size}, &file, &error) != SJ_OK) {
        printf("refused\t");
        print_text(error.text, strlen(error.text));
        putchar('\n');
        sj_class_file_deinit(&file);
        free(bytes);
        return;
    }
    sj_java_values *values = with_values ? any_values_new(file.method_count) : NULL;
    const sj_class_rewrite_request request = {
        .file = &file, .first_function = first, .values = values};
    sj_class_rewrite_result result;
    if (sj_class_rewrite(&request, &result) != SJ_OK) {
        printf("refused\tsj_class_rewrite\n");
    } else if (!has_right_handlers(&result)) {
        printf("covered\t\n");
    } else {
        print_verdict(&file, result.skips);
        const bool is_new = result.bytes != NULL;
        write_whole(output, is_new ? result.bytes : bytes, is_new ? result.size : size);
    }
    sj_class_rewrite_deinit(&result);
    free(values);
    sj_class_file_deinit(&file);
    free(bytes);
}

int main(int count, char **arguments)
{
    const uint32_t first = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 1;
    const bool with_values = count > 2 && strcmp(arguments[2], "values") == 0;
    char *line = NULL;
    size_t space = 0;
    ssize_t length;
    while ((length = getline(&line, &space, stdin)) > 0) {
        line[length - 1] = '\0';
        char *tab = strchr(line, '\t');
        if (tab == NULL) {
            fprintf(stderr, "no tab in %s\n", line);
            return 3;
        }
        *tab = '\0';
        rewrite(line, tab + 1, first, with_values);
        fflush(stdout); /* After a crash, the number of lines names the class. */
    }
    free(line);
    return 0;
}

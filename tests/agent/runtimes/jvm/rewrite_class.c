/* rewrite_class FIRST_ID [values] < LIST: writes class files with probes, for tests; with "values"
 * the probes take values. Each line of LIST is "INPUT<tab>OUTPUT". Prints a line for each: a
 * verdict, a tab, and the reasons. Verdicts: "whole"; "partial": a method with code was left
 * without probes; "refused": the input is not a class file, and OUTPUT is not written. */
#include "tests/agent/runtimes/jvm/any_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* read_whole returns the bytes of `path` in a block of exactly their size, so that ASan sees a read
 * beyond them. The caller frees it. */
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

/* print_text prints what a class file says, which may be any bytes, within its line. */
static void print_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        putchar(text[i] > ' ' && text[i] <= '~' ? text[i] : ' ');
    }
}

/* print_verdict prints the methods with code that were left without probes. */
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
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, stdin)) > 0) {
        line[length - 1] = '\0';
        char *tab = strchr(line, '\t');
        if (tab == NULL) {
            fprintf(stderr, "no tab in %s\n", line);
            return 3;
        }
        *tab = '\0';
        rewrite(line, tab + 1, first, with_values);
        fflush(stdout); /* a crash is told by the number of lines before it */
    }
    free(line);
    return 0;
}

#include "proto/base/config_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char config_option[] = "--config";

/* Returns the value of --config, or NULL. `*first`: index of the option; `*words`: number of its
 * arguments. */
static const char *find_path(int argc, char **argv, int *first, int *words)
{
    const size_t bytes = sizeof(config_option) - 1;
    *words = 0;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], config_option, bytes) != 0) {
            continue;
        }
        *first = i;
        if (argv[i][bytes] == '=') {
            *words = 1;
            return argv[i] + bytes + 1;
        }
        if (argv[i][bytes] == '\0') {
            *words = 2;
            return i + 1 < argc ? argv[i + 1] : "";
        }
    }
    return NULL;
}

static sj_status read_text(const char *path, char **text, sj_error *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return sj_fail(error, SJ_EIO, "%s: %s", path, strerror(errno));
    }
    *text = calloc(1, SJ_CONFIG_MAX_BYTES + 1);
    const size_t bytes = *text != NULL ? fread(*text, 1, SJ_CONFIG_MAX_BYTES, file) : 0;
    const bool is_failed = ferror(file) != 0;
    const bool is_long = bytes == SJ_CONFIG_MAX_BYTES && fgetc(file) != EOF;
    fclose(file);
    if (*text == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (is_failed) {
        return sj_fail(error, SJ_EIO, "%s: cannot be read", path);
    }
    if (is_long) {
        return sj_fail(error, SJ_ELIMIT, "%s: has more than %d bytes", path, SJ_CONFIG_MAX_BYTES);
    }
    return strlen(*text) == bytes ? SJ_OK : sj_fail(error, SJ_EINVAL, "%s: has a zero byte", path);
}

static char *trim(char *text)
{
    static const char blanks[] = " \t\r";
    text += strspn(text, blanks);
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(blanks, text[bytes - 1]) != NULL) {
        text[--bytes] = '\0';
    }
    return text;
}

/* True if an option whose name begins with `name` needs a value. (getopt_long accepts
 * abbreviations.) */
static bool needs_value(const struct option *options, const char *name)
{
    for (const struct option *option = options; option->name != NULL; option++) {
        if (option->has_arg == required_argument &&
            strncmp(option->name, name, strlen(name)) == 0) {
            return true;
        }
    }
    return false;
}

/* Makes the argument of a line. *argument stays NULL if the line is empty or a comment. */
static sj_status read_line(char *line, const struct option *options, char **argument,
                           sj_error *error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";
    char *name = trim(line);
    if (name[0] == '\0' || name[0] == '#') {
        return SJ_OK;
    }
    char *value = strchr(name, '=');
    if (value != NULL) {
        *value = '\0';
        value = trim(value + 1);
        name = trim(name);
    }
    if (name[0] == '\0' || name[0] == '-' || name[strspn(name, letters)] != '\0' ||
        strcmp(name, config_option + 2) == 0) {
        return sj_fail(error, SJ_EINVAL, "\"%s\" is not an option; write NAME = VALUE", name);
    }
    if ((value == NULL || value[0] == '\0') && needs_value(options, name)) {
        return sj_fail(error, SJ_EINVAL, "%s needs a value; write %s = VALUE", name, name);
    }
    const size_t bytes = strlen(name) + (value != NULL ? strlen(value) : 0) + sizeof("--=");
    *argument = malloc(bytes);
    if (*argument == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    snprintf(*argument, bytes, "--%s%s%s", name, value != NULL ? "=" : "",
             value != NULL ? value : "");
    return SJ_OK;
}

static sj_status read_lines(sj_config_file *config, const struct option *options, sj_error *error)
{
    sj_error fault = {0};
    size_t number = 1;
    char *next = config->text;
    for (char *line = next; line != NULL; line = next, number++) {
        char *argument = NULL;
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        const sj_status status = read_line(line, options, &argument, &fault);
        if (status != SJ_OK) {
            return sj_fail(error, status, "%s:%zu: %s", config->path, number, fault.text);
        }
        if (argument != NULL) {
            config->lines[config->count++] = number;
            config->argv[config->argc++] = argument;
        }
    }
    return SJ_OK;
}

static size_t count_lines(const char *text)
{
    size_t count = 1;
    for (const char *at = text; at != NULL && (at = strchr(at, '\n')) != NULL; at++) {
        count++;
    }
    return count;
}

sj_status sj_config_file_read(int argc, char **argv, const struct option *options,
                              sj_config_file *config, sj_error *error)
{
    int first = argc;
    int words = 0;
    *config = (sj_config_file){.path = find_path(argc, argv, &first, &words)};
    if (config->path != NULL && config->path[0] == '\0') {
        return sj_fail(error, SJ_EINVAL, "--config needs a file");
    }
    if (config->path != NULL) {
        SJ_TRY(read_text(config->path, &config->text, error));
    }
    const size_t lines = count_lines(config->text);
    config->lines = calloc(lines, sizeof(*config->lines));
    config->argv = calloc(lines + (size_t)argc + 1, sizeof(*config->argv));
    if (config->lines == NULL || config->argv == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    config->argv[config->argc++] = argv[0];
    if (config->text != NULL) {
        SJ_TRY(read_lines(config, options, error));
    }
    for (int i = 1; i < argc; i++) {
        if (i < first || i >= first + words) {
            config->argv[config->argc++] = argv[i];
        }
    }
    return SJ_OK;
}

void sj_config_file_deinit(sj_config_file *config)
{
    for (size_t i = 0; i < config->count; i++) {
        free(config->argv[i + 1]);
    }
    free(config->argv);
    free(config->lines);
    free(config->text);
    *config = (sj_config_file){0};
}

void sj_config_file_place(const sj_config_file *config, int index, char *text, size_t capacity)
{
    if (index >= 1 && (size_t)index <= config->count) {
        snprintf(text, capacity, "%s:%zu: ", config->path, config->lines[index - 1]);
    } else {
        snprintf(text, capacity, "%s", "");
    }
}

static bool is_printed(const struct option *option)
{
    static const char *const others[] = {"config", "print-config", "help", "version"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(option->name, others[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* If `wanted` is NULL, prints all given options. Otherwise prints `wanted` as a comment, unless it
 * was given. */
static void print_given(const sj_config_file *config, const struct option *options,
                        const struct option *wanted, FILE *output)
{
    int index = 0;
    bool is_given = false;
    optind = 0; /* restarts getopt_long */
    while (getopt_long(config->argc, config->argv, ":", options, &index) != -1) {
        if (wanted != NULL && &options[index] == wanted) {
            is_given = true;
        } else if (wanted == NULL && is_printed(&options[index])) {
            fprintf(output, "%s%s%s\n", options[index].name, optarg != NULL ? " = " : "",
                    optarg != NULL ? optarg : "");
        }
    }
    if (wanted != NULL && !is_given) {
        fprintf(output, "# %s%s\n", wanted->name, wanted->has_arg == required_argument ? " =" : "");
    }
}

void sj_config_file_print(const sj_config_file *config, const struct option *options, FILE *output)
{
    print_given(config, options, NULL, output);
    for (const struct option *option = options; option->name != NULL; option++) {
        if (is_printed(option)) {
            print_given(config, options, option, output);
        }
    }
}

#include "collector-server/cli/command.h"

#include "collector-server/cli/options.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/work_progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_MAX = 21, LABEL_BYTES = 64, LINE_BYTES = 1024 };

static void make_label(const sj_option *option, char label[LABEL_BYTES])
{
    char letter[8] = "";
    if (option->letter != '\0') {
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    }
    const char *argument = option->argument != NULL ? option->argument : "";
    if (option->is_optional) {
        snprintf(label, LABEL_BYTES, "%s--%s[=%s]", letter, option->name, argument);
    } else {
        snprintf(label, LABEL_BYTES, "%s--%s%s%s", letter, option->name,
                 argument[0] != '\0' ? " " : "", argument);
    }
}

static void print_option(FILE *file, const sj_option *option, int width)
{
    char label[LABEL_BYTES];
    make_label(option, label);
    fprintf(file, "  %-*s", width, label);
    if ((int)strlen(label) > width) {
        fprintf(file, "\n  %*s", width, "");
    }
    for (const char *line = option->help; line != NULL;) {
        const char *end = strchr(line, '\n');
        fprintf(file, "  %.*s\n", (int)(end != NULL ? (size_t)(end - line) : strlen(line)), line);
        line = end != NULL ? end + 1 : NULL;
        if (line != NULL) {
            fprintf(file, "  %*s", width, "");
        }
    }
}

static bool is_shown(const sj_option *row, bool is_common)
{
    return row->kind != SJ_ARG_HEADING && row->help != NULL && row->is_common == is_common;
}

bool sj_command_has_common(const sj_command *command)
{
    const sj_option *row = sj_option_first(command->options, false);
    while (row != NULL && !is_shown(row, true)) {
        row = sj_option_next(row, false);
    }
    return row != NULL;
}

static void print_common(FILE *file, const sj_option *first, int width)
{
    fprintf(file, "To begin with:\n");
    for (const sj_option *row = first; row != NULL; row = sj_option_next(row, false)) {
        if (is_shown(row, true)) {
            print_option(file, row, width);
        }
    }
}

/* Prints the options that are not common, with their headings. */
static void print_others(FILE *file, const sj_option *first, bool has_common, int width)
{
    const char *heading = NULL;
    const char *gap = has_common ? "\n" : "";
    for (const sj_option *row = first; row != NULL; row = sj_option_next(row, false)) {
        if (row->kind == SJ_ARG_HEADING) {
            heading = row->help;
        } else if (is_shown(row, false)) {
            if (heading != NULL) {
                fprintf(file, "%s%s\n", gap, heading);
            }
            gap = "\n";
            heading = NULL;
            print_option(file, row, width);
        }
    }
}

/* Returns the width of the longest label that may stand before a help text. */
static int label_width(const sj_option *first)
{
    char label[LABEL_BYTES];
    size_t width = strlen("--help-all");
    for (const sj_option *row = first; row != NULL; row = sj_option_next(row, false)) {
        if (row->kind != SJ_ARG_HEADING && row->help != NULL) {
            make_label(row, label);
            width = strlen(label) > width && strlen(label) <= LABEL_MAX ? strlen(label) : width;
        }
    }
    return (int)width;
}

/* Prints the options as --help shows them, with --help itself as the last. The common options come
 * first, and only `shows_all` prints the others. A heading below which all options are common is
 * left out. */
static void print_options(FILE *file, const sj_command *command, bool shows_all)
{
    static const sj_option help = {.name = "help", .kind = SJ_ARG_FLAG, .help = "this text"};
    static const sj_option help_all = {
        .name = "help-all", .kind = SJ_ARG_FLAG, .help = "all options, in groups"};
    const sj_option *first = sj_option_first(command->options, false);
    const bool has_common = sj_command_has_common(command);
    const int width = label_width(first);
    if (has_common) {
        print_common(file, first, width);
    } else if (first == NULL || first->kind != SJ_ARG_HEADING) {
        fprintf(file, "Options:\n");
    }
    if (shows_all || !has_common) {
        print_others(file, first, has_common, width);
    }
    print_option(file, &help, width);
    if (has_common) {
        print_option(file, &help_all, width);
    }
}

/* Prints help text. Wraps lines that are wider than the terminal below their own beginning, and the
 * text of options below its column. */
static void print_fitted(const char *text, int help_column)
{
    sj_terminal terminal;
    char line[LINE_BYTES];
    sj_terminal_open(&terminal);
    while (*text != '\0') {
        const size_t length = strcspn(text, "\n");
        const int spaces = (int)strspn(text, " ");
        const bool is_option = strncmp(text, "  -", 3) == 0 || spaces >= help_column;
        snprintf(line, sizeof(line), "%.*s\n", (int)length, text);
        sj_terminal_wrap(stdout, &terminal, line, is_option ? help_column : spaces);
        text += length + (text[length] == '\n');
    }
}

int sj_command_help(const sj_command *command, bool shows_all)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) {
        return sj_command_error(command, SJ_EXIT_FAILED, "out of memory");
    }
    fprintf(file, "Usage: %s\n\n%s.\n\n", command->usage, command->summary);
    if (command->help != NULL) {
        fprintf(file, "%s\n", command->help);
    }
    print_options(file, command, shows_all);
    fprintf(file, "\n%s", command->examples);
    fclose(file);
    print_fitted(text, label_width(sj_option_first(command->options, false)) + 4);
    free(text);
    return SJ_EXIT_OK;
}

int sj_command_usage_error(const sj_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "sojourn %s: ", command->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nUsage: %s\nTry \"sojourn %s --help\".\n", command->usage, command->name);
    va_end(arguments);
    return SJ_EXIT_USAGE;
}

int sj_command_error(const sj_command *command, int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sj_work_progress_hide();
    fprintf(stderr, "sojourn %s: ", command->name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return exit_code;
}

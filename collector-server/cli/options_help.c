#include "collector-server/cli/options.h"

#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 21, LABEL_BYTES = 64 };

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

static void print_option(const sj_option *option, int width)
{
    char label[LABEL_BYTES];
    make_label(option, label);
    printf("  %-*s", width, label);
    if ((int)strlen(label) > width) {
        printf("\n  %*s", width, "");
    }
    for (const char *line = option->help; line != NULL;) {
        const char *end = strchr(line, '\n');
        printf("  %.*s\n", (int)(end != NULL ? (size_t)(end - line) : strlen(line)), line);
        line = end != NULL ? end + 1 : NULL;
        if (line != NULL) {
            printf("  %*s", width, "");
        }
    }
}

void sj_options_print(const sj_option *options)
{
    static const sj_option help = {.name = "help", .kind = SJ_ARG_FLAG, .help = "this text"};
    const sj_option *first = sj_option_first(options, false);
    char label[LABEL_BYTES];
    size_t width = strlen("--help");
    for (const sj_option *row = first; row != NULL; row = sj_option_next(row, false)) {
        if (row->kind != SJ_ARG_HEADING && row->help != NULL) {
            make_label(row, label);
            width = strlen(label) > width && strlen(label) <= LABEL_MAX ? strlen(label) : width;
        }
    }
    if (first == NULL || first->kind != SJ_ARG_HEADING) {
        printf("Options:\n");
    }
    for (const sj_option *row = first; row != NULL; row = sj_option_next(row, false)) {
        if (row->kind == SJ_ARG_HEADING) {
            printf("%s%s\n", row == first ? "" : "\n", row->help);
        } else if (row->help != NULL) {
            print_option(row, (int)width);
        }
    }
    print_option(&help, (int)width);
}

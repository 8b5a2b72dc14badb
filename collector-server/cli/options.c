#include "collector-server/cli/options.h"

#include "agent/policy/suggest.h"
#include "collector-server/cli/command.h"
#include "collector-server/cli/terminal.h"
#include "proto/base/units.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, FIRST_VALUE = 256, HELP_VALUE = 255, HELP_ALL_VALUE = 254 };

/* Values of the options that all commands have; the lowest is the first. */
enum { NO_PAGER_VALUE = 252, COLOUR_VALUE = 253, COMMON_OPTIONS = 4 };

/* The arguments of getopt_long(3), made from an option table. */
typedef struct getopt_tables {
    const sj_option *options[OPTIONS_MAX];
    size_t count;
    struct option names[OPTIONS_MAX + COMMON_OPTIONS + 1];
    char letters[2 * OPTIONS_MAX + 4];
} getopt_tables;

static bool has_name(const getopt_tables *tables, const char *name)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (strcmp(tables->options[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void make_tables(const sj_command *command, getopt_tables *tables)
{
    const sj_option *option = sj_option_first(command->options, true);
    char *letter = tables->letters;
    tables->count = 0;
    if (command->stops_at_argument) {
        *letter++ = '+';
    }
    *letter++ = ':';
    *letter++ = 'h';
    for (; option != NULL; option = sj_option_next(option, true)) {
        const size_t i = tables->count;
        if (option->kind == SJ_ARG_HEADING || i == OPTIONS_MAX || has_name(tables, option->name)) {
            continue;
        }
        tables->names[i] = (struct option){option->name,
                                           option->argument == NULL ? no_argument
                                           : option->is_optional    ? optional_argument
                                                                    : required_argument,
                                           NULL, FIRST_VALUE + (int)i};
        tables->options[tables->count++] = option;
        if (option->letter != '\0') {
            *letter++ = option->letter;
            if (option->argument != NULL) {
                *letter++ = ':';
            }
        }
    }
    *letter = '\0';
    tables->names[tables->count] = (struct option){"help", no_argument, NULL, HELP_VALUE};
    tables->names[tables->count + 1] =
        (struct option){"help-all", no_argument, NULL, HELP_ALL_VALUE};
    tables->names[tables->count + 2] =
        (struct option){"color", required_argument, NULL, COLOUR_VALUE};
    tables->names[tables->count + 3] =
        (struct option){"no-pager", no_argument, NULL, NO_PAGER_VALUE};
    tables->names[tables->count + COMMON_OPTIONS] = (struct option){0};
}

/* Returns the option for a result of getopt_long, NULL if there is none. */
static const sj_option *find_option(const getopt_tables *tables, int found)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (FIRST_VALUE + (int)i == found || tables->options[i]->letter == found) {
            return tables->options[i];
        }
    }
    return NULL;
}

static sj_status parse_number(const sj_option *option, const char *text, int64_t *number,
                              sj_error *error)
{
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const bool is_number = errno == 0 && end != text && *end == '\0' && value >= option->least &&
                           (option->most == 0 || value <= option->most);
    if (is_number) {
        *number = value;
        return SJ_OK;
    }
    return option->most == 0
               ? sj_fail(error, SJ_EINVAL, "--%s needs a number from %lld on, not \"%s\"",
                         option->name, (long long)option->least, text)
               : sj_fail(error, SJ_EINVAL, "--%s needs a number from %lld to %lld, not \"%s\"",
                         option->name, (long long)option->least, (long long)option->most, text);
}

enum { BOUND_BYTES = 32 };

/* Writes a bound of a time in its largest whole unit, as sj_duration_parse accepts it. */
static const char *format_bound(int64_t ms, char text[BOUND_BYTES])
{
    const int64_t day_ms = 86400000;
    if (ms != 0 && ms % day_ms == 0) {
        snprintf(text, BOUND_BYTES, "%lldd", (long long)(ms / day_ms));
    } else if (ms % 1000 == 0) {
        snprintf(text, BOUND_BYTES, "%llds", (long long)(ms / 1000));
    } else {
        snprintf(text, BOUND_BYTES, "%lldms", (long long)ms);
    }
    return text;
}

static sj_status parse_time(const sj_option *option, const char *text, int64_t *ms, sj_error *error)
{
    const uint64_t ms_ns = 1000000;
    uint64_t ns = 0;
    if (!sj_duration_parse(text, &ns) || ns / ms_ns < (uint64_t)option->least ||
        (option->most != 0 && ns / ms_ns > (uint64_t)option->most)) {
        const int64_t longest_ms = INT64_C(1000000000000); /* of sj_duration_parse */
        char least[BOUND_BYTES];
        char most[BOUND_BYTES];
        return sj_fail(error, SJ_EINVAL,
                       "--%s needs a time as 30, 500ms or 2m, from %s to %s, not \"%s\"",
                       option->name, format_bound(option->least, least),
                       format_bound(option->most != 0 ? option->most : longest_ms, most), text);
    }
    *ms = (int64_t)(ns / ms_ns);
    return SJ_OK;
}

static sj_status set_value(const sj_option *option, const char *text, void *values, sj_error *error)
{
    void *member = (char *)values + option->offset;
    switch (option->kind) {
    case SJ_ARG_FLAG:
        *(bool *)member = true;
        return SJ_OK;
    case SJ_ARG_CHOICE:
        *(int *)member = (int)option->least;
        return SJ_OK;
    case SJ_ARG_TEXT:
        *(const char **)member = text != NULL ? text : "";
        return SJ_OK;
    case SJ_ARG_NUMBER:
        return parse_number(option, text, member, error);
    case SJ_ARG_TIME:
        return parse_time(option, text, member, error);
    case SJ_ARG_PARSED:
        return option->parse(option, values, text, error);
    case SJ_ARG_HEADING:
    case SJ_ARG_TABLE:
        break;
    }
    return SJ_OK;
}

/* True if several options begin with the word. */
static bool is_ambiguous(const getopt_tables *tables, const char *word)
{
    const size_t length = strcspn(word, "=");
    size_t count = 0;
    for (size_t i = 0; i < tables->count + COMMON_OPTIONS && length > 2; i++) {
        count += strncmp(word + 2, tables->names[i].name, length - 2) == 0;
    }
    return count > 1;
}

/* Returns the name of the option that the word most likely means, or NULL. */
static const char *nearest_name(const getopt_tables *tables, const char *word)
{
    const char *names[OPTIONS_MAX + COMMON_OPTIONS];
    char name[64];
    const size_t dashes = strspn(word, "-");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + dashes, "="), word + dashes);
    for (size_t i = 0; i < tables->count + COMMON_OPTIONS; i++) {
        names[i] = tables->names[i].name;
    }
    return sj_suggest(name, names, tables->count + COMMON_OPTIONS);
}

/* Prints why getopt_long refused the word. `found` is its return value. */
static int report_refused(const sj_command *command, const getopt_tables *tables, int found,
                          const char *word)
{
    const bool needs_value = found == ':';
    if (optopt > 0 && optopt < NO_PAGER_VALUE) { /* one letter, perhaps inside a group of letters */
        return sj_command_usage_error(
            command, needs_value ? "-%c needs a value" : "unknown option -%c", optopt);
    }
    if (optopt >= NO_PAGER_VALUE && !needs_value) {
        return sj_command_usage_error(command, "%.*s takes no value", (int)strcspn(word, "="),
                                      word);
    }
    if (needs_value || is_ambiguous(tables, word)) {
        return sj_command_usage_error(
            command, needs_value ? "%s needs a value" : "several options begin with %s", word);
    }
    const char *nearest = nearest_name(tables, word);
    return nearest != NULL ? sj_command_usage_error(
                                 command, "unknown option %s; did you mean --%s?", word, nearest)
                           : sj_command_usage_error(command, "unknown option %s", word);
}

/* Parses the options whose is_first equals `is_first` and skips the others. The return values are
 * as for sj_options_parse. */
static int parse_pass(const sj_command *command, const getopt_tables *tables, int argc, char **argv,
                      bool is_first, void *values)
{
    sj_error error = {0};
    int found;
    optind = 0; /* makes getopt start again */
    opterr = 0;
    while ((found = getopt_long(argc, argv, tables->letters, tables->names, NULL)) != -1) {
        if (found == 'h' || found == HELP_VALUE || found == HELP_ALL_VALUE) {
            return sj_command_help(command, found == HELP_ALL_VALUE);
        }
        if (found == ':' || found == '?') {
            return report_refused(command, tables, found, argv[optind - 1]);
        }
        if (found == COLOUR_VALUE && !sj_terminal_set_colour(optarg)) {
            return sj_command_usage_error(
                command, "--color takes auto, always or never, not \"%s\"", optarg);
        }
        if (found == NO_PAGER_VALUE) {
            sj_terminal_forbid_pager();
        }
        const sj_option *option = find_option(tables, found);
        if (option != NULL && option->is_first == is_first &&
            set_value(option, optarg, values, &error) != SJ_OK) {
            return !is_first ? sj_command_usage_error(command, "%s", error.text)
                             : sj_command_failed(command, &error);
        }
    }
    return -1;
}

int sj_options_parse(const sj_command *command, int argc, char **argv, void *values, int *first)
{
    getopt_tables tables;
    make_tables(command, &tables);
    int code = parse_pass(command, &tables, argc, argv, true, values);
    if (code < 0) {
        code = parse_pass(command, &tables, argc, argv, false, values);
    }
    *first = optind;
    return code;
}

/* The output of commands with --json. */
#ifndef SJ_COLLECTOR_SERVER_CLI_JSON_OUTPUT_H
#define SJ_COLLECTOR_SERVER_CLI_JSON_OUTPUT_H

#include "collector-server/cli/command.h"

#include <jansson.h>

/* The format of all commands with --json is {"schema": 1, "rows": [...]}.
 * schema/commands.schema.json describes the rows of each command. Times are whole nanoseconds, and
 * sizes are whole bytes. Ids are not shortened. Integers above 2^53 are strings. A command that
 * prints its rows one by one prints these two texts around them. */
#define SJ_JSON_ROWS_BEGIN "{\"schema\": 1, \"rows\": ["
#define SJ_JSON_ROWS_END "\n]}\n"

/* Prints the rows of a command to standard output: the elements of an array, or one object. Takes
 * ownership of `value`. Returns SJ_EXIT_OK, or SJ_EXIT_FAILED after a message if writing failed or
 * memory ran out. `value` may be NULL, which means that memory ran out. */
int sj_json_output(const sj_command *command, json_t *value);

/* sj_json_clean_string returns a JSON string. sj_json_clean_load parses JSON; it returns NULL if
 * the text is not JSON. Both replace bytes of the text that are not UTF-8 by U+FFFD. Both return
 * NULL if out of memory. */
json_t *sj_json_clean_string(const char *text);
json_t *sj_json_clean_load(const char *text);

#endif

/* What a command with --json writes. */
#ifndef SJ_COLLECTOR_SERVER_CLI_JSON_OUTPUT_H
#define SJ_COLLECTOR_SERVER_CLI_JSON_OUTPUT_H

#include "collector-server/cli/command.h"

#include <jansson.h>

/* What every command writes with --json is {"schema": 1, "rows": [...]};
 * schema/commands.schema.json has the rows of each command. Times are whole nanoseconds, sizes
 * whole bytes, ids are not cut, and integers beyond 2^53 are strings. A command that writes row by
 * row puts these around its rows. */
#define SJ_JSON_ROWS_BEGIN "{\"schema\": 1, \"rows\": ["
#define SJ_JSON_ROWS_END "\n]}\n"

/* sj_json_output prints the rows of a command to standard output: those of an array, or one object.
 * Takes `value`; NULL means that there was no memory for it. Returns an exit code, after a message
 * if it is not SJ_EXIT_OK. */
int sj_json_output(const sj_command *command, json_t *value);

/* sj_json_clean_string makes a string of a text whose bytes may be anything: those that are no
 * UTF-8 become U+FFFD. NULL: no memory. sj_json_clean_load reads JSON with such strings; NULL: it
 * is none. */
json_t *sj_json_clean_string(const char *text);
json_t *sj_json_clean_load(const char *text);

#endif

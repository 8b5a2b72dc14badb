/* What a command with --json writes. */
#ifndef SJ_COLLECTOR_SERVER_CLI_JSON_OUTPUT_H
#define SJ_COLLECTOR_SERVER_CLI_JSON_OUTPUT_H

#include "collector-server/cli/command.h"

#include <jansson.h>

/* sj_json_output prints a value, which it takes, to standard output; NULL: there was no memory for
 * it. Returns an exit code, after a message when it is not SJ_EXIT_OK. */
int sj_json_output(const sj_command *command, json_t *value);

/* sj_json_clean_string makes a string of a text whose bytes may be anything: those that are no
 * UTF-8 become U+FFFD. NULL: no memory. sj_json_clean_load reads JSON with such strings; NULL: it
 * is none. */
json_t *sj_json_clean_string(const char *text);
json_t *sj_json_clean_load(const char *text);

#endif

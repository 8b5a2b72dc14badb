/* Notices when jansson lacks memory. Jansson 2.14 ignores a failed allocation while it reads a
 * string: it leaves out a character and returns the shorter text. It also leaves its error text
 * empty in most cases. */
#ifndef SJ_AGENT_DAEMON_JSON_MEMORY_H
#define SJ_AGENT_DAEMON_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Counts jansson's failed allocations from now on. Call it once, before jansson is used. */
void sj_json_memory_watch(void);

/* Returns the number of jansson's allocations that failed in the calling thread. What jansson read
 * while the number grew may be wrong. */
unsigned sj_json_memory_failures(void);

/* Parses a text, or the rest of a file, without duplicate keys. The caller releases the value.
 * Returns NULL if it is not JSON or if memory is short; `problem->text` is never empty then. */
json_t *sj_json_parse(const char *text, json_error_t *problem);
json_t *sj_json_parse_file(FILE *file, json_error_t *problem);

/* True if a value of sj_json_parse is missing because memory was short. */
bool sj_json_is_out_of_memory(const json_error_t *problem);

#endif

/* The environment of a launched program, with the entries that the launcher added for the agent. */
#ifndef SJ_AGENT_INPROC_LINK_ENVIRONMENT_H
#define SJ_AGENT_INPROC_LINK_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* sj_environment_value returns the value if `entry` is NAME=value, else NULL. sj_environment_find
 * returns the entry with that name, or NULL. */
char *sj_environment_value(char *entry, const char *name);
char *sj_environment_find(char **environment, const char *name);

/* Copies SOJOURN_RUNTIME to `runtime` and restores the environment to its state before the launch,
 * in place. Entries SOJOURN_* are removed. LD_PRELOAD gets its earlier value in the same position,
 * or is removed. Returns false, and changes nothing, if the program was not launched by Sojourn.
 * Returns false, with the environment restored, if the directory's name does not fit. */
bool sj_environment_consume(char **environment, char *runtime, size_t runtime_bytes);

#endif

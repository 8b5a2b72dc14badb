/* Checks whether programs can record themselves here (agent/direct), by running one that does. */
#ifndef SJ_AGENT_HOST_DIRECT_CHECKS_H
#define SJ_AGENT_HOST_DIRECT_CHECKS_H

#include <jansson.h>

/* Runs /bin/true with libsojourn-direct.so and the settings of the environment, without a
 * collector. Appends the result to `checks` and deletes the recording. Blocks for tens of
 * milliseconds, at most as long as a program waits for the library (half a minute). */
void sj_doctor_check_direct(json_t *checks);

#endif

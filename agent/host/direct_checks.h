/* Whether programs can record themselves here (agent/direct), found out by having one do it. */
#ifndef SJ_AGENT_HOST_DIRECT_CHECKS_H
#define SJ_AGENT_HOST_DIRECT_CHECKS_H

#include <jansson.h>

/* sj_doctor_check_direct runs a small program with libsojourn-direct.so, with the settings of the
 * environment, and without a collector: what it recorded is taken away again. Blocking: tens of
 * milliseconds, at most what a program waits for the library (half a minute). */
void sj_doctor_check_direct(json_t *checks);

#endif

/* Direct mode: one thread inside this process records the process itself. It is for systems where
 * no daemon can run. It uses the same pipeline as `sojourn record` (agent/recording/pipeline.h).
 * Neither the parts of the pipeline nor its channel start threads. The channel leads to a collector
 * on this machine. */
#ifndef SJ_AGENT_DIRECT_DIRECT_H
#define SJ_AGENT_DIRECT_DIRECT_H

#include "agent/direct/settings.h"

#include <stdatomic.h>
#include <stdint.h>

/* Records until `is_over` is set, or until the calling thread is the process's last thread. Then
 * delivers the rest.
 *
 * Calls `announce` with the runtime directory as soon as the agent can connect. If the recording
 * cannot start, never calls it, and the log says why.
 *
 * The calling thread must belong to Sojourn. It gets its own descriptor table, which no other
 * thread in the process uses. */
void sj_direct_record(const sj_direct_settings *settings, char **arguments,
                      void (*announce)(const char *runtime), const atomic_bool *is_over);

/* Returns how long the end of the program may be delayed for the delivery, in milliseconds. */
uint64_t sj_direct_wait_ms(const sj_direct_settings *settings);

#endif

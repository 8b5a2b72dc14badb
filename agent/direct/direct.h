/* Direct mode: a recording of this very process, made by one thread inside of it, for places where
 * no daemon can run. The same rooms as in `sojourn record` (recording_parts.h), without threads and
 * with a channel that has none, to a collector on this machine. */
#ifndef SJ_AGENT_DIRECT_DIRECT_H
#define SJ_AGENT_DIRECT_DIRECT_H

#include "agent/direct/settings.h"

#include <stdatomic.h>
#include <stdint.h>

/* sj_direct_record records until `is_over` or until the calling thread is the last of the process,
 * and delivers the rest. `announce` is called with the runtime directory as soon as the agent is
 * listened to; when the recording cannot be made it is never called, and the log says why. The
 * calling thread is Sojourn's own: it gets descriptors of its own, which no one else in the process
 * has. */
void sj_direct_record(const sj_direct_settings *settings, char **arguments,
                      void (*announce)(const char *runtime), const atomic_bool *is_over);

/* sj_direct_wait_ms is how long a program that ends may be held up by what is not yet delivered. */
uint64_t sj_direct_wait_ms(const sj_direct_settings *settings);

#endif

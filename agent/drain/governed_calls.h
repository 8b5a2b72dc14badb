/* Counts the calls that a thread has recorded, for the overhead governor. */
#ifndef SJ_AGENT_DRAIN_GOVERNED_CALLS_H
#define SJ_AGENT_DRAIN_GOVERNED_CALLS_H

#include "agent/abi/record.h"
#include "agent/modes/overhead_governor.h"

#include <stddef.h>

/* Counts the entries among the records. Called by the drain's thread. */
void sj_governed_calls_count(sj_governed_process *governed, const sj_record *records, size_t count);

#endif

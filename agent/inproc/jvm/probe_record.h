/* Writes the records of Java probes. */
#ifndef SJ_AGENT_INPROC_JVM_PROBE_RECORD_H
#define SJ_AGENT_INPROC_JVM_PROBE_RECORD_H

#include "agent/inproc/recorder/write.h"

/* Writes an entry or exit record to a reserved address. `stack` is an sj_managed_stack, for example
 * SJ_MANAGED_CALL. */
static inline void sj_jvm_put_record(uint64_t address, uint64_t ticks, uint32_t tag, uint64_t stack)
{
    const uint64_t ticks48_mask = (UINT64_C(1) << 48) - 1;
    *(volatile uint64_t *)address = (ticks & ticks48_mask) | stack << 48;
    /* A tag other than 0, in the upper half of this word, means that the record is complete. */
    atomic_store_explicit((_Atomic uint64_t *)(address + 8), (uint64_t)tag << 32,
                          memory_order_release);
}

#endif

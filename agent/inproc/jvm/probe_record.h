/* How the JVM's probes write a record. */
#ifndef SJ_AGENT_INPROC_JVM_PROBE_RECORD_H
#define SJ_AGENT_INPROC_JVM_PROBE_RECORD_H

#include "agent/inproc/recorder/write.h"

/* Writes an entry or exit to a reserved address. `stack` is an sj_managed_stack, for example
 * SJ_MANAGED_CALL. */
static inline void sj_jvm_put_record(uint64_t address, uint64_t ticks, uint32_t tag, uint64_t stack)
{
    const uint64_t ticks48_mask = (UINT64_C(1) << 48) - 1;
    *(volatile uint64_t *)address = (ticks & ticks48_mask) | stack << 48;
    /* The tag, in the upper half, says that the record is complete. */
    atomic_store_explicit((_Atomic uint64_t *)(address + 8), (uint64_t)tag << 32,
                          memory_order_release);
}

#endif

/* Finds the functions with which runtimes trace their own methods. Each of these functions receives
 * a thread and a method. */
#ifndef SJ_AGENT_RUNTIMES_JVM_TRACER_H
#define SJ_AGENT_RUNTIMES_JVM_TRACER_H

#include "agent/objfile/elf_view.h"

/* Addresses as in the file. */
typedef struct sj_tracer {
    uint64_t entry;
    uint64_t exit;
} sj_tracer;

/* Finds the functions in a runtime's library by symbols, and by SystemTap probes (.note.stapsdt)
 * with unwind tables. If there are symbols, both must agree. Returns SJ_ENOTFOUND if the runtime is
 * unknown or was built without them, or SJ_ENOMEM. Thread-safe. */
SJ_MUST_CHECK sj_status sj_tracer_find(const sj_elf *elf, sj_tracer *tracer);

#endif

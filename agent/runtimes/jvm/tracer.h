/* Finds the two functions by which a runtime traces the entries and exits of its own methods. Their
 * arguments are a thread and a method. */
#ifndef SJ_AGENT_RUNTIMES_JVM_TRACER_H
#define SJ_AGENT_RUNTIMES_JVM_TRACER_H

#include "agent/objfile/elf_view.h"

/* Addresses of the two functions in the file (not relocated). */
typedef struct sj_tracer {
    uint64_t entry;
    uint64_t exit;
} sj_tracer;

/* Finds the functions in a runtime's library by symbols, and by SystemTap probes (.note.stapsdt)
 * together with unwind tables. If the library has symbols, both results must be equal. Returns
 * SJ_ENOTFOUND if the runtime is not known or was built without these functions, or SJ_ENOMEM.
 * Thread-safe. */
SJ_MUST_CHECK sj_status sj_tracer_find(const sj_elf *elf, sj_tracer *tracer);

#endif

/* The functions with which runtimes trace their own methods, by runtime and version: each gets a
 * thread and a method. */
#ifndef SJ_AGENT_RUNTIMES_JVM_TRACER_H
#define SJ_AGENT_RUNTIMES_JVM_TRACER_H

#include "agent/objfile/elf_view.h"

/* Addresses as the file has them. */
typedef struct sj_tracer {
    uint64_t entry;
    uint64_t exit;
} sj_tracer;

/* sj_tracer_find finds them in a runtime's library: by symbol, or where it has none by their
 * probes for SystemTap (.note.stapsdt) and its unwind tables. Both must agree. SJ_ENOTFOUND: it is
 * no runtime that is known, or was built without; SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_tracer_find(const sj_elf *elf, sj_tracer *tracer);

#endif

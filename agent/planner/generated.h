/* Plans code that a program generates at run time. No file contains such code, so the caller passes
 * its bytes. The planner derives the frames from the instructions, because there are no unwind
 * tables.
 *
 * The planner does not move instructions that a runtime finds by their address. These are calls,
 * because the runtime rewrites call sites that it finds by return addresses. They are also
 * instructions that may fault, because the runtime turns faults into exceptions. */
#ifndef SJ_AGENT_PLANNER_GENERATED_H
#define SJ_AGENT_PLANNER_GENERATED_H

#include "agent/planner/planner.h"

enum { SJ_GENERATED_SPAN_BYTES = 256 * 1024 * 1024 };

typedef struct sj_generated_function {
    uint64_t address;
    uint32_t size;
    uint32_t function;    /* id in the session */
    const uint8_t *bytes; /* borrowed for the call */
} sj_generated_function;

/* Plans functions that are sorted by address, do not overlap, and lie within
 * SJ_GENERATED_SPAN_BYTES. The plan's offsets are addresses, and its functions have the source
 * SJ_SYMBOL_GENERATED. The bytes are untrusted. Returns SJ_EUNSUPPORTED if generated code of that
 * machine cannot be planned. Returns SJ_ECORRUPT if the functions are not as required, and
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_plan_make_generated(uint16_t elf_machine,
                                               const sj_generated_function *functions, size_t count,
                                               sj_plan *plan);

/* Adds unwind ranges for the functions of a module whose text is loaded. A function gets no range
 * if the frames at its exits cannot be derived. Returns SJ_ENOMEM if out of memory. */
struct sj_module;
SJ_MUST_CHECK sj_status sj_generated_find_frames(struct sj_module *module,
                                                 const sj_generated_function *functions,
                                                 size_t count);

#endif

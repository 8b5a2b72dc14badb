/* Plans code that a program generates at run time. No file describes it, so the caller passes its
 * bytes. What unwind tables say of other code is derived from the instructions.
 *
 * Instructions that a runtime finds by their address are not moved. These are calls, because return
 * addresses identify call sites that the runtime rewrites, and instructions that may fault, because
 * the runtime turns faults into exceptions. */
#ifndef SJ_AGENT_PLANNER_GENERATED_H
#define SJ_AGENT_PLANNER_GENERATED_H

#include "agent/planner/planner.h"

enum { SJ_GENERATED_SPAN_BYTES = 256 * 1024 * 1024 };

typedef struct sj_generated_function {
    uint64_t address;
    uint32_t size;
    uint32_t function;    /* its id in the session */
    const uint8_t *bytes; /* borrowed for the call */
} sj_generated_function;

/* Plans functions that are sorted by address, do not overlap, and lie within
 * SJ_GENERATED_SPAN_BYTES. The plan's offsets are addresses, and its functions have the source
 * SJ_SYMBOL_GENERATED. The bytes may have any content. Returns SJ_EUNSUPPORTED if there is no such
 * machine, SJ_ECORRUPT if the functions are not in that form, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_plan_make_generated(uint16_t elf_machine,
                                               const sj_generated_function *functions, size_t count,
                                               sj_plan *plan);

/* Makes unwind ranges for the functions of a module whose text is loaded. A function whose exits
 * are not understood gets none. SJ_ENOMEM. */
struct sj_module;
SJ_MUST_CHECK sj_status sj_generated_find_frames(struct sj_module *module,
                                                 const sj_generated_function *functions,
                                                 size_t count);

#endif

/* Plans for code that a program generates while it runs: no file describes it, so its bytes come
 * along, and what unwind tables say of other code is read from the instructions.
 *
 * Nothing is moved that a runtime finds by its address: calls, because return addresses identify
 * call sites, which the runtime rewrites, and what may fault, because faults become exceptions
 * there. */
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

/* sj_plan_make_generated plans functions that lie by rising address, without overlaps, within
 * SJ_GENERATED_SPAN_BYTES. The plan's offsets are addresses, and the functions in it have the
 * source SJ_SYMBOL_GENERATED. What the bytes hold may be anything. SJ_EUNSUPPORTED no such machine,
 * SJ_ECORRUPT functions that do not lie so, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_plan_make_generated(uint16_t elf_machine,
                                               const sj_generated_function *functions, size_t count,
                                               sj_plan *plan);

/* sj_generated_find_frames makes unwind ranges of the functions of a module whose text is there.
 * Functions whose ends are not understood get none. SJ_ENOMEM. */
struct sj_module;
SJ_MUST_CHECK sj_status sj_generated_find_frames(struct sj_module *module,
                                                 const sj_generated_function *functions,
                                                 size_t count);

#endif

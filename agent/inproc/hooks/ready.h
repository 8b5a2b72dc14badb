/* Ready stubs: one process of a session saves the stubs of a plan in a file, and later processes
 * use this file. */
#ifndef SJ_AGENT_INPROC_HOOKS_READY_H
#define SJ_AGENT_INPROC_HOOKS_READY_H

#include "agent/inproc/hooks/hooks.h"

/* Where the module of a plan is mapped: its bias, and the addresses of its text. */
typedef struct sj_ready_place {
    uint64_t bias;
    uint64_t text_low;
    uint64_t text_high;
    uint32_t first_function; /* id of the plan's first function */
} sj_ready_place;

/* Identifies a plan file. The path alone does not: a new policy replaces the file. */
typedef struct sj_ready_plan {
    uint64_t device, inode, bytes, changed_s, changed_ns;
} sj_ready_plan;

/* Fills in the identity of an open plan file. Returns false if the kernel does not report it. */
SJ_MUST_CHECK bool sj_ready_identify(int file, sj_ready_plan *plan);

/* Does the work of sj_hooks_apply with the stubs that were saved beside the plan file at
 * `plan_path`. Returns false, and does not change the text, if there are no usable stubs, or if the
 * text differs from the plan's. */
SJ_MUST_CHECK bool sj_ready_apply(const char *plan_path, const sj_ready_place *place,
                                  sj_hooked_module *module, sj_hooks_report *report);

/* Saves the stubs of sj_hooks_apply in a file beside `plan_path`, if other processes can use them.
 * `file` identifies the file that the plan was read from. The first process only creates an empty
 * file, because most programs have one process. Replaces the stubs of an earlier plan. Errors are
 * ignored. */
void sj_ready_keep(const char *plan_path, const sj_ready_plan *file, const void *plan,
                   const sj_hooked_module *module, const sj_hooks_report *report);

#endif

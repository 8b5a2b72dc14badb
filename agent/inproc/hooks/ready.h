/* Ready stubs: one process of a session makes the stubs of a plan, and later ones reuse them. */
#ifndef SJ_AGENT_INPROC_HOOKS_READY_H
#define SJ_AGENT_INPROC_HOOKS_READY_H

#include "agent/inproc/hooks/hooks.h"

/* Addresses of the module that a plan is for. */
typedef struct sj_ready_place {
    uint64_t bias;
    uint64_t text_low;
    uint64_t text_high;
    uint32_t first_function; /* function id */
} sj_ready_place;

/* Identifies a plan file. Its path leads to another file after a policy has made the plan again. */
typedef struct sj_ready_plan {
    uint64_t device, inode, bytes, changed_s, changed_ns;
} sj_ready_plan;

/* Fills in the identity of an open plan file. Returns false if the kernel does not report it. */
SJ_MUST_CHECK bool sj_ready_identify(int file, sj_ready_plan *plan);

/* Does the work of sj_hooks_apply with the stubs that were kept beside the plan file at
 * `plan_path`. Returns false, and changes nothing, if no fitting stubs were kept, or if the text
 * differs from the plan's. */
SJ_MUST_CHECK bool sj_ready_apply(const char *plan_path, const sj_ready_place *place,
                                  sj_hooked_module *module, sj_hooks_report *report);

/* Keeps the result of sj_hooks_apply beside `plan_path`, if other processes can use it. `file`
 * identifies the file that the plan was read from. The first process only leaves an empty file,
 * because most programs have one process. The result of an earlier plan is replaced. */
void sj_ready_keep(const char *plan_path, const sj_ready_plan *file, const void *plan,
                   const sj_hooked_module *module, const sj_hooks_report *report);

#endif

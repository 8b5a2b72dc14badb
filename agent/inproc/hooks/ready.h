/* Stubs that are ready: what one process of a session has made of a plan, for the next ones. */
#ifndef SJ_AGENT_INPROC_HOOKS_READY_H
#define SJ_AGENT_INPROC_HOOKS_READY_H

#include "agent/inproc/hooks/hooks.h"

/* Where the module lies that a plan is for. */
typedef struct sj_ready_place {
    uint64_t bias;
    uint64_t text_low;
    uint64_t text_high;
    uint32_t first_function; /* id */
} sj_ready_place;

/* Which plan file it is: a path leads to another one when a policy makes the plan anew. */
typedef struct sj_ready_plan {
    uint64_t device, inode, bytes, changed_s, changed_ns;
} sj_ready_plan;

/* sj_ready_identify fills in which plan file an open one is. False: the kernel does not say. */
SJ_MUST_CHECK bool sj_ready_identify(int file, sj_ready_plan *plan);

/* sj_ready_apply does what sj_hooks_apply does, by what was kept beside the plan file at
 * `plan_path`. False: nothing that fits was kept, or the text is not the plan's; nothing has
 * changed. */
SJ_MUST_CHECK bool sj_ready_apply(const char *plan_path, const sj_ready_place *place,
                                  sj_hooked_module *module, sj_hooks_report *report);

/* sj_ready_keep keeps beside `plan_path` what sj_hooks_apply has made of a plan, which was read
 * from `file`, if it can be used again. The first process only notes that it was there: most
 * programs have one. What was kept of an earlier plan is replaced. */
void sj_ready_keep(const char *plan_path, const sj_ready_plan *file, const void *plan,
                   const sj_hooked_module *module, const sj_hooks_report *report);

#endif

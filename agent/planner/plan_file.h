/* Plan files: writing, mapping, caching. */
#ifndef SJ_AGENT_PLANNER_PLAN_FILE_H
#define SJ_AGENT_PLANNER_PLAN_FILE_H

#include "agent/planner/builder.h"
#include "agent/planner/planner.h"

enum { SJ_PLAN_PATH_BYTES = 4096 };

/* sj_plan_version is the planner's version in plan headers and cache names: 7 bytes at most. */
extern const char sj_plan_version[];

/* sj_plan_serialize lays a finished builder out as a plan file in `*plan` (allocated).
 * SJ_ENOMEM, SJ_ELIMIT past 4 GiB. */
SJ_MUST_CHECK sj_status sj_plan_serialize(const sj_builder *builder, const char *module_path,
                                          sj_slice identity, sj_plan *plan);

/* sj_plan_map maps and checks a plan file. SJ_ENOTFOUND, SJ_ECORRUPT, SJ_EVERSION. */
SJ_MUST_CHECK sj_status sj_plan_map(const char *path, sj_plan *plan);

/* sj_identity_of is a module's build-id, or a hash of its content kept in `hash`. */
sj_slice sj_identity_of(const sj_elf *elf, uint8_t hash[20]);

/* sj_cache_path names the cached plan of a module under the options' cache directory. The name
 * stands for the module's identity, the planner's version and the symbol sources.
 * false: no cache, or the name is too long. */
bool sj_cache_path(const sj_planner_options *options, const sj_elf *elf, sj_slice identity,
                   char path[SJ_PLAN_PATH_BYTES]);

#endif

/* Plan files: writing, mapping, caching. */
#ifndef SJ_AGENT_PLANNER_PLAN_FILE_H
#define SJ_AGENT_PLANNER_PLAN_FILE_H

#include "agent/planner/builder.h"
#include "agent/planner/planner.h"

enum { SJ_PLAN_PATH_BYTES = 4096 };

/* The planner's version in plan headers and cache names, at most 7 bytes. */
extern const char sj_plan_version[];

/* Writes a finished builder as a plan file into `*plan` (allocated). Returns SJ_ENOMEM, or
 * SJ_ELIMIT beyond 4 GiB. */
SJ_MUST_CHECK sj_status sj_plan_serialize(const sj_builder *builder, const char *module_path,
                                          sj_slice identity, sj_plan *plan);

/* Maps and checks a plan file. Returns SJ_ENOTFOUND, SJ_ECORRUPT or SJ_EVERSION. */
SJ_MUST_CHECK sj_status sj_plan_map(const char *path, sj_plan *plan);

/* Returns a module's build-id, or a hash of its content, stored in `hash`. */
sj_slice sj_identity_of(const sj_elf *elf, uint8_t hash[20]);

/* Writes the path of a module's plan in the cache directory of the options. It depends on the
 * module's identity, the planner's version and the symbol sources. Returns false if there is no
 * cache, or if the path is too long. */
bool sj_cache_path(const sj_planner_options *options, const sj_elf *elf, sj_slice identity,
                   char path[SJ_PLAN_PATH_BYTES]);

#endif

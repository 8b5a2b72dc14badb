/* Writes, maps and caches plan files. */
#ifndef SJ_AGENT_PLANNER_PLAN_FILE_H
#define SJ_AGENT_PLANNER_PLAN_FILE_H

#include "agent/planner/builder.h"
#include "agent/planner/planner.h"

enum { SJ_PLAN_PATH_BYTES = 4096 };

/* The planner's version in plan headers and cache names, at most 7 bytes. */
extern const char sj_plan_version[];

/* Writes the plan of a finished builder to memory that `*plan` owns. Returns SJ_ENOMEM if out of
 * memory, and SJ_ELIMIT if the plan exceeds 4 GiB. */
SJ_MUST_CHECK sj_status sj_plan_serialize(const sj_builder *builder, const char *module_path,
                                          sj_slice identity, sj_plan *plan);

/* Maps and checks a plan file. Returns SJ_ENOTFOUND if it cannot be opened, and SJ_ECORRUPT or
 * SJ_EVERSION if it is invalid. */
SJ_MUST_CHECK sj_status sj_plan_map(const char *path, sj_plan *plan);

/* Returns a module's build-id. If it has none, writes a hash of its content to `hash` and returns
 * that. */
sj_slice sj_identity_of(const sj_elf *elf, uint8_t hash[20]);

/* Writes the path of a module's plan in the cache directory of the options. The path depends on the
 * module's identity, the planner's version, the files with symbols, and which imports are planned.
 * Returns false if there is no cache directory, or if the path is too long. */
bool sj_cache_path(const sj_planner_options *options, const sj_elf *elf, sj_slice identity,
                   char path[SJ_PLAN_PATH_BYTES]);

#endif

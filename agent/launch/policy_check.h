/* Name check: before a program starts, looks up the names of a policy in it and in its
 * libraries. */
#ifndef SJ_AGENT_LAUNCH_POLICY_CHECK_H
#define SJ_AGENT_LAUNCH_POLICY_CHECK_H

#include "agent/launch/program.h"
#include "agent/registry/function_rules.h"

/* Calls `visit` for each pattern that matches nothing. Asks the program's loader for its libraries,
 * and plans the selected ones, which fills the cache of plans at `cache_directory` (NULL: none) for
 * the recording. Does nothing if the policy allows unmatched names, or has no names. Visits nothing
 * if the result cannot be known. This is so if the policy selects later modules or methods that
 * only a runtime knows, or if the program runs in an emulator. Blocks for seconds if the program is
 * large and has no cached plans. Returns SJ_ENOTFOUND if all names exist but together select no
 * function, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_name_check(const sj_policy *policy, const sj_selection *selection,
                                      const sj_program *program, const char *cache_directory,
                                      void *context,
                                      void (*visit)(void *context, const sj_unmatched *unmatched));

/* Plans the main program `binary` with the selection's map file, if it has one, and so fills the
 * cache like sj_name_check. Returns errors of the planner; `error` says what is wrong with the map
 * file. Blocks. */
SJ_MUST_CHECK sj_status sj_map_check(const sj_selection *selection, const char *binary,
                                     const char *cache_directory, sj_error *error);

#endif

/* The name check: before a program is started, looks for what the names in a policy could mean in
 * it and in the libraries that it is linked with. */
#ifndef SJ_AGENT_LAUNCH_POLICY_CHECK_H
#define SJ_AGENT_LAUNCH_POLICY_CHECK_H

#include "agent/launch/program.h"
#include "agent/registry/function_rules.h"

/* sj_name_check calls `visit` with each pattern that matches nothing. Asks the program's loader for
 * its libraries and plans those that the policy takes, which fills the cache of plans at
 * `cache_directory` (NULL: none) for the recording. Where the policy takes modules that are not
 * there from the start, or methods that only a runtime knows, or the program runs in an emulator,
 * nothing can be known and nothing is visited. Blocking: seconds for large programs that are not in
 * the cache. SJ_ENOTFOUND: all names are
 * there, and together they select no function. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_name_check(const sj_policy *policy, const sj_selection *selection,
                                      const sj_program *program, const char *cache_directory,
                                      void *context,
                                      void (*visit)(void *context, const sj_unmatched *unmatched));

/* sj_map_check plans the main program `binary` by the selection's map file, if it has one, which
 * fills the cache as sj_name_check does. Errors of the planner, which name what is wrong with the
 * map file. Blocking. */
SJ_MUST_CHECK sj_status sj_map_check(const sj_selection *selection, const char *binary,
                                     const char *cache_directory, sj_error *error);

#endif

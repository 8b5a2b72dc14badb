/* The name check: before a program is started, looks for what the names in a policy could mean in
 * it and in the libraries that it is linked with. */
#ifndef SJ_AGENT_CONTROL_NAME_CHECK_H
#define SJ_AGENT_CONTROL_NAME_CHECK_H

#include "agent/control/program.h"
#include "agent/control/rules.h"

/* sj_name_check calls `visit` with each pattern that matches nothing. Asks the program's loader for
 * its libraries and plans those that the policy takes, which fills the cache of plans at
 * `cache_directory` (NULL: none) for the recording. Where the policy takes modules that are not
 * there from the start, or methods that only a runtime knows, or the program runs in an emulator,
 * nothing can be known and nothing is visited. Blocking: seconds for large programs that are not in
 * the cache. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_name_check(const sj_policy *policy, const sj_selection *selection,
                                      const sj_program *program, const char *cache_directory,
                                      void *context,
                                      void (*visit)(void *context, const sj_unmatched *unmatched));

#endif

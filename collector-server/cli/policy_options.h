/* The options that are keys of a policy: the same for every command that takes one. */
#ifndef SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H

#include "agent/policy/draft.h"

#include <getopt.h>
#include <stdbool.h>

enum {
    SJ_OPTION_POLICY = 512,
    SJ_OPTION_LIBS,
    SJ_OPTION_MODULE,
    SJ_OPTION_FUNCTION,
    SJ_OPTION_EXCLUDE,
    SJ_OPTION_SOURCE,
    SJ_OPTION_EXCLUDE_SOURCE,
    SJ_OPTION_ALLOW_UNMATCHED,
    SJ_OPTION_THREAD,
    SJ_OPTION_BUDGET,
    SJ_OPTION_MODE,
    SJ_OPTION_PROFILE,
    SJ_OPTION_FLIGHT,
    SJ_OPTION_DEPTH,
    SJ_OPTION_MINIMUM,
    SJ_OPTION_BUFFER,
    SJ_OPTION_WHEN_FULL,
    SJ_OPTION_BLOCK_MS,
    SJ_OPTION_OBJC,
    SJ_OPTION_RECEIVERS,
    SJ_OPTION_CLASS,
    SJ_OPTION_SELECTOR,
    SJ_OPTION_SUBCLASSES_OF,
    SJ_OPTION_NO_SYSTEM_CLASSES,
    SJ_OPTION_VALUE,
    SJ_OPTION_LIBRARY_CALLS
};

/* Lines of a table for getopt_long(3). */
/* clang-format off */
#define SJ_POLICY_OPTIONS \
    {"policy", required_argument, NULL, SJ_OPTION_POLICY}, \
    {"libs", no_argument, NULL, SJ_OPTION_LIBS}, \
    {"library-calls", no_argument, NULL, SJ_OPTION_LIBRARY_CALLS}, \
    {"module", required_argument, NULL, SJ_OPTION_MODULE}, \
    {"function", required_argument, NULL, SJ_OPTION_FUNCTION}, \
    {"exclude", required_argument, NULL, SJ_OPTION_EXCLUDE}, \
    {"source", required_argument, NULL, SJ_OPTION_SOURCE}, \
    {"exclude-source", required_argument, NULL, SJ_OPTION_EXCLUDE_SOURCE}, \
    {"allow-unmatched", no_argument, NULL, SJ_OPTION_ALLOW_UNMATCHED}, \
    {"thread", required_argument, NULL, SJ_OPTION_THREAD}, \
    {"budget", required_argument, NULL, SJ_OPTION_BUDGET}, \
    {"mode", required_argument, NULL, SJ_OPTION_MODE}, \
    {"profile", no_argument, NULL, SJ_OPTION_PROFILE}, \
    {"flight", no_argument, NULL, SJ_OPTION_FLIGHT}, \
    {"depth", required_argument, NULL, SJ_OPTION_DEPTH}, \
    {"minimum", required_argument, NULL, SJ_OPTION_MINIMUM}, \
    {"buffer", required_argument, NULL, SJ_OPTION_BUFFER}, \
    {"when-full", required_argument, NULL, SJ_OPTION_WHEN_FULL}, \
    {"block-ms", required_argument, NULL, SJ_OPTION_BLOCK_MS}, \
    {"objc", required_argument, NULL, SJ_OPTION_OBJC}, \
    {"receivers", no_argument, NULL, SJ_OPTION_RECEIVERS}, \
    {"class", required_argument, NULL, SJ_OPTION_CLASS}, \
    {"selector", required_argument, NULL, SJ_OPTION_SELECTOR}, \
    {"subclasses-of", required_argument, NULL, SJ_OPTION_SUBCLASSES_OF}, \
    {"no-system-classes", no_argument, NULL, SJ_OPTION_NO_SYSTEM_CLASSES}, \
    {"value", required_argument, NULL, SJ_OPTION_VALUE}
/* clang-format on */

/* sj_option_number reads a whole number up to `limit` with an optional unit (k, M, G: powers of
 * 1024). SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_option_number(const char *option, const char *text, uint64_t limit,
                                         uint64_t *number, sj_error *error);

/* sj_policy_options_load begins a draft with the --policy among the arguments, wherever it stands:
 * all other options change it. Sets getopt's state back. `*draft` is owned by the caller, also on
 * failure (NULL when there is none). Errors of sj_policy_draft_load. */
SJ_MUST_CHECK sj_status sj_policy_options_load(int argc, char **argv, const char *short_options,
                                               const struct option *options,
                                               sj_policy_draft **draft, sj_error *error);

/* sj_policy_options_take changes the draft by one option; `*taken` false: it is none of a policy's.
 * SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_policy_options_take(sj_policy_draft *draft, int option,
                                               const char *value, bool *taken, sj_error *error);

#endif

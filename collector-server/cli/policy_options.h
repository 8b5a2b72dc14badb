/* The options that are keys of a policy: the same for every command that takes one. */
#ifndef SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H

#include "agent/policy/draft.h"
#include "collector-server/cli/options.h"

/* SJ_POLICY_OPTION is a row of a table of options whose values begin with a `sj_policy_draft *`;
 * SJ_COMMON_POLICY_OPTION is one that --help shows first. */
#define SJ_POLICY_OPTION(NAME, ARGUMENT, HELP)                                                     \
    {                                                                                              \
        .name = (NAME), .argument = (ARGUMENT), .help = (HELP), .kind = SJ_ARG_PARSED,             \
        .parse = sj_policy_option_parse                                                            \
    }
#define SJ_COMMON_POLICY_OPTION(NAME, ARGUMENT, HELP)                                              \
    {                                                                                              \
        .name = (NAME), .argument = (ARGUMENT), .help = (HELP), .kind = SJ_ARG_PARSED,             \
        .parse = sj_policy_option_parse, .is_common = true                                         \
    }

/* All of them, with --policy, on which the others build. */
extern const sj_option sj_policy_options[];

/* sj_option_number reads a whole number up to `limit` with an optional unit (k, M, G: powers of
 * 1024). SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_option_number(const char *option, const char *text, uint64_t limit,
                                         uint64_t *number, sj_error *error);

/* sj_policy_option_parse changes the draft by an option of that name; as sj_option.parse.
 * SJ_EINVAL, and the errors of sj_policy_draft_load. */
SJ_MUST_CHECK sj_status sj_policy_option_parse(const sj_option *option, void *values,
                                               const char *value, sj_error *error);

#endif

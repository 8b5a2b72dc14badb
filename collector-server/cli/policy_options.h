/* The options that set keys of a policy. They are the same for every command that accepts a
 * policy. */
#ifndef SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H

#include "agent/policy/draft.h"
#include "collector-server/cli/options.h"

/* Each macro is a row of an option table. The structure for the option values must have an
 * `sj_policy_draft *` as its first member. --help shows the rows of SJ_COMMON_POLICY_OPTION before
 * all others. */
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

/* All policy options. --policy is parsed first; the others change the policy that it loaded. */
extern const sj_option sj_policy_options[];

/* Parses a whole number up to `limit` with an optional unit (k, M, G: powers of 1024). `option` is
 * the option's name for the message, with dashes. Fails with SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_option_number(const char *option, const char *text, uint64_t limit,
                                         uint64_t *number, sj_error *error);

/* Applies the option to the draft at the beginning of `values`. The parameters are as for
 * sj_option.parse. Fails with SJ_EINVAL, and with the errors of sj_policy_draft_load. */
SJ_MUST_CHECK sj_status sj_policy_option_parse(const sj_option *option, void *values,
                                               const char *value, sj_error *error);

#endif

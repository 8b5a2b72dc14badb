/* The options that are keys of a policy. They are the same for every command that accepts a
 * policy. */
#ifndef SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H
#define SJ_COLLECTOR_SERVER_CLI_POLICY_OPTIONS_H

#include "agent/policy/draft.h"
#include "collector-server/cli/options.h"

/* SJ_POLICY_OPTION is a row of an option table whose values begin with an `sj_policy_draft *`.
 * SJ_COMMON_POLICY_OPTION is a row that --help shows first. */
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

/* All policy options, with --policy, on which the others build. */
extern const sj_option sj_policy_options[];

/* Parses a whole number up to `limit` with an optional unit (k, M, G: powers of 1024). Fails with
 * SJ_EINVAL. */
SJ_MUST_CHECK sj_status sj_option_number(const char *option, const char *text, uint64_t limit,
                                         uint64_t *number, sj_error *error);

/* Changes the draft by the option of that name. The parameters are those of sj_option.parse. Fails
 * with SJ_EINVAL, and with the errors of sj_policy_draft_load. */
SJ_MUST_CHECK sj_status sj_policy_option_parse(const sj_option *option, void *values,
                                               const char *value, sj_error *error);

#endif

#include "collector-server/cli/policy_options.h"

#include "agent/recorder/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Options whose value is a key's, or an element of its list. */
typedef struct policy_flag {
    int option;
    const char *key;
    const char *value; /* NULL: the option's own */
    bool is_list;
} policy_flag;

static const policy_flag policy_flags[] = {
    {SJ_OPTION_MODULE, "modules.include", NULL, true},
    {SJ_OPTION_FUNCTION, "functions.include", NULL, true},
    {SJ_OPTION_EXCLUDE, "functions.exclude", NULL, true},
    {SJ_OPTION_SOURCE, "sources.include", NULL, true},
    {SJ_OPTION_EXCLUDE_SOURCE, "sources.exclude", NULL, true},
    {SJ_OPTION_ALLOW_UNMATCHED, "unmatched", "allow", false},
    {SJ_OPTION_THREAD, "calls.threads", NULL, true},
    {SJ_OPTION_BUDGET, "budget", NULL, false},
    {SJ_OPTION_MODE, "mode", NULL, false},
    {SJ_OPTION_PROFILE, "mode", "profile", false},
    {SJ_OPTION_FLIGHT, "mode", "flight", false},
    {SJ_OPTION_MINIMUM, "calls.minimum", NULL, false},
    {SJ_OPTION_WHEN_FULL, "buffer.when_full", NULL, false},
    {SJ_OPTION_OBJC, "objc.technique", NULL, false},
    {SJ_OPTION_CLASS, "objc.classes", NULL, true},
    {SJ_OPTION_SELECTOR, "objc.selectors", NULL, true},
    {SJ_OPTION_SUBCLASSES_OF, "objc.subclasses_of", NULL, true}};

static bool parse_number(const char *text, uint64_t limit, uint64_t *number)
{
    static const char units[] = "kMG";
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0) {
        return false;
    }
    if (*end != '\0') {
        const char *unit = strchr(units, *end);
        const unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
        if (unit == NULL || end[1] != '\0' || value > UINT64_MAX >> shift) {
            return false;
        }
        value <<= shift;
    }
    *number = value;
    return value <= limit;
}

sj_status sj_option_number(const char *option, const char *text, uint64_t limit, uint64_t *number,
                           sj_error *error)
{
    if (!parse_number(text, limit, number)) {
        return sj_fail(error, SJ_EINVAL, "%s needs a number up to %llu, not \"%s\"", option,
                       (unsigned long long)limit, text);
    }
    return SJ_OK;
}

sj_status sj_policy_options_load(int argc, char **argv, const char *short_options,
                                 const struct option *options, sj_policy_draft **draft,
                                 sj_error *error)
{
    int option;
    *draft = NULL;
    sj_status status = sj_policy_draft_new(draft, error);
    optind = 1;
    opterr = 0;
    while (status == SJ_OK &&
           (option = getopt_long(argc, argv, short_options, options, NULL)) != -1) {
        if (option == SJ_OPTION_POLICY) {
            status = sj_policy_draft_load(*draft, optarg, error);
        }
    }
    optind = 1;
    return status;
}

static const policy_flag *find_flag(int option)
{
    for (size_t i = 0; i < sizeof(policy_flags) / sizeof(policy_flags[0]); i++) {
        if (policy_flags[i].option == option) {
            return &policy_flags[i];
        }
    }
    return NULL;
}

static sj_status take_number(sj_policy_draft *draft, const char *option, const char *key,
                             const char *value, uint64_t limit, sj_error *error)
{
    uint64_t number = 0;
    SJ_TRY(sj_option_number(option, value, limit, &number, error));
    return sj_policy_draft_number(draft, key, number);
}

sj_status sj_policy_options_take(sj_policy_draft *draft, int option, const char *value, bool *taken,
                                 sj_error *error)
{
    const policy_flag *flag = find_flag(option);
    *taken = true;
    if (flag != NULL && flag->is_list) {
        return sj_policy_draft_append(draft, flag->key, value);
    }
    if (flag != NULL) {
        return sj_policy_draft_text(draft, flag->key, flag->value != NULL ? flag->value : value);
    }
    switch (option) {
    case SJ_OPTION_POLICY:
        return SJ_OK; /* taken before all others */
    case SJ_OPTION_LIBS:
        return sj_policy_draft_true(draft, "modules.system");
    case SJ_OPTION_LIBRARY_CALLS:
        return sj_policy_draft_true(draft, "modules.library_calls");
    case SJ_OPTION_RECEIVERS:
        return sj_policy_draft_true(draft, "objc.receivers");
    case SJ_OPTION_VALUE:
        return sj_policy_draft_value(draft, value, error);
    case SJ_OPTION_NO_SYSTEM_CLASSES:
        return sj_policy_draft_false(draft, "objc.system");
    case SJ_OPTION_DEPTH:
        return take_number(draft, "--depth", "calls.depth", value, 1000000, error);
    case SJ_OPTION_BUFFER:
        return take_number(draft, "--buffer", "buffer.chunks", value, SJ_ARENA_MAX_CHUNKS, error);
    case SJ_OPTION_BLOCK_MS:
        return take_number(draft, "--block-ms", "buffer.block_ms", value, 10000, error);
    default:
        *taken = false;
        return SJ_OK;
    }
}

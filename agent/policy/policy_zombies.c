/* The part of a policy that is about uses of freed memory. */
#include "agent/policy/policy_reader.h"

enum { SLOTS_LEAST = 16, SLOTS_MOST = 28000, ONE_IN_MOST = 1000000000, REPORTS_MOST = 100000 };

#define MEMORY_LEAST (UINT64_C(1) << 20)
#define MEMORY_MOST (UINT64_C(1) << 35)

static sj_status read_into(sj_policy_reader *reader, json_t *value, uint64_t least, uint64_t most,
                           uint32_t *target)
{
    uint64_t number = 0;
    SJ_TRY(sj_policy_number(reader, value, least, most, &number));
    *target = (uint32_t)number;
    return SJ_OK;
}

static sj_status read_one_in(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, 1, ONE_IN_MOST, &reader->policy->zombies.one_in);
}

static sj_status read_blocks(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, SLOTS_LEAST, SLOTS_MOST, &reader->policy->zombies.slots);
}

static sj_status read_stack(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, 0, SJ_ZOMBIE_STACK_BYTES, &reader->policy->zombies.stack_bytes);
}

static sj_status read_memory(sj_policy_reader *reader, json_t *value)
{
    uint64_t bytes = 0;
    SJ_TRY(sj_policy_size(reader, value, MEMORY_LEAST, MEMORY_MOST, &bytes));
    reader->policy->zombies.memory_kib = (uint32_t)(bytes >> 10);
    return SJ_OK;
}

static sj_status read_sessions(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, 0, 100, &reader->policy->zombie_sessions_percent);
}

static sj_status read_on_use(sj_policy_reader *reader, json_t *value)
{
    static const char *const words[] = {"go_on", "stop"};
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, words, 2, &index));
    reader->policy->zombies.on_use = (uint32_t)index;
    return SJ_OK;
}

static sj_status read_reports(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, 1, REPORTS_MOST, &reader->policy->zombies.reports_per_minute);
}

static sj_status read_heap(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"one_in", read_one_in},
                                         {"blocks", read_blocks},
                                         {"memory", read_memory},
                                         {"stack_bytes", read_stack},
                                         {"on_use", read_on_use}};
    if (json_is_boolean(value)) {
        reader->policy->zombies.one_in = json_is_true(value) ? 1 : 0;
        return SJ_OK;
    }
    if (reader->policy->zombies.one_in == 0) {
        reader->policy->zombies.one_in = 1;
    }
    return sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

sj_status sj_policy_read_zombies(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"heap", read_heap}, {"sessions", read_sessions}, {"reports_per_minute", read_reports}};
    if (json_is_null(value)) {
        reader->policy->zombies.one_in = 0;
        return SJ_OK;
    }
    return sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

sj_zombie_settings sj_policy_zombies_of(const sj_policy *policy, const sj_session_id *session)
{
    sj_zombie_settings settings = policy->zombies;
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof(session->bytes); i++) {
        sum = sum * 31 + session->bytes[i];
    }
    if ((sum * UINT64_C(2654435761) & UINT32_MAX) * 100 >> 32 >= policy->zombie_sessions_percent) {
        settings.one_in = 0;
    }
    return settings;
}

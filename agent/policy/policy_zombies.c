/* Parses the part of a policy about uses of freed memory. */
#include "agent/policy/policy_reader.h"

#include <stdio.h>
#include <string.h>

enum { OBJECTS_MOST = 1000000 };
enum { QUARANTINE_BLOCKS = 4096, QUARANTINE_KIB = 16 << 10 };
enum { SLOTS_LEAST = 16, SLOTS_MOST = 1000000, ONE_IN_MOST = 1000000000, REPORTS_MOST = 100000 };

#define MEMORY_LEAST (UINT64_C(1) << 20)
#define QUEUE_LEAST (UINT64_C(16) << 10)
#define NS_PER_MS UINT64_C(1000000)
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

static sj_status read_flag(sj_policy_reader *reader, json_t *value, uint32_t *target)
{
    bool is_true = false;
    SJ_TRY(sj_policy_boolean(reader, value, &is_true));
    *target = is_true ? 1 : 0;
    return SJ_OK;
}

/* Writes patterns in the program's format: one after the other, each with its NUL. */
static sj_status read_names(sj_policy_reader *reader, json_t *list, char *target)
{
    size_t used = 0;
    if (!json_is_array(list)) {
        return sj_policy_fail(reader, false, "a list of patterns is wanted");
    }
    memset(target, 0, SJ_ZOMBIE_PATTERNS_BYTES);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const size_t bytes = name != NULL ? strlen(name) + 1 : 0;
        sj_policy_enter(reader, NULL, i);
        if (bytes < 2) {
            return sj_policy_fail(reader, false, "a pattern of names is wanted");
        }
        if (used + bytes >= SJ_ZOMBIE_PATTERNS_BYTES) {
            return sj_policy_fail(reader, false, "the patterns have more than %d characters",
                                  SJ_ZOMBIE_PATTERNS_BYTES - 2);
        }
        memcpy(target + used, name, bytes);
        used += bytes;
        sj_policy_leave(reader);
    }
    return SJ_OK;
}

/* Parses a number of bytes, or "LEAST-MOST". */
static sj_status read_sizes_item(sj_policy_reader *reader, const json_t *item,
                                 sj_zombie_sizes *sizes)
{
    const char *text = json_string_value(item);
    long long least = json_integer_value(item);
    long long most = least;
    int end = 0;
    const bool is_range =
        text != NULL && sscanf(text, "%lld-%lld%n", &least, &most, &end) == 2 && text[end] == '\0';
    if ((!json_is_integer(item) && !is_range) || least < 1 || most < least || most > UINT32_MAX) {
        return sj_policy_fail(reader, false,
                              "a number of bytes is wanted, or a range like \"100-200\"");
    }
    *sizes = (sj_zombie_sizes){.least = (uint32_t)least, .most = (uint32_t)most};
    return SJ_OK;
}

static sj_status read_guard_bytes(sj_policy_reader *reader, json_t *value)
{
    sj_zombie_guard *guard = &reader->policy->zombies.guard;
    guard->size_count = 0;
    if (!json_is_array(value) || json_array_size(value) > SJ_ZOMBIE_SIZES) {
        return sj_policy_fail(reader, false, "a list of at most %d sizes is wanted",
                              SJ_ZOMBIE_SIZES);
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        sj_policy_enter(reader, NULL, i);
        SJ_TRY(read_sizes_item(reader, json_array_get(value, i), &guard->sizes[i]));
        sj_policy_leave(reader);
        guard->size_count++;
    }
    return SJ_OK;
}

static sj_status read_guard_callers(sj_policy_reader *reader, json_t *value)
{
    return read_names(reader, value, reader->policy->zombies.guard.callers);
}

static sj_status read_guard_classes(sj_policy_reader *reader, json_t *value)
{
    return read_names(reader, value, reader->policy->zombies.guard.classes);
}

static sj_status read_guard(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"bytes", read_guard_bytes}, {"caller", read_guard_callers}, {"class", read_guard_classes}};
    return sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

static sj_status read_quarantine_blocks(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, SLOTS_LEAST, OBJECTS_MOST,
                     &reader->policy->zombies.quarantine_blocks);
}

static sj_status read_quarantine_memory(sj_policy_reader *reader, json_t *value)
{
    uint64_t bytes = 0;
    SJ_TRY(sj_policy_size(reader, value, MEMORY_LEAST, MEMORY_MOST, &bytes));
    reader->policy->zombies.quarantine_kib = (uint32_t)(bytes >> 10);
    return SJ_OK;
}

static void use_quarantine(sj_zombie_settings *settings)
{
    if (settings->quarantine_kib == 0) {
        settings->quarantine_kib = QUARANTINE_KIB;
    }
    if (settings->quarantine_blocks == 0) {
        settings->quarantine_blocks = QUARANTINE_BLOCKS;
    }
}

static sj_status read_quarantine(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"blocks", read_quarantine_blocks},
                                         {"memory", read_quarantine_memory}};
    if (json_is_false(value)) {
        reader->policy->zombies.quarantine_kib = 0;
        return SJ_OK;
    }
    use_quarantine(&reader->policy->zombies);
    return json_is_true(value)
               ? SJ_OK
               : sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

/* Only objects whose free is delayed can report virtual calls. */
static sj_status read_vtables(sj_policy_reader *reader, json_t *value)
{
    SJ_TRY(read_flag(reader, value, &reader->policy->zombies.vtables));
    if (reader->policy->zombies.vtables != 0) {
        use_quarantine(&reader->policy->zombies);
    }
    return SJ_OK;
}

static sj_status read_heap(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"one_in", read_one_in},   {"blocks", read_blocks},
                                         {"memory", read_memory},   {"stack_bytes", read_stack},
                                         {"guard", read_guard},     {"quarantine", read_quarantine},
                                         {"vtables", read_vtables}, {"on_use", read_on_use}};
    static const char *const instead[] = {"guard", "quarantine", "vtables"};
    if (json_is_boolean(value)) {
        reader->policy->zombies.one_in = json_is_true(value) ? 1 : 0;
        return SJ_OK;
    }
    if (reader->policy->zombies.one_in == 0) {
        reader->policy->zombies.one_in = 1;
    }
    for (size_t i = 0; i < sizeof(instead) / sizeof(instead[0]); i++) {
        if (json_object_get(value, instead[i]) != NULL) {
            reader->policy->zombies.one_in = ONE_IN_MOST; /* if it is not given */
        }
    }
    return sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

static sj_status read_object_stack(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, 0, SJ_ZOMBIE_STACK_BYTES,
                     &reader->policy->zombies.objects.stack_bytes);
}

static sj_status read_system(sj_policy_reader *reader, json_t *value)
{
    return read_flag(reader, value, &reader->policy->zombies.objects.with_system);
}

static sj_status read_history(sj_policy_reader *reader, json_t *value)
{
    sj_zombie_objects *objects = &reader->policy->zombies.objects;
    if (json_is_boolean(value)) {
        memset(objects->history_of, 0, sizeof(objects->history_of));
        return read_flag(reader, value, &objects->history);
    }
    objects->history = 1;
    return read_names(reader, value, objects->history_of);
}

static sj_status read_objects_on_use(sj_policy_reader *reader, json_t *value)
{
    static const char *const words[] = {"go_on", "stop", "free"};
    size_t index = 0;
    SJ_TRY(sj_policy_word(reader, value, words, 3, &index));
    reader->policy->zombies.objects.on_use = (uint32_t)index;
    return SJ_OK;
}

static sj_status read_classes(sj_policy_reader *reader, json_t *value)
{
    return read_names(reader, value, reader->policy->zombies.objects.classes);
}

static sj_status read_exclude(sj_policy_reader *reader, json_t *value)
{
    return read_names(reader, value, reader->policy->zombies.objects.exclude);
}

static sj_status read_queue_objects(sj_policy_reader *reader, json_t *value)
{
    return read_into(reader, value, 1, OBJECTS_MOST,
                     &reader->policy->zombies.objects.queue_objects);
}

static sj_status read_queue_memory(sj_policy_reader *reader, json_t *value)
{
    uint64_t bytes = 0;
    SJ_TRY(sj_policy_size(reader, value, QUEUE_LEAST, MEMORY_MOST, &bytes));
    reader->policy->zombies.objects.queue_kib = (uint32_t)(bytes >> 10);
    return SJ_OK;
}

static sj_status read_queue_age(sj_policy_reader *reader, json_t *value)
{
    uint64_t ns = 0;
    SJ_TRY(sj_policy_time(reader, value, NS_PER_MS, &ns));
    const uint64_t ms = ns / NS_PER_MS;
    reader->policy->zombies.objects.queue_age_ms = ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
    return SJ_OK;
}

static sj_status read_queue(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"objects", read_queue_objects}, {"memory", read_queue_memory}, {"age", read_queue_age}};
    return sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

static sj_status read_on(sj_policy_reader *reader, json_t *value)
{
    return read_flag(reader, value, &reader->policy->zombies.objects.is_on);
}

static sj_status read_objc(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {
        {"on", read_on},         {"classes", read_classes},      {"exclude", read_exclude},
        {"system", read_system}, {"history", read_history},      {"stacks", read_object_stack},
        {"queue", read_queue},   {"on_use", read_objects_on_use}};
    reader->policy->zombies.objects.is_on = json_is_false(value) ? 0 : 1;
    return json_is_boolean(value)
               ? SJ_OK
               : sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0]));
}

sj_status sj_policy_read_zombies(sj_policy_reader *reader, json_t *value)
{
    static const sj_policy_key keys[] = {{"heap", read_heap},
                                         {"objc", read_objc},
                                         {"sessions", read_sessions},
                                         {"reports_per_minute", read_reports}};
    if (json_is_null(value)) {
        reader->policy->zombies.one_in = 0;
        reader->policy->zombies.objects.is_on = 0;
        return SJ_OK;
    }
    SJ_TRY(sj_policy_object(reader, value, keys, sizeof(keys) / sizeof(keys[0])));
    const sj_zombie_settings *settings = &reader->policy->zombies;
    if (settings->guard.classes[0] != '\0' &&
        (settings->objects.is_on == 0 || settings->one_in == 0)) {
        return sj_policy_fail(reader, false, "heap.guard.class needs \"objc\"");
    }
    return SJ_OK;
}

sj_zombie_settings sj_policy_zombies_of(const sj_policy *policy, const sj_session_id *session)
{
    enum { MILLE_OF_PERCENT = 10 };
    sj_zombie_settings settings = policy->zombies;
    settings.counts =
        policy->counts_memory || sj_value_rules_count_memory(policy->selection.values);
    uint32_t sum = 0;
    settings.budget_per_mille =
        policy->budget_percent > 0 && policy->budget_percent < MILLE_OF_PERCENT * MILLE_OF_PERCENT
            ? (uint32_t)(policy->budget_percent * MILLE_OF_PERCENT + 0.999)
            : 0;
    for (size_t i = 0; i < sizeof(session->bytes); i++) {
        sum = sum * 31 + session->bytes[i];
    }
    if ((sum * UINT64_C(2654435761) & UINT32_MAX) * 100 >> 32 >= policy->zombie_sessions_percent) {
        settings.one_in = 0;
        settings.objects.is_on = 0;
    }
    return settings;
}

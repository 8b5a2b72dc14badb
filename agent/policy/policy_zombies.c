/* Parses the part of a policy about uses of freed memory. */
#include "agent/policy/policy_reader.h"

#include <stdio.h>
#include <string.h>

enum { OBJECTS_MOST = 1000000 };
enum { KIB = 1024 };
enum { DELAYED_BLOCKS = 4096, DELAYED_KIB = 16 << 10 };
enum { SLOTS_LEAST = 16, SLOTS_MOST = 1000000, ONE_IN_MOST = 1000000000, REPORTS_MOST = 100000 };

#define MEMORY_LEAST (UINT64_C(1) << 20)
#define QUEUE_LEAST (UINT64_C(16) << 10)
#define NS_PER_MS UINT64_C(1000000)
#define MEMORY_MOST (UINT64_C(1) << 35)

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
                              "a number of bytes is needed, or a range like \"100-200\"");
    }
    *sizes = (sj_zombie_sizes){.least = (uint32_t)least, .most = (uint32_t)most};
    return SJ_OK;
}

static sj_status read_guard_bytes(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_zombie_guard *guard = target;
    guard->size_count = 0;
    if (!json_is_array(value) || json_array_size(value) > SJ_ZOMBIE_SIZES) {
        return sj_policy_fail(reader, false, "a list of at most %d sizes is needed",
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

static const sj_policy_key guard_keys[] = {
    {"bytes", SJ_KEY_CUSTOM, .parse = read_guard_bytes},
    {"caller", SJ_KEY_NAMES, SJ_MEMBER(sj_zombie_guard, callers)},
    {"class", SJ_KEY_NAMES, SJ_MEMBER(sj_zombie_guard, classes)}};

static const sj_policy_key delayed_free_keys[] = {
    {"blocks", SJ_KEY_NUMBER, SJ_MEMBER(sj_zombie_settings, delayed_blocks), .least = SLOTS_LEAST,
     .most = OBJECTS_MOST},
    {"memory", SJ_KEY_SIZE, SJ_MEMBER(sj_zombie_settings, delayed_kib), .least = MEMORY_LEAST,
     .most = MEMORY_MOST, .unit = KIB}};

static void use_delayed_free(sj_zombie_settings *settings)
{
    if (settings->delayed_kib == 0) {
        settings->delayed_kib = DELAYED_KIB;
    }
    if (settings->delayed_blocks == 0) {
        settings->delayed_blocks = DELAYED_BLOCKS;
    }
}

static sj_status read_delayed_free(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_zombie_settings *settings = target;
    if (json_is_false(value)) {
        settings->delayed_kib = 0;
        return SJ_OK;
    }
    use_delayed_free(settings);
    return json_is_true(value)
               ? SJ_OK
               : sj_policy_object(reader, value, settings, SJ_KEY_LIST(delayed_free_keys));
}

/* Reads "vtables". Turns delayed frees on, because virtual calls are detected only on objects whose
 * free is delayed. */
static sj_status read_vtables(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_zombie_settings *settings = target;
    bool is_true = false;
    SJ_TRY(sj_policy_boolean(reader, value, &is_true));
    settings->vtables = is_true;
    if (is_true) {
        use_delayed_free(settings);
    }
    return SJ_OK;
}

static const char *const on_use_words[] = {"continue", "stop"};
static const char *const align_words[] = {"end", "start", "both"};
static const sj_policy_key heap_keys[] = {
    {"one_in", SJ_KEY_NUMBER, SJ_MEMBER(sj_zombie_settings, one_in), .least = 1,
     .most = ONE_IN_MOST},
    {"blocks", SJ_KEY_NUMBER, SJ_MEMBER(sj_zombie_settings, slots), .least = SLOTS_LEAST,
     .most = SLOTS_MOST},
    {"memory", SJ_KEY_SIZE, SJ_MEMBER(sj_zombie_settings, memory_kib), .least = MEMORY_LEAST,
     .most = MEMORY_MOST, .unit = KIB},
    {"stack_bytes", SJ_KEY_NUMBER, SJ_MEMBER(sj_zombie_settings, stack_bytes),
     .most = SJ_ZOMBIE_STACK_BYTES},
    {"align", SJ_KEY_WORD, SJ_MEMBER(sj_zombie_settings, align), SJ_WORDS(align_words)},
    {"guard", SJ_KEY_OBJECT, SJ_MEMBER(sj_zombie_settings, guard), SJ_KEYS(guard_keys)},
    {"delayed_free", SJ_KEY_CUSTOM, .parse = read_delayed_free},
    {"vtables", SJ_KEY_CUSTOM, .parse = read_vtables},
    {"on_use", SJ_KEY_WORD, SJ_MEMBER(sj_zombie_settings, on_use), SJ_WORDS(on_use_words)}};

static sj_status read_heap(sj_policy_reader *reader, void *target, json_t *value)
{
    static const char *const instead[] = {"guard", "delayed_free", "vtables"};
    sj_zombie_settings *settings = target;
    if (json_is_boolean(value)) {
        settings->one_in = json_is_true(value) ? 1 : 0;
        return SJ_OK;
    }
    if (settings->one_in == 0) {
        settings->one_in = 1;
    }
    for (size_t i = 0; i < sizeof(instead) / sizeof(instead[0]); i++) {
        if (json_object_get(value, instead[i]) != NULL) {
            settings->one_in = ONE_IN_MOST; /* almost no sampling; "one_in" overrides it */
        }
    }
    return sj_policy_object(reader, value, settings, SJ_KEY_LIST(heap_keys));
}

static sj_status read_history(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_zombie_objects *objects = target;
    if (json_is_boolean(value)) {
        memset(objects->history_of, 0, sizeof(objects->history_of));
        objects->history = json_is_true(value);
        return SJ_OK;
    }
    objects->history = 1;
    return sj_policy_names(reader, value, objects->history_of, sizeof(objects->history_of));
}

static const sj_policy_key queue_keys[] = {
    {"objects", SJ_KEY_NUMBER, SJ_MEMBER(sj_zombie_objects, queue_objects), .least = 1,
     .most = OBJECTS_MOST},
    {"memory", SJ_KEY_SIZE, SJ_MEMBER(sj_zombie_objects, queue_kib), .least = QUEUE_LEAST,
     .most = MEMORY_MOST, .unit = KIB},
    {"age", SJ_KEY_TIME, SJ_MEMBER(sj_zombie_objects, queue_age_ms), .least = NS_PER_MS,
     .unit = NS_PER_MS}};

static const char *const object_use_words[] = {"continue", "stop", "free"};
static const sj_policy_key object_keys[] = {
    {"on", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_zombie_objects, is_on)},
    {"classes", SJ_KEY_NAMES, SJ_MEMBER(sj_zombie_objects, classes)},
    {"exclude", SJ_KEY_NAMES, SJ_MEMBER(sj_zombie_objects, exclude)},
    {"system", SJ_KEY_BOOLEAN, SJ_MEMBER(sj_zombie_objects, with_system)},
    {"history", SJ_KEY_CUSTOM, .parse = read_history},
    {"stacks", SJ_KEY_NUMBER, SJ_MEMBER(sj_zombie_objects, stack_bytes),
     .most = SJ_ZOMBIE_STACK_BYTES},
    {"queue", SJ_KEY_OBJECT, SJ_KEYS(queue_keys)},
    {"on_use", SJ_KEY_WORD, SJ_MEMBER(sj_zombie_objects, on_use), SJ_WORDS(object_use_words)}};

static sj_status read_objc(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_zombie_objects *objects = target;
    objects->is_on = json_is_false(value) ? 0 : 1;
    return json_is_boolean(value)
               ? SJ_OK
               : sj_policy_object(reader, value, objects, SJ_KEY_LIST(object_keys));
}

static const sj_policy_key keys[] = {
    {"heap", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, zombies), .parse = read_heap},
    {"objc", SJ_KEY_CUSTOM, SJ_MEMBER(sj_policy, zombies.objects), .parse = read_objc},
    {"sessions", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy, zombie_sessions_percent), .most = 100},
    {"reports_per_minute", SJ_KEY_NUMBER, SJ_MEMBER(sj_policy, zombies.reports_per_minute),
     .least = 1, .most = REPORTS_MOST}};

sj_status sj_policy_read_zombies(sj_policy_reader *reader, void *target, json_t *value)
{
    sj_policy *policy = target;
    sj_zombie_settings *settings = &policy->zombies;
    if (json_is_null(value)) {
        settings->one_in = 0;
        settings->objects.is_on = 0;
        return SJ_OK;
    }
    SJ_TRY(sj_policy_object(reader, value, policy, SJ_KEY_LIST(keys)));
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

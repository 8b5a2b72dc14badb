#include "agent/control/method_group.h"
#include "agent/control/roster_parts.h"
#include "agent/planner/growable.h"

#include <stdlib.h>
#include <string.h>

/* Names of methods by receiver, to be made functions of. */
typedef struct receiver_names {
    char *text;
    size_t bytes;
    size_t capacity;
    uint32_t count;
} receiver_names;

static uint64_t receiver_key(const sj_known_class *class, bool is_meta)
{
    return (uint64_t)(uintptr_t) class->name * 2 + (is_meta ? 1 : 0);
}

/* A function that another process made is told to be in this one, too. */
static sj_status share_receiver(sj_roster *roster, uint64_t process, uint32_t function,
                                uint64_t now_ticks)
{
    size_t at = roster->module_count - 1;
    while (at > 0 && roster->modules[at].first_function > function) {
        at--;
    }
    const sj_roster_mapping mapping = {
        .process = process, .loaded_ticks = now_ticks, .module = (uint32_t)at + 1};
    return sj_roster_add_mapping(roster, &mapping);
}

/* find_class asks the process about a class that its files do not tell of. */
static bool find_class(const sj_roster *roster, uint64_t process, uint64_t isa,
                       sj_known_class *class, bool *is_meta)
{
    sj_class_table *classes = roster->options.classes;
    if (sj_class_table_find_isa(classes, process, isa, class, is_meta)) {
        return true;
    }
    const pid_t pid = process - 1 < roster->process_count ? roster->processes[process - 1].pid : 0;
    return sj_class_table_meet(classes, pid, isa, class, is_meta);
}

/* name_receiver finds the function of a pair, or names it and keeps which of the new ones it is. */
static sj_status name_receiver(sj_roster *roster, uint64_t process, sj_receiver_pair *pair,
                               receiver_names *names, uint64_t now_ticks)
{
    enum { NAME_BYTES = 4096 };
    char name[NAME_BYTES];
    sj_known_class class;
    bool is_meta = false;
    const char *method = sj_method_names_get(&roster->method_names, pair->function);
    pair->result = pair->function;
    if (method == NULL || names->count == SJ_METHOD_GROUP_MAX ||
        !find_class(roster, process, pair->isa, &class, &is_meta)) {
        return SJ_OK;
    }
    const uint64_t key = receiver_key(&class, is_meta);
    const sj_pair *known = sj_pair_map_find(&roster->receiver_functions, key, pair->function);
    if (known != NULL) {
        pair->result = known->first;
        return known->first < roster->next_function
                   ? share_receiver(roster, process, known->first, now_ticks)
                   : SJ_OK;
    }
    const size_t bytes = sj_method_name_for(method, class.name, is_meta, name, sizeof(name));
    if (bytes == 0) {
        return SJ_OK;
    }
    const sj_pair made = {
        .key = key, .sub = pair->function, .first = roster->next_function + names->count};
    SJ_TRY(sj_grow(&names->text, &names->capacity, names->bytes, bytes, 1));
    SJ_TRY(sj_pair_map_put(&roster->receiver_functions, &made));
    memcpy(names->text + names->bytes, name, bytes);
    names->bytes += bytes;
    names->count++;
    pair->result = made.first;
    if (roster->options.rules != NULL) {
        sj_rules_name(roster->options.rules, made.first, method); /* what holds for the method */
    }
    return SJ_OK;
}

static sj_status send_receivers(sj_roster *roster, uint64_t process, const receiver_names *names,
                                uint64_t now_ticks)
{
    static const char path[] = "objc:receivers";
    uint8_t wanted[SJ_METHOD_GROUP_MAX];
    uint32_t first_function = 0;
    sj_plan_header *group = NULL;
    const sj_slice text = {.data = (const uint8_t *)names->text, .size = names->bytes};
    const sj_roster_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    memset(wanted, 1, sizeof(wanted));
    SJ_TRY(sj_method_group_make(NULL, path, text, names->count, wanted, &group));
    const sj_status status = sj_roster_add_group(roster, &mapping, group, path, &first_function);
    free(group);
    return status;
}

sj_status sj_roster_add_receivers(sj_roster *roster, uint64_t process, sj_receiver_pair *pairs,
                                  size_t count, uint64_t now_ticks)
{
    receiver_names names = {0};
    sj_status status = SJ_OK;
    pthread_mutex_lock(&roster->mutex);
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        status = name_receiver(roster, process, &pairs[i], &names, now_ticks);
    }
    if (status == SJ_OK && names.count != 0) {
        status = send_receivers(roster, process, &names, now_ticks);
    }
    pthread_mutex_unlock(&roster->mutex);
    free(names.text);
    return status;
}

#include "agent/registry/method_group.h"
#include "agent/registry/registry_internal.h"
#include "proto/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of new functions, each for a method and a class of receivers. */
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

sj_status sj_registry_share_function(sj_registry *registry, uint64_t process, uint32_t function,
                                     uint64_t now_ticks)
{
    size_t at = registry->module_count - 1;
    while (at > 0 && registry->modules[at].first_function > function) {
        at--;
    }
    const sj_registry_mapping mapping = {
        .process = process, .loaded_ticks = now_ticks, .module = (uint32_t)at + 1};
    return sj_registry_add_mapping(registry, &mapping);
}

/* Finds a class. Asks the process about a class that its files do not contain. */
static bool find_class(const sj_registry *registry, uint64_t process, uint64_t isa,
                       sj_known_class *class, bool *is_meta)
{
    sj_class_table *classes = registry->options.classes;
    if (sj_class_table_find_isa(classes, process, isa, class, is_meta)) {
        return true;
    }
    const pid_t pid =
        process - 1 < registry->process_count ? registry->processes[process - 1].pid : 0;
    return sj_class_table_meet(classes, pid, isa, class, is_meta);
}

/* Finds the function of a pair, or gives it a name and the next new id. */
static sj_status name_receiver(sj_registry *registry, uint64_t process, sj_receiver_pair *pair,
                               receiver_names *names, uint64_t now_ticks)
{
    enum { NAME_BYTES = 4096 };
    char name[NAME_BYTES];
    sj_known_class class;
    bool is_meta = false;
    const char *method = sj_method_names_get(&registry->method_names, pair->function);
    pair->result = pair->function;
    if (method == NULL || names->count == SJ_METHOD_GROUP_MAX ||
        !find_class(registry, process, pair->isa, &class, &is_meta)) {
        return SJ_OK;
    }
    const uint64_t key = receiver_key(&class, is_meta);
    const sj_hash_entry *known =
        sj_hash_map_find(&registry->receiver_functions, key, pair->function);
    if (known != NULL) {
        pair->result = known->first;
        return known->first < registry->next_function
                   ? sj_registry_share_function(registry, process, known->first, now_ticks)
                   : SJ_OK;
    }
    const size_t bytes = sj_method_name_for(method, class.name, is_meta, name, sizeof(name));
    if (bytes == 0) {
        return SJ_OK;
    }
    const sj_hash_entry made = {
        .key = key, .sub = pair->function, .first = registry->next_function + names->count};
    SJ_TRY(sj_array_reserve(&names->text, &names->capacity, names->bytes, bytes, 1));
    SJ_TRY(sj_hash_map_put(&registry->receiver_functions, &made));
    memcpy(names->text + names->bytes, name, bytes);
    names->bytes += bytes;
    names->count++;
    pair->result = made.first;
    if (registry->options.rules != NULL) {
        sj_function_rules_name(registry->options.rules, made.first,
                               method); /* the rules for the method apply */
    }
    return SJ_OK;
}

static sj_status send_receivers(sj_registry *registry, uint64_t process,
                                const receiver_names *names, uint64_t now_ticks)
{
    char path[64];
    size_t runtime = 0;
    uint8_t wanted[SJ_METHOD_GROUP_MAX];
    uint32_t first_function = 0;
    sj_plan_header *group = NULL;
    const sj_slice text = {.data = (const uint8_t *)names->text, .size = names->bytes};
    const sj_registry_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    memset(wanted, 1, sizeof(wanted));
    if (!sj_runtime_of_method(names->text, &runtime)) {
        return SJ_ECORRUPT;
    }
    snprintf(path, sizeof(path), "%s:receivers", sj_runtimes[runtime]->prefix);
    SJ_TRY(sj_method_group_make(NULL, path, text, names->count, wanted, &group));
    const sj_status status =
        sj_registry_add_group(registry, &mapping, group, path, &first_function);
    free(group);
    return status;
}

sj_status sj_registry_add_receivers(sj_registry *registry, uint64_t process,
                                    sj_receiver_pair *pairs, size_t count, uint64_t now_ticks)
{
    receiver_names names = {0};
    sj_status status = SJ_OK;
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < count && status == SJ_OK; i++) {
        status = name_receiver(registry, process, &pairs[i], &names, now_ticks);
    }
    if (status == SJ_OK && names.count != 0) {
        status = send_receivers(registry, process, &names, now_ticks);
    }
    pthread_mutex_unlock(&registry->mutex);
    free(names.text);
    return status;
}

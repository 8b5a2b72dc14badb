/* Stores which modules each process has mapped. */
#include "agent/registry/registry_internal.h"
#include "proto/base/array.h"

static const sj_slice no_payload = {0};

static sj_status send_mapping(sj_registry *registry, const sj_registry_mapping *mapping,
                              uint64_t unloaded_ticks)
{
    Sojourn__Mapping message = SOJOURN__MAPPING__INIT;
    message.session_id = sj_frame_writer_session_bytes(registry->options.writer);
    message.process = mapping->process;
    message.module = mapping->module;
    message.bias = mapping->bias;
    message.loaded_ticks = mapping->loaded_ticks;
    message.unloaded_ticks = unloaded_ticks;
    return sj_frame_writer_send(registry->options.writer, SJ_FRAME_MAPPING, &message.base,
                                no_payload);
}

static sj_mapping_list *list_of(sj_registry *registry, uint64_t process)
{
    return process - 1 < registry->process_count ? &registry->processes[process - 1].mappings
                                                 : &registry->unknown_mappings;
}

const sj_mapping_list *sj_registry_mappings_of(const sj_registry *registry, uint64_t process)
{
    return process - 1 < registry->process_count ? &registry->processes[process - 1].mappings
                                                 : &registry->unknown_mappings;
}

bool sj_registry_has_mapping(const sj_registry *registry, uint64_t process, uint32_t module)
{
    const sj_mapping_list *list = sj_registry_mappings_of(registry, process);
    for (size_t i = list->count; i-- > 0;) {
        if (list->items[i].module == module && list->items[i].process == process) {
            return true;
        }
    }
    return false;
}

static sj_status append_mapping(sj_registry *registry, const sj_registry_mapping *mapping)
{
    sj_mapping_list *list = list_of(registry, mapping->process);
    SJ_TRY(sj_array_reserve(&list->items, &list->capacity, list->count, 1, sizeof(*list->items)));
    list->items[list->count++] = *mapping;
    return send_mapping(registry, mapping, 0);
}

sj_status sj_registry_add_mapping(sj_registry *registry, const sj_registry_mapping *mapping)
{
    const sj_mapping_list *list = sj_registry_mappings_of(registry, mapping->process);
    for (size_t i = 0; i < list->count; i++) {
        const sj_registry_mapping *known = &list->items[i];
        if (known->process == mapping->process && known->module == mapping->module &&
            known->bias == mapping->bias) {
            return SJ_OK;
        }
    }
    return append_mapping(registry, mapping);
}

sj_status sj_registry_inherit_mappings(sj_registry *registry, uint64_t parent, uint64_t child,
                                       uint64_t now_ticks)
{
    const sj_mapping_list list = *sj_registry_mappings_of(registry, parent);
    for (size_t i = 0; i < list.count; i++) {
        sj_registry_mapping copy = list.items[i];
        if (copy.process == parent) {
            copy.process = child;
            copy.loaded_ticks = now_ticks;
            SJ_TRY(append_mapping(registry, &copy));
        }
    }
    return SJ_OK;
}

/* Removes a mapping that has ended. */
static void remove_at(sj_mapping_list *list, size_t at)
{
    list->items[at] = list->items[--list->count];
}

sj_status sj_registry_end_mapping(sj_registry *registry, uint64_t process, uint32_t module,
                                  uint64_t now_ticks)
{
    sj_mapping_list *list = list_of(registry, process);
    for (size_t i = list->count; i-- > 0;) {
        if (list->items[i].process == process && list->items[i].module == module) {
            SJ_TRY(send_mapping(registry, &list->items[i], now_ticks));
            remove_at(list, i);
        }
    }
    return SJ_OK;
}

sj_status sj_registry_unloaded(sj_registry *registry, uint64_t process, uint64_t bias,
                               uint64_t now_ticks)
{
    pthread_mutex_lock(&registry->mutex);
    sj_mapping_list *list = list_of(registry, process);
    sj_status status = SJ_ENOTFOUND;
    for (size_t i = list->count; i-- > 0;) {
        if (list->items[i].process == process && list->items[i].bias == bias) {
            status = send_mapping(registry, &list->items[i], now_ticks);
            remove_at(list, i);
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

/* Java classes. Each class that is rewritten is a module of the session. A function's offset is the
 * index of its method in the class file. */
#include "agent/abi/record.h"
#include "agent/registry/class_lines.h"
#include "agent/registry/left_out.h"
#include "agent/registry/method_group.h"
#include "agent/registry/registry_internal.h"
#include "agent/runtimes/jvm/class_listing.h"
#include "agent/runtimes/jvm/class_rewrite.h"
#include "agent/runtimes/jvm/jvm.h"
#include "agent/runtimes/jvm/method_name.h"
#include "agent/session/module_frames.h"
#include "proto/base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_PREFIX "jvm:"

enum {
    ID_BYTES = 16,
    PATH_BYTES = sizeof(PATH_PREFIX) + SJ_JAVA_NAME_BYTES + 24,
    /* capacity for each of the names of a hidden class and its host */
    HIDDEN_PART = SJ_JAVA_NAME_BYTES / 2
};

/* The decisions about one class. */
typedef struct class_draft {
    sj_registry *registry;
    uint64_t process;
    sj_link_class_listing listing; /* for a listing, the result is one byte per method */
    uint32_t least_function;
    sj_class_file file;
    sj_class_rewrite_result result;
    uint8_t *wanted;        /* [method_count] */
    sj_java_values *values; /* [method_count] */
    uint32_t selection;
    char *names; /* as in sj_registry_class; owned */
    size_t names_bytes;
    size_t names_capacity;
    uint64_t id[2];
    char path[PATH_BYTES];
} class_draft;

/* Hashes the bytes of a class. The hash identifies them and does not protect against collisions
 * made on purpose. */
static void hash_class(sj_slice bytes, uint64_t loader, uint64_t id[2])
{
    id[0] = UINT64_C(0xcbf29ce484222325) ^ loader;
    id[1] = bytes.size;
    for (size_t i = 0; i < bytes.size; i++) {
        id[0] = (id[0] ^ bytes.data[i]) * UINT64_C(0x100000001b3);
        id[1] = (id[1] + bytes.data[i]) * UINT64_C(0x9e3779b97f4a7c15);
        id[1] ^= id[1] >> 29;
    }
}

static bool is_wanted(void *context, const sj_class_method *method)
{
    const class_draft *draft = context;
    return draft->wanted[method - draft->file.methods] != 0;
}

/* True if a class may have probes, by its name and its loader's name. `path`: path of its module,
 * without the loader. */
static bool wants_class(const sj_registry *registry, bool is_system, sj_slice loader,
                        const char *path)
{
    char loader_name[SJ_JAVA_NAME_BYTES];
    const sj_selection *selection = registry->options.selection;
    const char *name = path + sizeof(PATH_PREFIX) - 1;
    if (selection == NULL) {
        return true;
    }
    sj_java_class_name(loader, loader_name);
    return sj_selection_wants_module(selection, path, false) &&
           sj_selection_wants_class(selection, SJ_LINK_LANGUAGE_JVM, name, is_system) &&
           sj_class_filter_wants_loader(&selection->runtimes[SJ_LINK_LANGUAGE_JVM].classes,
                                        loader_name);
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static bool wants_method(const sj_selection *selection, const char *name)
{
    return selection == NULL || (sj_selection_wants_method(selection, name) &&
                                 sj_selection_wants_source(selection, NULL));
}

/* Lists the values of a method to record, and how rules may change its calls. */
static void choose_values(const sj_selection *selection, const char *name, sj_java_values *values)
{
    const sj_value_rules *rules = selection != NULL ? selection->values : NULL;
    const sj_rule_set matched = sj_value_rules_match(rules, name);
    values->lines = selection != NULL && selection->runtimes[SJ_LINK_LANGUAGE_JVM].lines;
    values->own = sj_value_rules_own_positions(rules, &matched);
    SJ_EACH_RULE (i, &matched) {
        const sj_value_rule *rule = &rules->items[i];
        sj_java_value *value = values->items;
        const sj_java_value *end = value + SJ_VALUES_PER_FUNCTION;
        values->costs = values->costs || rule->is_cpu;
        if (rule->is_cpu || rule->is_typed) {
            continue;
        }
        while (value < end && value->descriptor != 0 && value->descriptor != rule->descriptor) {
            value++;
        }
        if (value == end) {
            continue; /* the function has its maximum number of values */
        }
        value->descriptor = rule->descriptor;
        value->parameter = (uint8_t)sj_value_position(rule->stored);
        value->has_condition |= rule->changes && sj_value_rule_has_condition(rule);
        if (rule->changes && rule->change.action == SJ_CHANGE_SET) {
            values->sets |= (uint16_t)(1U << sj_value_position(rule->change.target));
        }
        values->may_leave =
            values->may_leave || (rule->changes && (rule->change.action == SJ_CHANGE_RETURN ||
                                                    rule->change.action == SJ_CHANGE_THROW));
    }
}

/* Mixes a wanted method and its values into `selection`. The result is a number that identifies all
 * wanted methods and values of the class. */
static uint32_t add_to_selection(uint32_t selection, uint32_t method, const sj_java_values *values)
{
    uint32_t mixed = (selection ^ method) * UINT32_C(0x9e3779b1) + method;
    for (size_t i = 0; i < SJ_VALUES_PER_FUNCTION && values->items[i].descriptor != 0; i++) {
        const sj_java_value *value = &values->items[i];
        const uint32_t bits = (uint32_t)value->descriptor << 16 | (uint32_t)value->parameter << 8 |
                              (value->has_condition ? 1U : 0U);
        mixed = (mixed ^ bits) * UINT32_C(0x9e3779b1) + (uint32_t)i;
    }
    if (sj_java_values_wanted(values)) {
        mixed = (mixed ^ values->own) * UINT32_C(0x9e3779b1);
        mixed = (mixed ^ ((uint32_t)values->sets << 3 | (values->lines ? 4U : 0U) |
                          (values->costs ? 2U : 0U) | (values->may_leave ? 1U : 0U))) *
                UINT32_C(0x9e3779b1);
    }
    return mixed < SJ_CLASS_SELECTED ? SJ_CLASS_SELECTED : mixed;
}

/* Returns the number that identifies the methods and values wanted now in a class of a process. */
static uint32_t selection_of(const sj_registry *registry, const sj_registry_class *class,
                             uint64_t process)
{
    uint32_t selection = SJ_CLASS_NOTHING;
    const char *name = class->names;
    for (uint32_t i = 0; i < class->name_count; i++) {
        if (name[0] == '+' && !sj_left_out_has(class, process, i) &&
            wants_method(registry->options.selection, name + 1)) {
            sj_java_values values = {0};
            choose_values(registry->options.selection, name + 1, &values);
            selection = add_to_selection(selection, i, &values);
        }
        name += strlen(name) + 1;
    }
    return selection;
}

static sj_status keep_name(class_draft *draft, const char *name, bool has_code)
{
    const size_t bytes = strlen(name) + 2;
    SJ_TRY(sj_array_reserve(&draft->names, &draft->names_capacity, draft->names_bytes, bytes, 1));
    draft->names[draft->names_bytes] = has_code ? '+' : '-';
    memcpy(draft->names + draft->names_bytes + 1, name, bytes - 1);
    draft->names_bytes += bytes;
    return SJ_OK;
}

/* Counts a method for the rules that ask for types or memory. */
static void count_managed(const sj_selection *selection, const char *name)
{
    sj_value_rules *rules = selection != NULL ? selection->values : NULL;
    const sj_rule_set matched = sj_value_rules_match(rules, name);
    sj_value_rules_count_managed(rules, &matched);
}

/* Selects the methods of a class and their values. `known`: the class if an equal one was seen
 * before, else NULL. */
static sj_status choose_methods(class_draft *draft, const sj_registry_class *known)
{
    char name[SJ_JAVA_NAME_BYTES];
    draft->wanted = calloc((size_t)draft->file.method_count + 1, 1);
    draft->values = calloc((size_t)draft->file.method_count + 1, sizeof(*draft->values));
    draft->selection = SJ_CLASS_NOTHING;
    if (draft->wanted == NULL || draft->values == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < draft->file.method_count; i++) {
        const bool has_code = draft->file.methods[i].code != 0;
        sj_java_method_name(&draft->file, &draft->file.methods[i], name);
        SJ_TRY(keep_name(draft, name, has_code));
        draft->wanted[i] = !sj_left_out_has(known, draft->process, i) &&
                           wants_method(draft->registry->options.selection, name);
        if (draft->wanted[i] != 0 && has_code) {
            if (known == NULL) {
                count_managed(draft->registry->options.selection, name);
            }
            choose_values(draft->registry->options.selection, name, &draft->values[i]);
            draft->selection = add_to_selection(draft->selection, i, &draft->values[i]);
        }
    }
    return SJ_OK;
}

/* Notes which values of the methods with probes are stored by their own types. */
static sj_status keep_own_values(const class_draft *draft, uint32_t first_function)
{
    const sj_selection *selection = draft->registry->options.selection;
    for (uint32_t i = 0; selection != NULL && i < draft->file.method_count; i++) {
        SJ_TRY(sj_value_rules_set_own(selection->values, first_function + i, draft->values[i].own));
    }
    return SJ_OK;
}

static sj_skip skip_of(uint8_t skip)
{
    switch ((sj_java_skip)skip) {
    case SJ_JAVA_REWRITTEN:
        return SJ_SKIP_NONE;
    case SJ_JAVA_SKIP_NOT_WANTED:
        return SJ_SKIP_FILTERED;
    case SJ_JAVA_SKIP_NO_CODE:
        return SJ_SKIP_NO_CODE;
    case SJ_JAVA_SKIP_TOO_LARGE:
    case SJ_JAVA_SKIP_FAR_JUMP:
    case SJ_JAVA_SKIP_POOL_FULL:
        return SJ_SKIP_CLASS_FULL;
    case SJ_JAVA_SKIP_FIXED:
        return SJ_SKIP_FIXED_CLASS;
    case SJ_JAVA_SKIP_DAMAGED:
    case SJ_JAVA_SKIPS:
        break;
    }
    return SJ_SKIP_UNDECODABLE;
}

/* Makes a plan whose functions are the methods. The caller frees `*group`. */
static sj_status make_group(const class_draft *draft, sj_plan_header **group)
{
    const uint32_t count = draft->file.method_count;
    const size_t functions_bytes = count * sizeof(sj_plan_function);
    const size_t strings_capacity = 1 + (size_t)count * SJ_JAVA_NAME_BYTES;
    uint8_t *bytes = calloc(1, sizeof(**group) + functions_bytes + strings_capacity);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_plan_header *header = (sj_plan_header *)(void *)bytes;
    sj_plan_function *functions = (sj_plan_function *)(void *)(header + 1);
    char *strings = (char *)(functions + count);
    size_t used = 1; /* offset 0 is the empty name */
    for (uint32_t i = 0; i < count; i++) {
        const sj_skip skip = skip_of(draft->result.skips[i]);
        functions[i] = (sj_plan_function){.offset = i,
                                          .name = (uint32_t)used,
                                          .technique = skip == SJ_SKIP_NONE ? SJ_TECHNIQUE_RUNTIME
                                                                            : SJ_TECHNIQUE_NONE,
                                          .skip = (uint8_t)skip,
                                          .source = SJ_SYMBOL_RUNTIME};
        sj_java_method_name(&draft->file, &draft->file.methods[i], strings + used);
        used += strlen(strings + used) + 1;
    }
    *header = (sj_plan_header){.magic = SJ_PLAN_MAGIC,
                               .version = SJ_PLAN_VERSION,
                               .machine = sj_method_group_machine(),
                               .file_bytes = (uint32_t)(sizeof(*header) + functions_bytes + used),
                               .build_id_bytes = ID_BYTES,
                               .function_count = count,
                               .functions_offset = sizeof(*header),
                               .strings_bytes = (uint32_t)used,
                               .strings_offset = (uint32_t)(sizeof(*header) + functions_bytes)};
    memcpy(header->build_id, draft->id, ID_BYTES);
    *group = header;
    return SJ_OK;
}

/* Returns the language by which rules about a method are checked: JVM if the method has probes;
 * else OBJC, for which rules have no obstacles. */
static sj_link_language language_of(bool has_probes)
{
    return has_probes ? SJ_LINK_LANGUAGE_JVM : SJ_LINK_LANGUAGE_OBJC;
}

static void count_class(sj_registry *registry, const sj_plan_header *group, bool is_listed,
                        uint32_t first_function)
{
    const sj_plan_function *functions = sj_plan_functions(group);
    const char *strings = (const char *)group + group->strings_offset;
    registry->counters.modules++;
    registry->counters.functions += group->function_count;
    for (uint32_t i = 0; i < group->function_count; i++) {
        const uint32_t skip = functions[i].skip;
        registry->counters.hooked += skip == SJ_SKIP_NONE;
        registry->counters.filtered += skip == SJ_SKIP_FILTERED;
        registry->counters.skips[skip] += skip != SJ_SKIP_NONE;
        if (registry->options.rules != NULL) {
            sj_function_rules_name_method(registry->options.rules, first_function + i,
                                          strings + functions[i].name,
                                          language_of(skip == SJ_SKIP_NONE && !is_listed));
        }
    }
}

/* True if a process still has a class, or if none of its methods was ever wanted. */
static bool is_still_loaded(const sj_registry *registry, const sj_registry_class *class)
{
    bool is_mapped = class->module == 0;
    for (uint64_t process = 1; process <= registry->process_count && !is_mapped; process++) {
        is_mapped = sj_registry_has_mapping(registry, process, class->module);
    }
    return is_mapped;
}

/* Finds a known class. A class that was unloaded with its loader and comes again is a new class,
 * with new ids. */
static sj_registry_class *find_class(const sj_registry *registry, const class_draft *draft)
{
    const uint64_t path_hash = hash_text(draft->path);
    for (size_t i = 0; i < registry->class_count; i++) {
        sj_registry_class *class = &registry->classes[i];
        if (class->id[0] == draft->id[0] && class->id[1] == draft->id[1] &&
            class->path_hash == path_hash && is_still_loaded(registry, class)) {
            return class;
        }
    }
    return NULL;
}

/* Marks the methods of a listing that the JVM's tracing functions must report. */
static sj_status mark_listed(class_draft *draft)
{
    sj_class_rewrite_result *result = &draft->result;
    const uint32_t count = draft->file.method_count;
    *result = (sj_class_rewrite_result){.skips = calloc((size_t)count + 1, 1),
                                        .bytes = calloc((size_t)count + 1, 1),
                                        .size = count};
    if (result->skips == NULL || result->bytes == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        const sj_java_skip skip = draft->file.methods[i].code == 0   ? SJ_JAVA_SKIP_NO_CODE
                                  : draft->wanted[i] == 0            ? SJ_JAVA_SKIP_NOT_WANTED
                                  : draft->listing == SJ_CLASS_FIXED ? SJ_JAVA_SKIP_FIXED
                                                                     : SJ_JAVA_REWRITTEN;
        result->skips[i] = (uint8_t)skip;
        result->bytes[i] = skip == SJ_JAVA_REWRITTEN;
        result->rewritten += result->bytes[i];
    }
    return SJ_OK;
}

static sj_status rewrite(class_draft *draft, uint32_t first_function)
{
    if (draft->listing != SJ_CLASS_FILE) {
        return mark_listed(draft);
    }
    const sj_class_rewrite_request request = {.file = &draft->file,
                                              .first_function = first_function,
                                              .wanted = is_wanted,
                                              .values = draft->values,
                                              .context = draft};
    return sj_class_rewrite(&request, &draft->result);
}

/* Adds a class that was not seen before. Takes ownership of the draft's names. */
static sj_status keep_class(class_draft *draft, sj_registry_class **kept)
{
    sj_registry *registry = draft->registry;
    SJ_TRY(sj_array_reserve(&registry->classes, &registry->class_capacity, registry->class_count, 1,
                            sizeof(*registry->classes)));
    *kept = &registry->classes[registry->class_count++];
    **kept = (sj_registry_class){.id = {draft->id[0], draft->id[1]},
                                 .path_hash = hash_text(draft->path),
                                 .selection = SJ_CLASS_NOTHING,
                                 .is_listed = draft->listing != SJ_CLASS_FILE,
                                 .name_count = draft->file.method_count,
                                 .names = draft->names};
    draft->names = NULL;
    return SJ_OK;
}

static bool wants_lines(const sj_registry *registry)
{
    return registry->options.selection != NULL &&
           registry->options.selection->runtimes[SJ_LINK_LANGUAGE_JVM].lines;
}

/* Reports the source lines of a class's methods: all lines, or the first line of each. */
static sj_status report_lines(const class_draft *draft, sj_registry_class *class,
                              uint64_t now_ticks)
{
    sj_frame_writer *writer = draft->registry->options.writer;
    if (draft->listing != SJ_CLASS_FILE) {
        return SJ_OK; /* a listing has no lines */
    }
    if (!wants_lines(draft->registry)) {
        return sj_class_lines_report(&draft->file, writer, class->module, now_ticks);
    }
    SJ_TRY(sj_class_lines_read(&draft->file, &class->lines));
    const sj_status status = class->lines != NULL
                                 ? sj_source_lines_report(class->lines, SJ_SOURCE_LINES_THERE,
                                                          writer, class->module, now_ticks)
                                 : SJ_OK;
    return status == SJ_EFULL ? SJ_OK : status; /* counted by the writer */
}

/* Ends the mappings of earlier versions of a class if a process has redefined it with other bytes.
 * */
static sj_status end_redefined(const class_draft *draft, const sj_registry_class *class,
                               const sj_registry_mapping *mapping)
{
    sj_registry *registry = draft->registry;
    for (size_t i = 0; i < registry->class_count; i++) {
        const sj_registry_class *other = &registry->classes[i];
        if (other != class && other->module != 0 && other->path_hash == class->path_hash) {
            SJ_TRY(sj_registry_end_mapping(registry, mapping->process, other->module,
                                           mapping->loaded_ticks));
        }
    }
    return SJ_OK;
}

/* Skips function ids of an earlier recording, whose probes stay in the traced program. No function
 * of this session gets such an id. */
static sj_status skip_function_ids(sj_registry *registry, uint32_t least_function, uint32_t count)
{
    if (least_function <= registry->next_function) {
        return SJ_OK;
    }
    if ((uint64_t)least_function + count > SJ_RECORD_FUNCTIONS_END) {
        return SJ_ELIMIT;
    }
    registry->next_function = least_function;
    return SJ_OK;
}

static sj_status add_new_class(class_draft *draft, sj_registry_class *class,
                               const sj_registry_mapping *mapping, uint32_t *first_function)
{
    sj_registry *registry = draft->registry;
    sj_plan_header *group = NULL;
    SJ_TRY(skip_function_ids(registry, draft->least_function, draft->file.method_count));
    SJ_TRY(rewrite(draft, registry->next_function));
    SJ_TRY(end_redefined(draft, class, mapping));
    SJ_TRY(make_group(draft, &group));
    const sj_status status =
        sj_registry_add_group(registry, mapping, group, draft->path, first_function);
    if (status == SJ_OK) {
        class->module = (uint32_t)registry->module_count;
        class->selection = draft->selection;
        count_class(registry, group, draft->listing != SJ_CLASS_FILE, *first_function);
    }
    free(group);
    SJ_TRY(status);
    SJ_TRY(keep_own_values(draft, *first_function));
    return report_lines(draft, class, mapping->loaded_ticks);
}

/* Sends the functions again if the policy has changed which of them have probes. */
static sj_status resend_functions(class_draft *draft, sj_registry_class *class,
                                  uint32_t first_function)
{
    sj_registry *registry = draft->registry;
    sj_plan_header *group = NULL;
    if (class->selection == draft->selection) {
        return SJ_OK;
    }
    SJ_TRY(make_group(draft, &group));
    const sj_status status = sj_module_frames_send(registry->options.writer, group, draft->path,
                                                   class->module, first_function);
    class->selection = draft->selection;
    free(group);
    return status;
}

static sj_status add_known_class(class_draft *draft, sj_registry_class *class,
                                 const sj_registry_mapping *mapping, uint32_t *first_function)
{
    sj_registry_mapping mapped_again = *mapping;
    mapped_again.module = class->module;
    *first_function = draft->registry->modules[class->module - 1].first_function;
    SJ_TRY(rewrite(draft, *first_function));
    SJ_TRY(end_redefined(draft, class, mapping));
    SJ_TRY(resend_functions(draft, class, *first_function));
    SJ_TRY(keep_own_values(draft, *first_function));
    return sj_registry_add_mapping(draft->registry, &mapped_again);
}

static void name_module(class_draft *draft, const char *name, uint64_t loader)
{
    if (loader == 0) {
        snprintf(draft->path, sizeof(draft->path), PATH_PREFIX "%s", name);
    } else {
        snprintf(draft->path, sizeof(draft->path), PATH_PREFIX "%s@%" PRIx64, name, loader);
    }
}

/* Names a hidden class by its host and its bytes, because several hidden classes may have the same
 * name. Omits the host if the class is its own host. */
static void name_hidden(class_draft *draft, sj_slice host)
{
    char name[SJ_JAVA_NAME_BYTES];
    char host_name[SJ_JAVA_NAME_BYTES];
    const uint32_t mixed = (uint32_t)(draft->id[0] ^ draft->id[1] ^ draft->id[0] >> 32);
    sj_java_class_name(draft->file.name, name);
    sj_java_class_name(host, host_name);
    const bool is_own = draft->listing == SJ_CLASS_FIXED && strcmp(name, host_name) == 0;
    snprintf(draft->path, sizeof(draft->path), PATH_PREFIX "%.*s%s%.*s+%08" PRIx32, HIDDEN_PART,
             is_own ? "" : host_name, is_own ? "" : "/", HIDDEN_PART, name, mixed);
}

/* Reads the class file and decides whether the class may have probes. */
static sj_status read_class(class_draft *draft, const sj_link_class *class,
                            const sj_class_texts *texts, sj_slice bytes)
{
    char name[SJ_JAVA_NAME_BYTES];
    sj_error error = {0};
    const sj_status status = draft->listing != SJ_CLASS_FILE
                                 ? sj_class_listing_read(bytes, &draft->file, &error)
                                 : sj_class_file_read(bytes, &draft->file, &error);
    if (status != SJ_OK) {
        sj_registry_note_plan_failure(draft->registry, PATH_PREFIX "class", &error);
        return status == SJ_ENOMEM ? SJ_ENOMEM : SJ_EUNSUPPORTED;
    }
    const bool is_hidden = class->host_bytes != 0;
    if (draft->listing == SJ_CLASS_FIXED) { /* cut the suffix: com/acme/Made.0x0000000800c01000 */
        const uint8_t *suffix = memchr(draft->file.name.data, '.', draft->file.name.size);
        const uint8_t *name_end = draft->file.name.data + draft->file.name.size;
        draft->file.name.size -= suffix != NULL ? (size_t)(name_end - suffix) : 0;
    }
    sj_java_class_name(is_hidden ? texts->host : draft->file.name, name);
    name_module(draft, name, 0);
    if (!wants_class(draft->registry, class->is_system != 0, texts->loader, draft->path)) {
        return SJ_EUNSUPPORTED;
    }
    name_module(draft, name, class->loader);
    hash_class(bytes, class->loader, draft->id);
    if (is_hidden) {
        name_hidden(draft, texts->host);
    }
    return SJ_OK;
}

static const sj_class_filter *filter_of(const sj_registry *registry)
{
    return registry->options.selection != NULL
               ? &registry->options.selection->runtimes[SJ_LINK_LANGUAGE_JVM].classes
               : NULL;
}

static size_t find_descendant(const sj_registry *registry, uint64_t path_hash)
{
    size_t i = 0;
    while (i < registry->descendant_count && registry->descendants[i] != path_hash) {
        i++;
    }
    return i;
}

/* True if the filter does not ask for ancestors, or if the class is known to descend from a wanted
 * one. While a class is being defined, its ancestors are not known yet. */
static bool may_descend(const sj_registry *registry, uint64_t path_hash)
{
    const sj_class_filter *filter = filter_of(registry);
    return filter == NULL || filter->ancestor_count == 0 ||
           find_descendant(registry, path_hash) != registry->descendant_count;
}

/* Stores and returns whether a class descends from a wanted ancestor. */
static bool note_descent(sj_registry *registry, const char *path, const char *name,
                         sj_slice lineage)
{
    char names[SJ_LINK_LINEAGE_BYTES];
    const sj_class_filter *filter = filter_of(registry);
    const uint64_t path_hash = hash_text(path);
    const size_t place = find_descendant(registry, path_hash);
    const bool is_known = place != registry->descendant_count;
    if (filter == NULL || filter->ancestor_count == 0) {
        return true;
    }
    for (size_t i = 0; i < lineage.size; i++) {
        names[i] = lineage.data[i] == '/' ? '.' : (char)lineage.data[i];
    }
    const sj_slice dotted = {.data = (const uint8_t *)names, .size = lineage.size};
    const bool descends = sj_class_filter_wants_descendant(filter, name, dotted);
    if (descends && !is_known) {
        if (sj_array_reserve(&registry->descendants, &registry->descendant_capacity,
                             registry->descendant_count, 1,
                             sizeof(*registry->descendants)) != SJ_OK) {
            return false;
        }
        registry->descendants[registry->descendant_count++] = path_hash;
    } else if (!descends && is_known) {
        registry->descendants[place] = registry->descendants[--registry->descendant_count];
    }
    return descends;
}

/* True if the class has probes of an earlier recording. Their function ids mean other functions in
 * that JVM. Reports that. The caller holds the mutex. */
static bool is_of_earlier(const class_draft *draft, const sj_registry_class *known)
{
    sj_error error = {0};
    if (known == NULL || known->module == 0 || draft->listing == SJ_CLASS_FIXED ||
        draft->registry->modules[known->module - 1].first_function >= draft->least_function) {
        return false;
    }
    (void)sj_fail(&error, SJ_EUNSUPPORTED,
                  "its methods have numbers that mean others in a JVM that was recorded before; "
                  "record that JVM alone");
    sj_registry_note_plan_failure(draft->registry, draft->path, &error);
    return true;
}

/* Chooses the methods of a class to record, and writes the reply. Returns SJ_EUNSUPPORTED if none
 * is recorded. The caller holds the mutex. */
static sj_status add_class(class_draft *draft, const sj_link_class *class,
                           const sj_class_texts *texts, sj_slice bytes,
                           const sj_registry_mapping *mapping, sj_class_reply *reply)
{
    SJ_TRY(read_class(draft, class, texts, bytes));
    sj_registry_class *known = find_class(draft->registry, draft);
    if (is_of_earlier(draft, known)) {
        return SJ_EUNSUPPORTED;
    }
    SJ_TRY(choose_methods(draft, known));
    if (known == NULL) {
        SJ_TRY(keep_class(draft, &known));
    }
    if (draft->selection == SJ_CLASS_NOTHING || !may_descend(draft->registry, known->path_hash)) {
        SJ_TRY(end_redefined(draft, known, mapping));
        return SJ_EUNSUPPORTED;
    }
    known->is_hidden = class->host_bytes != 0;
    SJ_TRY(known->module != 0 ? add_known_class(draft, known, mapping, &reply->first_function)
                              : add_new_class(draft, known, mapping, &reply->first_function));
    reply->count = draft->file.method_count;
    reply->rewritten = draft->result.rewritten;
    reply->selection = draft->selection;
    reply->bytes = draft->result.bytes;
    reply->size = draft->result.size;
    draft->result.bytes = NULL;
    return SJ_OK;
}

sj_status sj_registry_add_class(sj_registry *registry, uint64_t process, const sj_link_class *class,
                                const sj_class_texts *texts, sj_slice bytes, uint64_t now_ticks,
                                sj_class_reply *reply)
{
    /* The bias is the loader's number, so that the unloading of a loader ends the mappings of its
     * classes. */
    const sj_registry_mapping mapping = {
        .process = process, .bias = class->loader, .loaded_ticks = now_ticks};
    class_draft draft = {.registry = registry,
                         .process = process,
                         .listing = (sj_link_class_listing) class->listing,
                         .least_function = class->least_function};
    *reply = (sj_class_reply){0};
    pthread_mutex_lock(&registry->mutex);
    const sj_status status = add_class(&draft, class, texts, bytes, &mapping, reply);
    pthread_mutex_unlock(&registry->mutex);
    sj_class_rewrite_deinit(&draft.result);
    sj_class_file_deinit(&draft.file);
    free(draft.wanted);
    free(draft.values);
    free(draft.names);
    return status == SJ_EEXIST ? SJ_EUNSUPPORTED : status;
}

static void name_methods(sj_registry *registry, const sj_registry_class *class)
{
    const uint32_t first = registry->modules[class->module - 1].first_function;
    const char *name = class->names;
    for (uint32_t i = 0; i < class->name_count; i++) {
        const bool has_probes = name[0] == '+' && !class->is_listed &&
                                wants_method(registry->options.selection, name + 1);
        sj_function_rules_name_method(registry->options.rules, first + i, name + 1,
                                      language_of(has_probes));
        name += strlen(name) + 1;
    }
}

void sj_registry_name_classes(sj_registry *registry)
{
    for (size_t i = 0; i < registry->class_count && registry->options.rules != NULL; i++) {
        if (registry->classes[i].module != 0) {
            name_methods(registry, &registry->classes[i]);
        }
    }
}

/* Returns the class of that path that was added last; NULL: none. */
static const sj_registry_class *find_seen(const sj_registry *registry, const char *path)
{
    const uint64_t path_hash = hash_text(path);
    for (size_t i = registry->class_count; i-- > 0;) {
        if (registry->classes[i].path_hash == path_hash) {
            return &registry->classes[i];
        }
    }
    return NULL;
}

/* Returns the selection number that a loaded class must have; SJ_CLASS_UNASKED: the class must be
 * read first. */
static uint32_t wanted_selection(class_draft *draft, const sj_link_loaded_class *loaded,
                                 const sj_class_texts *texts)
{
    char name[SJ_JAVA_NAME_BYTES];
    sj_java_class_name(texts->name, name);
    name_module(draft, name, 0);
    if (!wants_class(draft->registry, loaded->is_system != 0, texts->loader, draft->path)) {
        return SJ_CLASS_NOTHING;
    }
    name_module(draft, name, loaded->loader);
    if (!note_descent(draft->registry, draft->path, name, texts->lineage)) {
        return SJ_CLASS_NOTHING;
    }
    const sj_registry_class *seen = find_seen(draft->registry, draft->path);
    return seen != NULL ? selection_of(draft->registry, seen, draft->process) : SJ_CLASS_UNASKED;
}

bool sj_registry_choose_class(sj_registry *registry, uint64_t process,
                              const sj_link_loaded_class *loaded, const sj_class_texts *texts)
{
    class_draft draft = {.registry = registry, .process = process};
    pthread_mutex_lock(&registry->mutex);
    const uint32_t wanted = wanted_selection(&draft, loaded, texts);
    pthread_mutex_unlock(&registry->mutex);
    const uint32_t has =
        loaded->selection == SJ_CLASS_UNASKED ? SJ_CLASS_NOTHING : loaded->selection;
    return wanted != has;
}

sj_status sj_registry_report_jvm(sj_registry *registry, uint64_t process,
                                 const sj_link_jvm_state *state, uint64_t now_ticks)
{
    static const char *const kinds[] = {"state", "joined", "selected", "left"};
    char json[512];
    if (state->moment >= sizeof(kinds) / sizeof(kinds[0])) {
        return SJ_ECORRUPT;
    }
    int bytes =
        snprintf(json, sizeof(json),
                 "{\"classes\": %" PRIu32 ", \"unanswered\": %" PRIu32 ", \"leaf_stubs\": %" PRIu32
                 ", \"native_wrappers\": %" PRIu32 ", \"known_jvm\": %s, \"engine\": \"%s\""
                 ", \"virtual_calls\": %" PRIu64,
                 state->classes, state->unanswered, state->leaf_stubs, state->wrappers,
                 state->is_unknown == 0 ? "true" : "false",
                 sj_runtime_jvm.engines[state->is_traced != 0 ? 1 : 0], state->virtual_calls);
    if (state->moment != SJ_JVM_ENDED) {
        bytes += snprintf(json + bytes, sizeof(json) - (size_t)bytes,
                          ", \"examined\": %" PRIu32 ", \"retransformed\": %" PRIu32
                          ", \"refused\": %" PRIu32 ", \"hidden_before\": %" PRIu32
                          ", \"batches\": %" PRIu32 ", \"total_ns\": %" PRIu64
                          ", \"longest_batch_ns\": %" PRIu64,
                          state->examined, state->retransformed, state->refused, state->fixed,
                          state->batches, state->total_ns, state->longest_ns);
    }
    bytes += snprintf(json + bytes, sizeof(json) - (size_t)bytes, "}");
    pthread_mutex_lock(&registry->mutex);
    registry->counters.jvm_transformed_ns += state->total_ns;
    registry->counters.jvm_virtual_calls = state->virtual_calls;
    if (state->moment == SJ_JVM_JOINED || state->moment == SJ_JVM_SELECTED) {
        registry->counters.jvm_hidden_before = state->fixed;
    }
    pthread_mutex_unlock(&registry->mutex);
    if (state->moment == SJ_JVM_JOINED) {
        pthread_mutex_lock(&registry->mutex);
        registry->counters.jvm_retransformed += state->retransformed;
        registry->counters.jvm_batches += state->batches;
        registry->counters.jvm_total_ns += state->total_ns;
        registry->counters.jvm_longest_ns = state->longest_ns;
        pthread_mutex_unlock(&registry->mutex);
    }
    const sj_report report = {.ticks = now_ticks,
                              .process = process,
                              .monitor = "jvm",
                              .kind = kinds[state->moment],
                              .json = json,
                              .json_bytes = (size_t)bytes};
    return sj_frame_writer_report(registry->options.writer, &report);
}

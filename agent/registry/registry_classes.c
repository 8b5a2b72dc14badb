/* Java classes: each that is rewritten is a module of the session, whose functions have their
 * places in the class file for offsets. */
#include "agent/registry/method_group.h"
#include "agent/registry/registry_internal.h"
#include "agent/runtimes/jvm/class_rewrite.h"
#include "agent/runtimes/jvm/method_name.h"
#include "proto/base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_PREFIX "jvm:"

enum { ID_BYTES = 16, PATH_BYTES = sizeof(PATH_PREFIX) + SJ_JAVA_NAME_BYTES + 24 };

/* What is decided about one class. */
typedef struct class_draft {
    sj_registry *registry;
    sj_class_file file;
    sj_class_rewrite_result result;
    uint8_t *wanted; /* [method_count] */
    uint32_t wanted_count;
    uint64_t id[2];
    char path[PATH_BYTES];
} class_draft;

/* An identity, not a defence. */
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

static bool wants_class(const sj_registry *registry, const sj_link_class *class, const char *path)
{
    const sj_selection *selection = registry->options.selection;
    const char *name = path + sizeof(PATH_PREFIX) - 1;
    return selection == NULL ||
           (sj_selection_wants_module(selection, path, false) &&
            sj_selection_wants_class(selection, SJ_LINK_LANGUAGE_JVM, name, class->is_system != 0));
}

static sj_status choose_methods(class_draft *draft)
{
    const sj_selection *selection = draft->registry->options.selection;
    char name[SJ_JAVA_NAME_BYTES];
    draft->wanted = calloc((size_t)draft->file.method_count + 1, 1);
    if (draft->wanted == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 0; i < draft->file.method_count; i++) {
        sj_java_method_name(&draft->file, &draft->file.methods[i], name);
        const bool wants = selection == NULL || (sj_selection_wants_method(selection, name) &&
                                                 sj_selection_wants_source(selection, NULL));
        draft->wanted[i] = wants;
        draft->wanted_count += wants && draft->file.methods[i].code != 0;
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
    case SJ_JAVA_SKIP_DAMAGED:
    case SJ_JAVA_SKIPS:
        break;
    }
    return SJ_SKIP_UNDECODABLE;
}

/* Lays the methods out as functions. The caller frees `*group`. */
static sj_status make_group(const class_draft *draft, sj_plan_header **group)
{
    const uint32_t count = draft->file.method_count;
    const size_t functions_bytes = count * sizeof(sj_plan_function);
    const size_t strings_room = 1 + (size_t)count * SJ_JAVA_NAME_BYTES;
    uint8_t *bytes = calloc(1, sizeof(**group) + functions_bytes + strings_room);
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

static void count_class(sj_registry *registry, const sj_plan_header *group, uint32_t first_function)
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
            sj_function_rules_name_method(
                registry->options.rules, first_function + i, strings + functions[i].name,
                skip == SJ_SKIP_NONE ? SJ_LINK_LANGUAGE_JVM : SJ_LINK_LANGUAGE_OBJC);
        }
    }
}

static const sj_registry_class *find_class(const sj_registry *registry, const class_draft *draft)
{
    for (size_t i = 0; i < registry->class_count; i++) {
        const sj_registry_class *class = &registry->classes[i];
        if (class->id[0] == draft->id[0] && class->id[1] == draft->id[1] &&
            strcmp(registry->modules[class->module - 1].path, draft->path) == 0) {
            return class;
        }
    }
    return NULL;
}

static sj_status rewrite(class_draft *draft, uint32_t first_function)
{
    const sj_class_rewrite_request request = {.file = &draft->file,
                                              .first_function = first_function,
                                              .wanted = is_wanted,
                                              .context = draft};
    return sj_class_rewrite(&request, &draft->result);
}

static sj_status add_new(class_draft *draft, const sj_registry_mapping *mapping,
                         uint32_t *first_function)
{
    sj_registry *registry = draft->registry;
    sj_plan_header *group = NULL;
    SJ_TRY(sj_array_reserve(&registry->classes, &registry->class_capacity, registry->class_count, 1,
                            sizeof(*registry->classes)));
    SJ_TRY(rewrite(draft, registry->next_function));
    SJ_TRY(make_group(draft, &group));
    const sj_status status =
        sj_registry_add_group(registry, mapping, group, draft->path, first_function);
    if (status == SJ_OK) {
        registry->classes[registry->class_count++] = (sj_registry_class){
            .id = {draft->id[0], draft->id[1]}, .module = (uint32_t)registry->module_count};
        count_class(registry, group, *first_function);
    }
    free(group);
    return status;
}

static sj_status add_known(class_draft *draft, const sj_registry_class *class,
                           const sj_registry_mapping *mapping, uint32_t *first_function)
{
    sj_registry_mapping another = *mapping;
    another.module = class->module;
    *first_function = draft->registry->modules[class->module - 1].first_function;
    SJ_TRY(rewrite(draft, *first_function));
    return sj_registry_add_mapping(draft->registry, &another);
}

/* The caller holds the mutex. */
static sj_status add_class(class_draft *draft, const sj_link_class *class, sj_slice bytes,
                           const sj_registry_mapping *mapping, sj_class_answer *answer)
{
    char name[SJ_JAVA_NAME_BYTES];
    sj_error error = {0};
    const sj_status status = sj_class_file_read(bytes, &draft->file, &error);
    if (status != SJ_OK) {
        sj_registry_note_plan_failure(draft->registry, PATH_PREFIX "class", &error);
        return status == SJ_ENOMEM ? SJ_ENOMEM : SJ_EUNSUPPORTED;
    }
    sj_java_class_name(draft->file.name, name);
    snprintf(draft->path, sizeof(draft->path), PATH_PREFIX "%s", name);
    if (!wants_class(draft->registry, class, draft->path)) {
        return SJ_EUNSUPPORTED;
    }
    if (class->loader != 0) {
        snprintf(draft->path, sizeof(draft->path), PATH_PREFIX "%s@%" PRIx64, name, class->loader);
    }
    SJ_TRY(choose_methods(draft));
    if (draft->wanted_count == 0) {
        return SJ_EUNSUPPORTED;
    }
    hash_class(bytes, class->loader, draft->id);
    const sj_registry_class *known = find_class(draft->registry, draft);
    SJ_TRY(known != NULL ? add_known(draft, known, mapping, &answer->first_function)
                         : add_new(draft, mapping, &answer->first_function));
    answer->count = draft->file.method_count;
    answer->rewritten = draft->result.rewritten;
    answer->bytes = draft->result.bytes;
    answer->size = draft->result.size;
    draft->result.bytes = NULL;
    return SJ_OK;
}

sj_status sj_registry_add_class(sj_registry *registry, uint64_t process, const sj_link_class *class,
                                sj_slice bytes, uint64_t now_ticks, sj_class_answer *answer)
{
    const sj_registry_mapping mapping = {.process = process, .loaded_ticks = now_ticks};
    class_draft draft = {.registry = registry};
    *answer = (sj_class_answer){0};
    pthread_mutex_lock(&registry->mutex);
    const sj_status status = add_class(&draft, class, bytes, &mapping, answer);
    pthread_mutex_unlock(&registry->mutex);
    sj_class_rewrite_deinit(&draft.result);
    sj_class_file_deinit(&draft.file);
    free(draft.wanted);
    return status == SJ_EEXIST ? SJ_EUNSUPPORTED : status;
}

sj_status sj_registry_report_jvm(sj_registry *registry, uint64_t process,
                                 const sj_link_jvm_state *state, uint64_t now_ticks)
{
    char json[256];
    const int bytes =
        snprintf(json, sizeof(json),
                 "{\"classes\": %" PRIu32 ", \"unanswered\": %" PRIu32 ", \"leaf_stubs\": %" PRIu32
                 ", \"native_wrappers\": %" PRIu32 ", \"known_jvm\": %s}",
                 state->classes, state->unanswered, state->leaf_stubs, state->wrappers,
                 state->is_unknown == 0 ? "true" : "false");
    const sj_report report = {.ticks = now_ticks,
                              .process = process,
                              .monitor = "jvm",
                              .kind = "state",
                              .json = json,
                              .json_bytes = (size_t)bytes};
    return sj_frame_writer_report(registry->options.writer, &report);
}

/* Lines of methods that are loaded at run time: all lines, and those that ran. */
#include "agent/registry/registry_internal.h"

#include <ctype.h>
#include <stdio.h>

sj_status sj_registry_read_lines(sj_registry *registry, const sj_link_container *container,
                                 const char *path, uint64_t now_ticks, sj_source_lines **lines)
{
    char in_root[PATH_MAX];
    const sj_slice id = {.data = container->id, .size = container->id_bytes};
    *lines = NULL;
    if (registry->options.selection == NULL ||
        !registry->options.selection->runtimes[container->language].lines) {
        return SJ_OK;
    }
    const char *file = sj_registry_find_file(registry, path, in_root);
    const sj_status status =
        sj_source_lines_read(sj_runtime_of_language(container->language), file, id, lines);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    /* If the spool is full, the frame writer counts the report, and the store does not know these
     * lines. */
    const sj_status sent =
        sj_source_lines_report(*lines, SJ_SOURCE_LINES_THERE, registry->options.writer,
                               (uint32_t)registry->module_count, now_ticks);
    if (sent != SJ_OK && sent != SJ_EFULL) {
        sj_source_lines_free(*lines);
        *lines = NULL;
        return sent;
    }
    return SJ_OK;
}

static sj_registry_container *container_of(sj_registry *registry, uint32_t function)
{
    for (size_t i = 0; i < registry->container_count; i++) {
        const sj_registry_module *module = &registry->modules[registry->containers[i].module - 1];
        if (function >= module->first_function &&
            function - module->first_function < module->function_count) {
            return &registry->containers[i];
        }
    }
    return NULL;
}

static const sj_registry_class *class_of(const sj_registry *registry, uint32_t function)
{
    for (size_t i = 0; i < registry->class_count; i++) {
        const sj_registry_class *class = &registry->classes[i];
        const sj_registry_module *module =
            class->lines != NULL ? &registry->modules[class->module - 1] : NULL;
        if (module != NULL && function >= module->first_function &&
            function - module->first_function < module->function_count) {
            return class;
        }
    }
    return NULL;
}

/* Returns the lines of a function's container or class. `*token`: the function's number in it. */
static sj_source_lines *lines_of(sj_registry *registry, uint32_t function, uint32_t *token)
{
    const sj_registry_container *container = container_of(registry, function);
    if (container != NULL) {
        *token = function - registry->modules[container->module - 1].first_function + 1;
        return container->lines;
    }
    const sj_registry_class *class = class_of(registry, function);
    if (class == NULL) {
        return NULL;
    }
    *token = function - registry->modules[class->module - 1].first_function;
    return class->lines;
}

/* Marks the lines that ran. The words come from another process: a count beyond their end ends the
 * list. */
static void mark_ran_lines(sj_registry *registry, const uint32_t *words, uint32_t count)
{
    for (uint32_t at = 0; at + 2 <= count;) {
        const uint32_t function = words[at];
        const uint32_t offsets = words[at + 1];
        at += 2;
        if (offsets > count - at) {
            return;
        }
        uint32_t token = 0;
        sj_source_lines *lines = lines_of(registry, function, &token);
        for (uint32_t i = 0; lines != NULL && i < offsets; i++) {
            sj_source_lines_enter(lines, token, words[at + i]);
        }
        at += offsets;
    }
}

sj_status sj_registry_add_lines(sj_registry *registry, const uint32_t *words, uint32_t count,
                                bool is_last, uint64_t now_ticks)
{
    sj_status status = SJ_OK;
    pthread_mutex_lock(&registry->mutex);
    mark_ran_lines(registry, words, count);
    for (size_t i = 0; is_last && i < registry->container_count && status == SJ_OK; i++) {
        const sj_registry_container *container = &registry->containers[i];
        if (container->lines != NULL) {
            status = sj_source_lines_report(container->lines, SJ_SOURCE_LINES_ENTERED,
                                            registry->options.writer, container->module, now_ticks);
        }
    }
    for (size_t i = 0; is_last && i < registry->class_count && status == SJ_OK; i++) {
        const sj_registry_class *class = &registry->classes[i];
        if (class->lines != NULL) {
            status = sj_source_lines_report(class->lines, SJ_SOURCE_LINES_ENTERED,
                                            registry->options.writer, class->module, now_ticks);
        }
    }
    pthread_mutex_unlock(&registry->mutex);
    return status;
}

sj_status sj_registry_report_no_lines(sj_registry *registry, uint64_t process, sj_no_lines reason,
                                      uint64_t now_ticks)
{
    char json[256];
    const char *text = reason == SJ_NO_LINES_DEBUGGED
                           ? "the program was started with --debug, which reads symbol files itself"
                       : reason == SJ_NO_LINES_EMBEDDED ? "the program embeds the runtime"
                       : reason == SJ_NO_LINES_ATTACHED
                           ? "the program was running before it was recorded"
                           : "the runtime refused";
    const int bytes = snprintf(json, sizeof(json), "{\"reason\": \"%s\"}", text);
    const sj_report report = {.ticks = now_ticks,
                              .process = process,
                              .monitor = "lines",
                              .kind = "refused",
                              .json = json,
                              .json_bytes = (size_t)bytes};
    return sj_frame_writer_report(registry->options.writer, &report);
}

/* Reasons, indexed by sj_mono_entry. */
static const char *const no_methods_because[] = {
    [SJ_MONO_ENTRY_NONE] = "nothing tells of the methods that it compiles",
    [SJ_MONO_ENTRY_CODE_BUFFER] = "its profiler interface is another one",
    [SJ_MONO_ENTRY_JIT_DONE] = "before version 5.6, it tells of compiled methods "
                               "(mono_profiler_install_jit_end) when they may run already",
    [SJ_MONO_ENTRY_COMPILER] = "before version 5.6, its compiler can be found "
                               "(mono_jit_compile_method), whose methods may run already when it "
                               "returns",
    [SJ_MONO_ENTRY_SLOT] = "only what embedders call to compile can be found "
                           "(mono_compile_method), which most methods do not pass",
};

sj_status sj_registry_report_no_methods(sj_registry *registry, uint64_t process,
                                        const sj_link_no_methods *no_methods, uint64_t now_ticks)
{
    enum { REASONS = sizeof(no_methods_because) / sizeof(no_methods_because[0]) };
    char json[512];
    const size_t length = strnlen(no_methods->missing, sizeof(no_methods->missing));
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)no_methods->missing[i]) && no_methods->missing[i] != '_') {
            return SJ_ECORRUPT;
        }
    }
    if (length == sizeof(no_methods->missing) || no_methods->entry >= REASONS) {
        return SJ_ECORRUPT;
    }
    const int bytes = snprintf(json, sizeof(json), "{\"reason\": \"%s\", \"missing\": \"%s\"}",
                               no_methods_because[no_methods->entry], no_methods->missing);
    const sj_report report = {.ticks = now_ticks,
                              .process = process,
                              .monitor = "mono",
                              .kind = "refused",
                              .json = json,
                              .json_bytes = (size_t)bytes};
    return sj_frame_writer_report(registry->options.writer, &report);
}

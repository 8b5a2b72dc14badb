#include "agent/registry/class_lines.h"

#include "agent/runtimes/jvm/line_table.h"
#include "agent/runtimes/jvm/method_name.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source file in the folder of the class's package; false: it is not named. */
static bool name_source(const sj_class_file *file, char path[2 * SJ_JAVA_NAME_BYTES])
{
    char class_name[SJ_JAVA_NAME_BYTES];
    char source_name[SJ_JAVA_NAME_BYTES];
    const sj_slice source = sj_line_table_source(file);
    if (source.size == 0) {
        return false;
    }
    sj_java_class_name(file->name, class_name); /* with dots */
    sj_java_class_name(source, source_name);
    char *end = strrchr(class_name, '.');
    for (char *at = class_name; end != NULL && at < end; at++) {
        *at = *at == '.' ? '/' : *at;
    }
    const int folder = end != NULL ? (int)(end - class_name) : 0;
    snprintf(path, 2 * SJ_JAVA_NAME_BYTES, "%.*s%s%s", folder, class_name, folder != 0 ? "/" : "",
             source_name);
    return true;
}

static json_t *list_methods(const sj_class_file *file)
{
    json_t *methods = json_array();
    for (uint32_t i = 0; i < file->method_count; i++) {
        const uint32_t line = sj_line_table_first(file, &file->methods[i]);
        if (line != 0) {
            (void)!json_array_append_new(methods, json_pack("[i, i]", (int)i, (int)line));
        }
    }
    return methods;
}

sj_status sj_class_lines_report(const sj_class_file *file, sj_frame_writer *writer, uint32_t module,
                                uint64_t now_ticks)
{
    char path[2 * SJ_JAVA_NAME_BYTES];
    if (!name_source(file, path)) {
        return SJ_OK;
    }
    json_t *methods = list_methods(file);
    json_t *payload = json_array_size(methods) != 0
                          ? json_pack("{s: i, s: s, s: O}", "module", (int)module, "file", path,
                                      "methods", methods)
                          : NULL;
    char *json = payload != NULL ? json_dumps(payload, JSON_COMPACT) : NULL;
    json_decref(payload);
    json_decref(methods);
    if (json == NULL) {
        return SJ_OK; /* no lines, or a name that is no text */
    }
    const sj_report report = {.ticks = now_ticks,
                              .monitor = "first_lines",
                              .kind = "class",
                              .json = json,
                              .json_bytes = strlen(json)};
    const sj_status status = report.json_bytes <= SJ_REPORT_MAX_BYTES
                                 ? sj_frame_writer_report(writer, &report)
                                 : SJ_OK;
    free(json);
    return status == SJ_EFULL ? SJ_OK : status; /* counted there */
}

#include "agent/registry/class_lines.h"

#include "agent/runtimes/jvm/line_table.h"
#include "agent/runtimes/jvm/method_name.h"
#include "agent/session/json_report.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Writes the path of the source file: the package's folder and the file name. Returns false if the
 * class file does not name its source. */
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
    json_decref(methods);
    if (payload == NULL) {
        return SJ_OK; /* the class has no lines, or a name is not valid text */
    }
    const sj_report report = {.ticks = now_ticks, .monitor = "first_lines", .kind = "class"};
    const sj_status status = sj_json_report_send(writer, report, payload);
    /* the writer counts a report for which the spool has no space */
    return status == SJ_EFULL || status == SJ_ELIMIT ? SJ_OK : status;
}

typedef struct method_lines {
    sj_source_lines *lines;
    uint32_t method;
    const char *path;
    sj_status status;
} method_lines;

static void add_line(void *context, uint32_t place, uint32_t line)
{
    method_lines *added_to = context;
    const sj_container_line added = {
        .token = added_to->method, .offset = place, .line = line, .file = added_to->path};
    if (added_to->status == SJ_OK && line != 0) {
        added_to->status = sj_source_lines_add(added_to->lines, &added);
    }
}

sj_status sj_class_lines_read(const sj_class_file *file, sj_source_lines **lines)
{
    char path[2 * SJ_JAVA_NAME_BYTES];
    method_lines added_to = {.path = path, .status = SJ_OK};
    *lines = NULL;
    if (!name_source(file, path)) {
        return SJ_OK;
    }
    SJ_TRY(sj_source_lines_new(&added_to.lines));
    for (added_to.method = 0; added_to.method < file->method_count; added_to.method++) {
        sj_line_table_visit(file, &file->methods[added_to.method], &added_to, add_line);
    }
    if (added_to.status == SJ_ENOMEM || sj_source_lines_is_empty(added_to.lines)) {
        sj_source_lines_free(added_to.lines);
        return added_to.status == SJ_ENOMEM ? SJ_ENOMEM : SJ_OK;
    }
    sj_source_lines_sort(added_to.lines);
    *lines = added_to.lines;
    return SJ_OK;
}

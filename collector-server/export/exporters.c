#include "collector-server/export/exporter.h"

#include <stddef.h>
#include <string.h>

const sj_exporter *const sj_exporters[] = {
    &sj_exporter_function_txt,
    &sj_exporter_folded,
    &sj_exporter_chrome_json,
    &sj_exporter_report_txt,
    &sj_exporter_arrow,
    &sj_exporter_parquet,
    &sj_exporter_perfetto,
    &sj_exporter_speedscope,
    &sj_exporter_pprof,
    &sj_exporter_callgrind,
    &sj_exporter_lcov,
    &sj_exporter_cobertura,
    &sj_exporter_otlp,
    &sj_exporter_firefox,
    &sj_exporter_ctf,
    &sj_exporter_otlp_proto,
    NULL,
};

const sj_exporter *sj_exporter_find(const char *name)
{
    for (size_t i = 0; sj_exporters[i] != NULL; ++i) {
        if (strcmp(sj_exporters[i]->name, name) == 0) {
            return sj_exporters[i];
        }
    }
    return NULL;
}

const sj_exporter *sj_exporter_find_file(const char *name)
{
    const sj_exporter *exporter = sj_exporter_find(name);
    return exporter != NULL && exporter->write != NULL ? exporter : NULL;
}

size_t sj_exporter_ending(const sj_exporter *exporter, const char *file)
{
    const size_t file_length = strlen(file);
    const char *ending = exporter->endings != NULL ? exporter->endings : "";
    while (*ending != '\0') {
        const size_t length = strcspn(ending, " ");
        if (length < file_length && strncmp(file + file_length - length, ending, length) == 0) {
            return length;
        }
        ending += length + (ending[length] == ' ' ? 1 : 0);
    }
    return 0;
}

const sj_exporter *sj_exporter_of_file(const char *file)
{
    const sj_exporter *best = NULL;
    size_t best_length = 0;
    for (size_t i = 0; sj_exporters[i] != NULL; ++i) {
        const size_t length = sj_exporter_ending(sj_exporters[i], file);
        if (length > best_length) {
            best = sj_exporters[i];
            best_length = length;
        }
    }
    return best;
}

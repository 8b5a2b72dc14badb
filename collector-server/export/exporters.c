#include "collector-server/export/exporter.h"

#include <string.h>

const sj_exporter *const sj_exporters[] = {
    &sj_exporter_function_txt,
    &sj_exporter_folded,
    &sj_exporter_chrome_json,
    &sj_exporter_report_txt,
    &sj_exporter_arrow,
    &sj_exporter_parquet,
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

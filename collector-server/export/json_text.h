/* Writes JSON text to a stream. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_JSON_TEXT_H
#define SJ_COLLECTOR_SERVER_EXPORT_JSON_TEXT_H

#include <stdio.h>

/* Writes `text` as a quoted JSON string. Replaces bytes that are not UTF-8 by U+FFFD. */
void sj_json_text(FILE *file, const char *text);

#endif

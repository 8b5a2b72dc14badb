/* JSON text to a stream. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_JSON_TEXT_H
#define SJ_COLLECTOR_SERVER_EXPORT_JSON_TEXT_H

#include <stdio.h>

/* sj_json_text writes `text` as a quoted JSON string; bytes that are no UTF-8 become U+FFFD. */
void sj_json_text(FILE *file, const char *text);

#endif

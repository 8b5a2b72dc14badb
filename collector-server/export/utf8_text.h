/* Texts that may hold any bytes, for formats that want UTF-8. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_UTF8_TEXT_H
#define SJ_COLLECTOR_SERVER_EXPORT_UTF8_TEXT_H

#include <stddef.h>

/* sj_utf8_sequence returns the length of the UTF-8 sequence at `text`, 0 when there is none. */
size_t sj_utf8_sequence(const char *text);

/* sj_utf8_clean copies `text` with U+FFFD for each byte that is no UTF-8, without a NUL, and
 * returns its length; with `out` NULL it only measures. */
size_t sj_utf8_clean(const char *text, char *out);

#endif

/* Texts that may hold any bytes, for formats that want UTF-8. Any thread; nothing blocks. */
#ifndef SJ_PROTO_BASE_UTF8_TEXT_H
#define SJ_PROTO_BASE_UTF8_TEXT_H

#include <stddef.h>

/* sj_utf8_sequence returns the length in bytes of the UTF-8 sequence at `text`, which ends with a
 * NUL; 0 when there is none. */
size_t sj_utf8_sequence(const char *text);

/* sj_utf8_clean copies `text` with U+FFFD for each byte that is not UTF-8, without a NUL, and
 * returns its length; with `out` NULL it only measures. */
size_t sj_utf8_clean(const char *text, char *out);

/* sj_utf8_escape copies `size` bytes of `text` to `out`, with the four characters \xNN for each
 * byte that is not UTF-8, without a NUL, and returns the length in bytes. That is `size` if and
 * only if all is UTF-8. With `out` NULL it only measures. */
size_t sj_utf8_escape(const char *text, size_t size, char *out);

#endif

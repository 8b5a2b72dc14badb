/* Makes valid UTF-8 of texts that may hold any bytes. Thread-safe. Does not block. */
#ifndef SJ_PROTO_BASE_UTF8_TEXT_H
#define SJ_PROTO_BASE_UTF8_TEXT_H

#include <stddef.h>

/* Returns the length in bytes of the UTF-8 sequence at `text`, a string that ends with a NUL.
 * Returns 0 if the bytes are not UTF-8. */
size_t sj_utf8_sequence(const char *text);

/* Copies `text` to `out` and replaces each byte that is not UTF-8 by U+FFFD. Returns the length in
 * bytes; `out` gets no NUL. If `out` is NULL, only measures. */
size_t sj_utf8_clean(const char *text, char *out);

/* Copies `size` bytes of `text` to `out` and writes each byte that is not UTF-8 as four characters,
 * \xNN. Returns the length in bytes; `out` gets no NUL. The length is `size` exactly if all bytes
 * are UTF-8. If `out` is NULL, only measures. */
size_t sj_utf8_escape(const char *text, size_t size, char *out);

#endif

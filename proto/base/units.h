/* Durations and sizes with units, and counted nouns. Policies, options and environment variables
 * use the same two parsers. Thread-safe. */
#ifndef SJ_PROTO_BASE_UNITS_H
#define SJ_PROTO_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Parses "250us", "16ms", "1.5s", "5m", "2h", "30d" (also ns). A number without a unit is seconds.
 * `*ns` is rounded to the nearest nanosecond. Returns false if the text is not a duration, is
 * negative or exceeds 1e18 ns (30 years). */
bool sj_duration_parse(const char *text, uint64_t *ns);

/* Parses "4096", "64k", "512M", "1G", "2T" (also "64K"): whole bytes, units of 1024. Returns false
 * if the text is not a size or exceeds 2^62 bytes. */
bool sj_size_parse(const char *text, uint64_t *bytes);

enum { SJ_COUNTED_BYTES = 96 };

/* Writes a count with its noun into `text` and returns `text`: "1 thread", "2 threads", "0
 * processes". `noun` is the singular. All messages use it. The dashboard has the same rules
 * (counted in format.ts). */
const char *sj_counted_text(uint64_t count, const char *noun, char text[SJ_COUNTED_BYTES]);

/* Returns what sj_counted_text returns. The text lives until the end of the enclosing block. */
#define SJ_COUNTED(count, noun)                                                                    \
    sj_counted_text((uint64_t)(count), (noun), (char[SJ_COUNTED_BYTES]){0})

#endif

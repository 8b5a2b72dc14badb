/* Amounts as people write and read them: durations and sizes with units, and numbers of things. The
 * only parsers of the first two, for policies, options and environment variables, so that a text
 * means the same everywhere. Any thread. */
#ifndef SJ_PROTO_BASE_UNITS_H
#define SJ_PROTO_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* sj_duration_parse reads "250us", "16ms", "1.5s", "5m", "2h", "30d" (also ns); a number without a
 * unit is seconds. `*ns` is rounded to the nearest. False when it is none, is negative or has more
 * than 1e18 ns (30 years). */
bool sj_duration_parse(const char *text, uint64_t *ns);

/* sj_size_parse reads "4096", "64k", "512M", "1G", "2T": whole bytes, units of 1024, k also as K.
 * False when it is none or has more than 2^62 bytes. */
bool sj_size_parse(const char *text, uint64_t *bytes);

enum { SJ_COUNTED_BYTES = 96 };

/* sj_counted_text writes a number of things into `text` and returns it: "1 thread", "2 threads",
 * "0 processes". `noun` is the singular. All messages use it, and the dashboard has the same rules
 * (counted in format.ts). */
const char *sj_counted_text(uint64_t count, const char *noun, char text[SJ_COUNTED_BYTES]);

/* SJ_COUNTED is sj_counted_text with a text that lasts as long as the enclosing block. */
#define SJ_COUNTED(count, noun)                                                                    \
    sj_counted_text((uint64_t)(count), (noun), (char[SJ_COUNTED_BYTES]){0})

#endif

/* What a comparison lacks, in words. */
#ifndef SJ_COLLECTOR_SERVER_CLI_NEEDED_SESSIONS_H
#define SJ_COLLECTOR_SERVER_CLI_NEEDED_SESSIONS_H

#include <stddef.h>

/* What is said where most of two builds' functions have no names and could not be matched. */
#define SJ_STRIPPED_TEXT                                                                           \
    "cannot be compared: stripped; add symbols (man sojourn-symbols), or compare builds that "     \
    "have "                                                                                        \
    "them"

enum { SJ_NEEDED_SESSIONS_BYTES = 160 };

/* sj_needed_sessions_advice returns how many sessions a side to record, when at least `needed` are
 * necessary: ten decide most changes. */
size_t sj_needed_sessions_advice(size_t needed);

/* sj_needed_sessions_text writes into `text` that `few` sessions a side cannot decide a number of
 * functions, and what to do; returns `text`. `needed` is as in sj_compare_row. */
const char *sj_needed_sessions_text(size_t few, size_t needed, size_t functions,
                                    char text[SJ_NEEDED_SESSIONS_BYTES]);

#endif

/* Messages about comparisons that cannot give a verdict. */
#ifndef SJ_COLLECTOR_SERVER_CLI_NEEDED_SESSIONS_H
#define SJ_COLLECTOR_SERVER_CLI_NEEDED_SESSIONS_H

#include <stddef.h>

/* Printed if most functions of two builds have no names and could not be matched. */
#define SJ_STRIPPED_TEXT                                                                           \
    "cannot be compared: stripped; add symbols (man sojourn-symbols), or compare builds that "     \
    "have "                                                                                        \
    "them"

enum { SJ_NEEDED_SESSIONS_BYTES = 160 };

/* Returns how many sessions per side to recommend: `needed`, but at least ten, because ten sessions
 * suffice to decide most changes. */
size_t sj_needed_sessions_advice(size_t needed);

/* Writes to `text` that `few` sessions per side cannot decide whether `functions` functions
 * changed. Adds how many sessions to record or, if `few` is at least that number, the advice to
 * use a quieter machine. Returns `text`. `needed` is the largest sj_compare_row.needed_sessions of
 * the functions. */
const char *sj_needed_sessions_text(size_t few, size_t needed, size_t functions,
                                    char text[SJ_NEEDED_SESSIONS_BYTES]);

#endif

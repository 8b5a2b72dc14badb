/* Warns about comparisons of sessions with different clocks. The time of a call that was counted
 * without a clock does not contain the cost of reading a clock. So such a call looks shorter than a
 * timed call. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLOCK_MIX_H
#define SJ_COLLECTOR_SERVER_CLI_CLOCK_MIX_H

#include "collector-server/cli/command.h"
#include "collector-server/query/compare.h"

/* Prints a warning on standard error if only some sessions of the two sides have calls that were
 * counted without a clock. The warning advises longer runs if all sessions used --clock adaptive,
 * else sessions recorded with the same clock. Prints nothing about a set of sessions that cannot be
 * read. Blocks on the databases. */
void sj_clock_mix_warn(const sj_command *command, const sj_compare_side sides[2]);

#endif

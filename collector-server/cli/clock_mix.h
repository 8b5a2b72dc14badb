/* Comparisons of sessions with different clocks. The time of a call that was counted without a
 * clock does not contain the cost of reading one. So it looks shorter than a timed call. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLOCK_MIX_H
#define SJ_COLLECTOR_SERVER_CLI_CLOCK_MIX_H

#include "collector-server/cli/command.h"
#include "collector-server/query/compare.h"

/* Prints a warning on standard error if only some sessions of the two sides have calls that were
 * counted without a clock. The warning says whether the other sessions used another clock, or used
 * --clock adaptive without such calls. Sets that cannot be read cause no warning. Blocks on the
 * databases. */
void sj_clock_mix_warn(const sj_command *command, const sj_compare_side sides[2]);

#endif

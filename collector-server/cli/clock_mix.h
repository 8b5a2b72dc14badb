/* Comparisons of sessions with different clocks: calls that were counted do not contain what
 * reading a clock costs, so that each looks shorter than a timed one. */
#ifndef SJ_COLLECTOR_SERVER_CLI_CLOCK_MIX_H
#define SJ_COLLECTOR_SERVER_CLI_CLOCK_MIX_H

#include "collector-server/cli/command.h"
#include "collector-server/query/compare.h"

/* sj_clock_mix_warn warns on standard error when some sessions of the sides, but not all, have
 * calls that were counted without a clock: that the others were recorded with another clock, or had
 * none to count. Says nothing of sets that cannot be read. Blocks on the databases. */
void sj_clock_mix_warn(const sj_command *command, const sj_compare_side sides[2]);

#endif

/* Assembler check: the equalities that assembler.h promises, over everything a sink took. */
#ifndef SJ_TESTS_SUPPORT_ASSEMBLER_CHECK_H
#define SJ_TESTS_SUPPORT_ASSEMBLER_CHECK_H

#include "tests/support/call_trace.h"

/* assembler_check returns NULL, or which equality does not hold. The store must have seen every
 * block since the assembler was made. */
const char *assembler_check(const sj_assembler_counters *counters, const block_store *store);

#endif

/* Checks the equalities that assembler.h promises, over all blocks that a sink has received. */
#ifndef SJ_TESTS_SUPPORT_ASSEMBLER_CHECK_H
#define SJ_TESTS_SUPPORT_ASSEMBLER_CHECK_H

#include "tests/support/call_trace.h"

/* Returns NULL if all equalities hold, otherwise a text that names the first one that does not.
 * `store` must have received every block since the assembler was created. */
const char *assembler_check(const sj_assembler_counters *counters, const block_store *store);

#endif

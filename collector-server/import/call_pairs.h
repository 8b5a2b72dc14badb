/* Pairs of caller and callee, for formats that have no call paths. Estimates a tree of call paths.
 *
 * A function costs the same below each of its callers, in proportion to what they paid for it. So
 * the tree has the own costs of the functions, and the calls and costs of the pairs, as the file
 * has them. Calls that are too small for the tree are at paths of their function that are larger;
 * what none can hold has a root. A cost without a caller has a root, which counts as one call. Not
 * thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_CALL_PAIRS_H
#define SJ_COLLECTOR_SERVER_IMPORT_CALL_PAIRS_H

#include "collector-server/import/import_log.h"

typedef struct sj_call_pair {
    uint32_t caller, callee; /* functions of the log */
    uint64_t calls;
    uint64_t cost; /* what the callee cost in these calls, with all that it calls */
    uint64_t given_calls, given_cost; /* what the tree has */
} sj_call_pair;

/* A zeroed value is empty. */
typedef struct sj_call_pairs {
    sj_call_pair *pairs;
    size_t count, capacity;
    sj_hash_map by_functions;
    uint64_t *own; /* own cost by function less 1 */
    size_t own_capacity;
} sj_call_pairs;

/* Frees what the pairs own. */
void sj_call_pairs_deinit(sj_call_pairs *pairs);

/* Adds own cost to a function. Returns SJ_ELIMIT if the sum gets too large, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_pairs_add_own(sj_call_pairs *pairs, uint32_t function,
                                              uint64_t cost);

/* Adds calls of a function by another. Returns SJ_ELIMIT if a sum gets too large, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_pairs_add_calls(sj_call_pairs *pairs, uint32_t caller,
                                                uint32_t callee, uint64_t calls, uint64_t cost);

/* Adds the tree to the log, as samples. Call it once. Returns SJ_ELIMIT if a sum gets too large, or
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_call_pairs_store(sj_call_pairs *pairs, sj_import_log *log);

#endif

/* The longest calls of each function of a session, found while blocks are replayed.
 *
 * A function keeps its SJ_SLOW_CALLS_A_FUNCTION longest calls; of equal ones those that came first.
 * Calls that are not longer than a floor are never kept. When a session had more than
 * SJ_SLOW_CALLS_A_SESSION, the shorter half of all goes and the floor rises to what is left, so
 * that memory is bounded and a function's longest call is the last of its calls to go.
 * One thread at a time. */
#ifndef SJ_PROTO_CALLGRAPH_SLOW_CALLS_H
#define SJ_PROTO_CALLGRAPH_SLOW_CALLS_H

#include "proto/base/hash_map.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SJ_SLOW_CALLS_A_FUNCTION = 5, SJ_SLOW_CALLS_A_SESSION = 4096 };

typedef struct sj_slow_call {
    uint64_t call_index;
    uint64_t start_ticks;
    uint64_t duration_ticks;
    uint64_t self_ticks;
    uint32_t stream; /* number in the session */
    uint32_t node;   /* its call path */
    uint32_t ending; /* sj_ending */
    uint32_t flags;  /* sj_call_flag */
} sj_slow_call;

typedef struct sj_slow_list {
    uint32_t function; /* session-wide id */
    uint32_t count;
    bool dirty;                                   /* changed since sj_slow_calls_clean */
    sj_slow_call calls[SJ_SLOW_CALLS_A_FUNCTION]; /* longest first */
} sj_slow_list;

typedef struct sj_slow_calls {
    uint64_t floor_ticks;
    sj_slow_list *lists;
    uint32_t *dirty;         /* numbers of lists */
    sj_hash_map by_function; /* number of its list; sub is 1 */
    size_t list_capacity, dirty_capacity;
    uint32_t list_count, dirty_count;
    uint32_t call_count; /* of all lists */
} sj_slow_calls;

void sj_slow_calls_deinit(sj_slow_calls *slow); /* safe on a zeroed one */

/* sj_slow_calls_threshold returns the ticks that a call of the function must exceed to be kept. */
uint64_t sj_slow_calls_threshold(const sj_slow_calls *slow, uint32_t function);

/* sj_slow_calls_add keeps a call if it is long enough. SJ_ENOMEM leaves all as it was. */
SJ_MUST_CHECK sj_status sj_slow_calls_add(sj_slow_calls *slow, uint32_t function,
                                          const sj_slow_call *call);

/* sj_slow_calls_move gives the nodes of all calls their new numbers; those not below `count` are
 * none (0). All lists are dirty. */
void sj_slow_calls_move(sj_slow_calls *slow, const uint32_t *moved, uint32_t count);

/* sj_slow_calls_clean marks all lists as unchanged. */
void sj_slow_calls_clean(sj_slow_calls *slow);

#endif

/* The longest calls of each function of a session, found while blocks are replayed.
 *
 * A function keeps its SJ_SLOW_CALLS_A_FUNCTION longest calls; of equally long calls, those that
 * were added first. Only calls longer than a floor are kept. If a session would keep more than
 * SJ_SLOW_CALLS_A_SESSION calls, the shorter half is dropped and the floor rises to the longest
 * dropped duration. So memory is bounded, and a function's longest call is dropped last. Not
 * thread-safe. */
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
    uint32_t stream; /* number of the stream in the session */
    uint32_t node;   /* node of the call path */
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
    uint32_t *dirty;         /* indexes of lists */
    sj_hash_map by_function; /* by function: index of its list; sub is 1 */
    size_t list_capacity, dirty_capacity;
    uint32_t list_count, dirty_count;
    uint32_t call_count; /* over all lists */
} sj_slow_calls;

void sj_slow_calls_deinit(sj_slow_calls *slow); /* A zeroed object is allowed */

/* Returns the duration in ticks that a call of the function must exceed to be kept. */
uint64_t sj_slow_calls_threshold(const sj_slow_calls *slow, uint32_t function);

/* Keeps a call if it is long enough. Errors: SJ_ENOMEM leaves all lists unchanged. */
SJ_MUST_CHECK sj_status sj_slow_calls_add(sj_slow_calls *slow, uint32_t function,
                                          const sj_slow_call *call);

/* Replaces the node numbers of all calls by moved[node], or by 0 from `count` on. Marks all lists
 * dirty. */
void sj_slow_calls_move(sj_slow_calls *slow, const uint32_t *moved, uint32_t count);

/* Marks all lists as unchanged. */
void sj_slow_calls_clean(sj_slow_calls *slow);

#endif

/* Profiles as bytes: the payload of PROFILE frames, before zstd. Sums per call path of one
 * interval, and the calls that ended as open in it; paths stand after their parents.
 *
 *   varint version (1 without open calls, else 2) | varint count | per node: varint parent (0:
 * root, else 1 + place of an earlier node), function, calls, total, self, min, max (ticks; 0 when
 * calls is 0), unwound, untrusted, bytes of the histogram | histogram (histogram.h) version 2 goes
 * on: varint count | per open call: varint stream, depth, function, flags, call index, start
 * (ticks)
 */
#ifndef SJ_PROTO_CALLGRAPH_PROFILE_H
#define SJ_PROTO_CALLGRAPH_PROFILE_H

#include "proto/callgraph/callgraph.h"

enum { SJ_PROFILE_MAX_NODES = 1 << 20, SJ_PROFILE_MAX_OPEN_CALLS = 1 << 20 };

/* A call that was open when its stream ended; the sums count it. */
typedef struct sj_profile_open_call {
    uint32_t stream;
    uint32_t depth;    /* calls above it in its stream; 0 for the outermost */
    uint32_t function; /* session-wide id */
    uint32_t flags;    /* sj_call_flag */
    uint64_t call_index;
    uint64_t start_ticks;
} sj_profile_open_call;

typedef struct sj_profile {
    sj_path_node *nodes; /* a node's parent is 1 + its place; 0: root */
    uint32_t count;
    sj_profile_open_call *open_calls; /* by rising stream and depth */
    uint32_t open_count;
} sj_profile;

/* sj_profile_encode writes all nodes of a graph but the root, and `open_count` open calls.
 * `*bytes` is allocated. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_profile_encode(const sj_callgraph *graph,
                                          const sj_profile_open_call *open_calls, size_t open_count,
                                          uint8_t **bytes, size_t *size);

/* sj_profile_decode reads what sj_profile_encode wrote, from anybody; open calls are held to the
 * ranges of blocks (no stream 0, call indices of SJ_CALL_INDEX_BITS, no time above INT64_MAX).
 * Release `*profile` with
 * sj_profile_deinit, after success only. SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_profile_decode(sj_slice bytes, sj_profile *profile);
void sj_profile_deinit(sj_profile *profile); /* safe on a zeroed one */

#endif

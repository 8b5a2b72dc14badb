/* The payload of PROFILE frames, before zstd: sums per call path over one interval, and calls that
 * were still open when their stream ended. Parents come before children.
 *
 *   varint version (1 without open calls, else 2)
 *   varint count
 *   per node: varint parent (0: root, else 1 + index of an earlier node), function, calls, total,
 *       self, min, max (ticks; 0 if calls is 0), unwound, untrusted, bytes of the histogram;
 *       then the histogram (histogram.h)
 *   version 2 only: varint count
 *   per open call: varint stream, depth, function, flags, call index, start (ticks) */
#ifndef SJ_PROTO_CALLGRAPH_PROFILE_H
#define SJ_PROTO_CALLGRAPH_PROFILE_H

#include "proto/callgraph/callgraph.h"

enum { SJ_PROFILE_MAX_NODES = 1 << 20, SJ_PROFILE_MAX_OPEN_CALLS = 1 << 20 };

/* A call that was open when its stream ended. The sums of the nodes include it. */
typedef struct sj_profile_open_call {
    uint32_t stream;
    uint32_t depth;    /* number of calls around it in its stream */
    uint32_t function; /* session-wide id */
    uint32_t flags;    /* sj_call_flag */
    uint64_t call_index;
    uint64_t start_ticks;
} sj_profile_open_call;

typedef struct sj_profile {
    sj_path_node *nodes; /* parent: 1 + index; 0: root */
    uint32_t count;
    sj_profile_open_call *open_calls; /* by rising stream and depth */
    uint32_t open_count;
} sj_profile;

/* Encodes all nodes of a graph except the root, and `open_count` open calls. The caller frees
 * `*bytes`. Errors: SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_profile_encode(const sj_callgraph *graph,
                                          const sj_profile_open_call *open_calls, size_t open_count,
                                          uint8_t **bytes, size_t *size);

/* Decodes and checks bytes that may come from an attacker. An open call needs a stream, a call
 * index of at most SJ_CALL_INDEX_BITS bits and a time of at most INT64_MAX, as in blocks. After
 * success, release `*profile` with sj_profile_deinit. Errors: SJ_ECORRUPT, SJ_EVERSION, SJ_ELIMIT,
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_profile_decode(sj_slice bytes, sj_profile *profile);
void sj_profile_deinit(sj_profile *profile); /* A zeroed profile is allowed */

#endif

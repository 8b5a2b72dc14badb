/* Profiles as bytes: the payload of PROFILE frames, before zstd. Sums per call path of one
 * interval; paths stand after their parents.
 *
 *   varint version (1) | varint count | per node: varint parent (0: root, else 1 + place of an
 *   earlier node), function, calls, total, self, min, max (ticks; 0 when calls is 0), unwound,
 *   untrusted, bytes of the histogram | histogram (histogram.h)
 */
#ifndef SJ_PROTO_CALLGRAPH_PROFILE_H
#define SJ_PROTO_CALLGRAPH_PROFILE_H

#include "proto/callgraph/callgraph.h"

enum { SJ_PROFILE_MAX_NODES = 1 << 20 };

/* sj_profile_encode writes all nodes of a graph but the root. `*bytes` is allocated. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_profile_encode(const sj_callgraph *graph, uint8_t **bytes, size_t *size);

/* sj_profile_decode reads what sj_profile_encode wrote, from anybody. SJ_ECORRUPT, SJ_EVERSION,
 * SJ_ELIMIT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_profile_decode(sj_slice bytes, sj_path_node **nodes, uint32_t *count);
void sj_profile_free(sj_path_node *nodes, uint32_t count);

#endif

/* Random streams for the tests of the block codec. */
#ifndef SJ_TESTS_PROTO_BLOCK_STREAMS_H
#define SJ_TESTS_PROTO_BLOCK_STREAMS_H

#include "proto/block/block.h"

typedef struct stream_shape {
    uint64_t seed;
    size_t events;
    uint32_t open_depth;
    uint32_t functions;  /* ids 1..functions, spread */
    uint32_t repetition; /* percentage: how often the stream repeats an earlier part of itself */
    uint32_t step;       /* all gaps are multiples of this number of ticks */
    uint64_t longest_gap;
    size_t endings; /* greatest number of endings */
    size_t gaps;
    size_t values;
    uint32_t tail_calls; /* percentage of ENTERs */
    uint32_t untimed;    /* percentage of ENTERs of every third function */
} stream_shape;

/* stream_make fills `input` and allocates its arrays. stream_free frees them. */
void stream_make(const stream_shape *shape, sj_block_input *input);
void stream_free(sj_block_input *input);

/* Fails the running test unless `block` holds exactly what `input` holds, in the columns of
 * `want`. */
void stream_check(const sj_block_input *input, const sj_block *block, unsigned want);

#endif

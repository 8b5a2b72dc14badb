/* Histograms of functions: each the sum over call paths, kept while paths change, because making
 * one anew reads all paths of its function (hundreds of thousands in deeply recursive programs). */
#ifndef SJ_PROTO_CALLGRAPH_FUNCTION_HISTOGRAMS_H
#define SJ_PROTO_CALLGRAPH_FUNCTION_HISTOGRAMS_H

#include "proto/base/hash_map.h"
#include "proto/callgraph/path_histogram.h"

typedef struct sj_function_histograms {
    sj_histogram *histograms;
    sj_hash_map by_function; /* number of its histogram */
    size_t capacity;
    uint32_t count;
} sj_function_histograms;

void sj_function_histograms_deinit(sj_function_histograms *all); /* safe on a zeroed one */

/* sj_function_histograms_add adds `part` to the histogram of a function (not 0). SJ_ENOMEM leaves
 * all unchanged. */
SJ_MUST_CHECK sj_status sj_function_histograms_add(sj_function_histograms *all, uint32_t function,
                                                   const sj_path_histogram *part);

/* sj_function_histograms_subtract takes away what was added. */
void sj_function_histograms_subtract(sj_function_histograms *all, uint32_t function,
                                     const sj_path_histogram *part);

/* sj_function_histograms_find returns NULL for a function to which nothing was added; what it
 * returns lasts until the next add. */
const sj_histogram *sj_function_histograms_find(const sj_function_histograms *all,
                                                uint32_t function);

#endif

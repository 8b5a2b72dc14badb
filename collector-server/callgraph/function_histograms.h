/* Histograms of functions: each the sum over call paths, kept while paths change, because making
 * one anew reads all paths of its function (hundreds of thousands in deeply recursive programs). */
#ifndef SJ_COLLECTOR_CALLGRAPH_FUNCTION_HISTOGRAMS_H
#define SJ_COLLECTOR_CALLGRAPH_FUNCTION_HISTOGRAMS_H

#include "collector-server/callgraph/histogram.h"

typedef struct sj_function_histogram {
    uint32_t function; /* 0: a free place */
    sj_histogram histogram;
} sj_function_histogram;

typedef struct sj_function_histograms {
    sj_function_histogram *places; /* open addressing */
    uint32_t capacity;             /* a power of two, or 0 */
    uint32_t count;
} sj_function_histograms;

void sj_function_histograms_deinit(sj_function_histograms *all); /* safe on a zeroed one */

/* sj_function_histograms_add adds `part` to the histogram of a function (not 0). SJ_ENOMEM leaves
 * all as it was. */
SJ_MUST_CHECK sj_status sj_function_histograms_add(sj_function_histograms *all, uint32_t function,
                                                   const sj_histogram *part);

/* sj_function_histograms_subtract takes away what was added. */
void sj_function_histograms_subtract(sj_function_histograms *all, uint32_t function,
                                     const sj_histogram *part);

/* sj_function_histograms_find returns NULL for a function to which nothing was added; what it
 * returns lasts until the next add. */
const sj_histogram *sj_function_histograms_find(const sj_function_histograms *all,
                                                uint32_t function);

#endif

/* Histograms of functions: each is the sum over the function's call paths. They are updated while
 * paths change, because rebuilding one reads all paths of its function (hundreds of thousands in
 * deeply recursive programs). Not thread-safe. */
#ifndef SJ_PROTO_CALLGRAPH_FUNCTION_HISTOGRAMS_H
#define SJ_PROTO_CALLGRAPH_FUNCTION_HISTOGRAMS_H

#include "proto/base/hash_map.h"
#include "proto/callgraph/path_histogram.h"

typedef struct sj_function_histograms {
    sj_histogram *histograms;
    sj_hash_map by_function; /* by function: index of its histogram */
    size_t capacity;
    uint32_t count;
} sj_function_histograms;

void sj_function_histograms_deinit(sj_function_histograms *all); /* A zeroed object is allowed */

/* Adds `part` to the histogram of a function (not 0). Errors: SJ_ENOMEM leaves all histograms
 * unchanged. */
SJ_MUST_CHECK sj_status sj_function_histograms_add(sj_function_histograms *all, uint32_t function,
                                                   const sj_path_histogram *part);

/* Subtracts `part`, which was added before. */
void sj_function_histograms_subtract(sj_function_histograms *all, uint32_t function,
                                     const sj_path_histogram *part);

/* Returns the histogram of a function, or NULL if nothing was added to it. Borrowed until the next
 * add. */
const sj_histogram *sj_function_histograms_find(const sj_function_histograms *all,
                                                uint32_t function);

#endif

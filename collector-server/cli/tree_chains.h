/* The call paths that `sojourn tree` shows. Chains of paths that each have one callee are
 * folded. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TREE_CHAINS_H
#define SJ_COLLECTOR_SERVER_CLI_TREE_CHAINS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_tree_path {
    int64_t path_id;
    int64_t depth; /* in the call tree; 0: a root */
    int64_t level; /* of indentation: the depth without folded paths */
    int64_t total_ns, self_ns;
    int64_t calls, open_calls;
    bool is_estimate;      /* total_ns is an estimate */
    bool is_self_estimate; /* self_ns is an estimate, perhaps because callees are estimated */
    bool is_divided;       /* working_ns and waiting_ns are known */
    int64_t working_ns, waiting_ns;
    bool has_cpu, has_memory; /* cpu_ns and cpu_self_ns (the bytes) are known */
    int64_t cpu_ns, cpu_self_ns;
    int64_t allocated_bytes, net_bytes;
    double share; /* share of all recorded time, 0 to 1 */
    char *name;   /* owned by the list */
    /* the module's file name if the caller is in another module, else NULL; owned by the list */
    char *module;
    size_t parent;  /* index in the list; a root has its own index */
    size_t callees; /* number of callees in the list */
    size_t folded;  /* at the first path of a folded chain: number of its paths; else 0 */
} sj_tree_path;

/* Paths in depth-first order. Zeroed: empty. Not thread-safe. */
typedef struct sj_tree_paths {
    sj_tree_path *paths;
    size_t count, capacity;
} sj_tree_paths;

/* Appends a copy of `path` with copies of its name (NULL: unknown) and module. Paths must come in
 * depth-first order. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tree_paths_add(sj_tree_paths *paths, const sj_tree_path *path);

/* Folds each chain of two or more paths that are only callees and have an only callee. Each path of
 * a chain has a self time of less than `least_share` of all time. A folded chain is one level of
 * indentation. */
void sj_tree_paths_fold(sj_tree_paths *paths, double least_share);

void sj_tree_paths_deinit(sj_tree_paths *paths); /* safe on a zeroed list */

#endif

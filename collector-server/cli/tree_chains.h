/* The call paths that `sojourn tree` shows. Chains of paths that each have one callee are folded:
 * they are shown at one level of indentation. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TREE_CHAINS_H
#define SJ_COLLECTOR_SERVER_CLI_TREE_CHAINS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_tree_path {
    int64_t path_id;
    int64_t depth; /* depth in the call tree; 0: a root */
    int64_t level; /* level of indentation; all paths of a folded chain have the same */
    int64_t total_ns, self_ns;
    int64_t calls, open_calls;
    bool is_estimate;      /* total_ns is an estimate */
    bool is_self_estimate; /* self_ns is an estimate, perhaps because callees are estimated */
    bool is_divided;       /* working_ns and waiting_ns, parts of total_ns, are known */
    int64_t working_ns, waiting_ns;
    /* has_cpu: cpu_ns and cpu_self_ns are known. has_memory: the numbers of bytes are known. */
    bool has_cpu, has_memory;
    int64_t cpu_ns, cpu_self_ns;
    int64_t allocated_bytes, net_bytes;
    double share; /* share of all recorded time, 0 to 1 */
    char *name;   /* owned by the list */
    /* the module's file name if the caller is in another module, else NULL; owned by the list */
    char *module;
    size_t parent;  /* index in the list; a root has its own index */
    size_t callees; /* number of callees in the list */
    size_t folded;  /* at the first path of a folded chain: number of paths of the chain; else 0 */
} sj_tree_path;

/* A list of paths in depth-first order. A zeroed list is empty. Not thread-safe. */
typedef struct sj_tree_paths {
    sj_tree_path *paths;
    size_t count, capacity;
} sj_tree_paths;

/* Appends a copy of `path` with copies of its name (NULL: unknown) and module. Paths must come in
 * depth-first order. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tree_paths_add(sj_tree_paths *paths, const sj_tree_path *path);

/* Sets `level` and `folded` of all paths. A chain is two or more paths, each the callee of the one
 * before. Each path of a chain is the only callee of its caller, and has only one callee itself.
 * Its self time is less than `least_share` of all time. */
void sj_tree_paths_fold(sj_tree_paths *paths, double least_share);

void sj_tree_paths_deinit(sj_tree_paths *paths); /* safe on a zeroed list */

#endif

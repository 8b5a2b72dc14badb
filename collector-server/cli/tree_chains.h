/* The call paths that a tree shows, with chains of single callees folded. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TREE_CHAINS_H
#define SJ_COLLECTOR_SERVER_CLI_TREE_CHAINS_H

#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sj_tree_path {
    int64_t path_id;
    int64_t depth; /* in the call tree, 0 for roots */
    int64_t level; /* level of indentation: depth without the folded paths */
    int64_t total_ns, self_ns;
    int64_t calls, open_calls;
    bool is_estimate;      /* some of its times are estimates */
    bool is_self_estimate; /* its self time, or that of a callee, is an estimate */
    bool is_divided;       /* working_ns and waiting_ns are known */
    int64_t working_ns, waiting_ns;
    bool has_cpu, has_memory; /* the CPU times (bytes) of measured calls are known */
    int64_t cpu_ns, cpu_self_ns;
    int64_t allocated_bytes, net_bytes;
    double share; /* share of all recorded time, 0 to 1 */
    char *name;   /* owned by the list */
    /* file name where a path enters another module; NULL: the module of the caller; owned by the
     * list */
    char *module;
    size_t parent;  /* index in the list; a root has its own index */
    size_t callees; /* number of callees that are shown */
    size_t folded;  /* number of paths, at the first path of a folded chain; 0: shown */
} sj_tree_path;

/* Paths in depth-first order. One thread at a time. */
typedef struct sj_tree_paths {
    sj_tree_path *paths;
    size_t count, capacity;
} sj_tree_paths;

/* Appends a copy of `path` with its name (NULL: unknown) and module. A path must directly follow
 * its caller, or another callee of that caller. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tree_paths_add(sj_tree_paths *paths, const sj_tree_path *path);

/* Folds each run of two or more paths of which each is an only callee, has an only callee, and has
 * little self time. Little is less than `least_share` of all time. The levels of deeper paths
 * decrease accordingly. */
void sj_tree_paths_fold(sj_tree_paths *paths, double least_share);

void sj_tree_paths_deinit(sj_tree_paths *paths); /* safe on a zeroed list */

#endif

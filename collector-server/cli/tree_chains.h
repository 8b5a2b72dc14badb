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
    int64_t level; /* of indentation: depth without what is folded */
    int64_t total_ns, self_ns;
    int64_t calls, open_calls;
    bool is_estimate;      /* its times are, in part */
    bool is_self_estimate; /* that, or those of what it called */
    bool is_divided;       /* the following are known */
    int64_t working_ns, waiting_ns;
    bool has_cpu, has_memory; /* the following are known: of measured calls */
    int64_t cpu_ns, cpu_self_ns;
    int64_t allocated_bytes, net_bytes;
    double share;  /* of all recorded time, 0 to 1 */
    char *name;    /* owned by the list */
    char *module;  /* file name, where a path enters another module; NULL: the caller's; likewise */
    size_t parent; /* its place in the list; its own: a root */
    size_t callees; /* that are shown */
    size_t folded;  /* first of a folded chain: of how many paths; 0: shown */
} sj_tree_path;

/* Paths depth first. One thread at a time. */
typedef struct sj_tree_paths {
    sj_tree_path *paths;
    size_t count, capacity;
} sj_tree_paths;

/* sj_tree_paths_add appends a copy of `path`, of its name (NULL: unknown) and module too. A path
 * comes directly after its caller or that one's other callees. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_tree_paths_add(sj_tree_paths *paths, const sj_tree_path *path);

/* sj_tree_paths_fold folds each run of two or more paths that are an only callee, have an only
 * callee, and spend less than `least_share` of all time themselves; levels close up. */
void sj_tree_paths_fold(sj_tree_paths *paths, double least_share);

void sj_tree_paths_deinit(sj_tree_paths *paths); /* safe on a zeroed list */

#endif

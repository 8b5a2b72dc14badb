/* Folds rare call paths. It builds a second table: kept nodes move over in the order of their
 * numbers, so that parents stay before children. The sums of the other nodes go to rare nodes,
 * which are made on demand. A path weighs as much as its heaviest descendant, so the callers of a
 * kept path are always kept. The old table does not change before the last allocation has
 * succeeded. */
#include "proto/callgraph/path_costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = 2 };

typedef struct folding_run {
    const sj_path_nodes *old;
    sj_path_nodes made;
    double *weights; /* by old node */
    double *sorted;
    uint32_t *moved; /* by old node: its new number */
    uint8_t *users;  /* by new node: how many old nodes it holds; SHARED for two or more */
    double least;    /* heavier nodes are kept */
    uint64_t paths;
    uint64_t calls;
} folding_run;

enum { RARE_LEVELS = 3 }; /* levels below a rare node that are never folded again */

/* True for children of the root (threads and rare nodes) and for the levels below rare nodes. */
static bool always_stays(const sj_path_nodes *paths, uint32_t number)
{
    uint32_t above = paths->nodes[number].parent;
    bool stays = above == 0;
    for (int level = 0; level < RARE_LEVELS && above != 0 && !stays; level++) {
        stays = paths->nodes[above].rare != 0;
        above = paths->nodes[above].parent;
    }
    return stays;
}

static void weigh(folding_run *run)
{
    const sj_path_nodes *old = run->old;
    double calls = 1;
    double ticks = 1;
    for (uint32_t i = 1; i < old->count; i++) {
        calls += (double)old->nodes[i].calls;
        ticks += (double)old->nodes[i].self_ticks;
    }
    for (uint32_t i = old->count - 1; i > 0; i--) {
        const sj_path_line *node = &old->nodes[i];
        const double own = (double)node->calls / calls + (double)node->self_ticks / ticks;
        double *weight = &run->weights[i];
        double *above = &run->weights[node->parent];
        *weight = *weight > own ? *weight : own;
        *above = *above > *weight ? *above : *weight;
        *weight = always_stays(old, i) ? INFINITY : *weight;
    }
}

static int compare_weights(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a < b) - (a > b);
}

static void find_least(folding_run *run, uint32_t keep)
{
    const uint32_t count = run->old->count - 1;
    memcpy(run->sorted, run->weights + 1, count * sizeof(*run->sorted));
    qsort(run->sorted, count, sizeof(*run->sorted), compare_weights);
    uint32_t staying = 0;
    while (staying < count && isinf(run->sorted[staying])) {
        staying++;
    }
    run->least = keep < count - staying ? run->sorted[staying + keep] : -1;
}

static uint32_t child(folding_run *run, uint32_t parent, uint32_t function)
{
    return parent == SJ_NO_NODE ? SJ_NO_NODE : sj_path_nodes_child(&run->made, parent, function);
}

/* Returns the node into which a path is folded. It is recursive if the path is recursive, and
 * nested in another call of its edge if the path is. Returns SJ_NO_NODE on failure. */
static uint32_t find_rare(folding_run *run, uint32_t number)
{
    const uint32_t function = run->old->nodes[number].function;
    const uint32_t caller = run->old->nodes[run->old->nodes[number].parent].function;
    if (sj_path_nodes_is_nested(run->old, number)) {
        const uint32_t edge = child(run, sj_path_nodes_rare(&run->made, caller), function);
        return child(run, caller == function ? edge : child(run, edge, caller), function);
    }
    if (run->old->nodes[number].recursive != 0 && caller != function) {
        return child(run, child(run, sj_path_nodes_rare(&run->made, function), caller), function);
    }
    return child(run, sj_path_nodes_rare(&run->made, caller), function);
}

static sj_status move_node(folding_run *run, uint32_t number)
{
    const sj_path_line *node = &run->old->nodes[number];
    const bool stays = run->weights[number] > run->least || isinf(run->weights[number]);
    uint32_t place;
    if (!stays) {
        place = find_rare(run, number);
        run->paths++;
        run->calls += node->calls;
    } else if (node->rare != 0) {
        place = sj_path_nodes_rare(&run->made, node->function);
    } else {
        place = sj_path_nodes_child(&run->made, run->moved[node->parent], node->function);
    }
    run->moved[number] = place;
    if (stays && place != SJ_NO_NODE && run->old->nodes[number].looped) {
        run->made.nodes[place].looped = 1;
        run->made.has_loops = true;
    }
    return place != SJ_NO_NODE ? SJ_OK : sj_path_nodes_failure(&run->made);
}

/* Makes the nodes of the second table, with their sums. */
static sj_status move_sums(folding_run *run)
{
    run->moved[0] = 0;
    for (uint32_t i = 1; i < run->old->count; i++) {
        SJ_TRY(move_node(run, i));
    }
    run->users = calloc(run->made.count, sizeof(*run->users));
    if (run->users == NULL) {
        return SJ_ENOMEM;
    }
    for (uint32_t i = 1; i < run->old->count; i++) {
        uint8_t *users = &run->users[run->moved[i]];
        const sj_path_node node = sj_path_nodes_get(run->old, i);
        const sj_path_cost *cost = sj_path_costs_of(run->old, i);
        SJ_TRY(sj_path_nodes_add_sums(&run->made, run->moved[i], &node));
        if (cost != NULL) {
            SJ_TRY(sj_path_costs_add(&run->made, run->moved[i], cost));
        }
        *users += *users < SHARED;
    }
    return SJ_OK;
}

/* Merges the histograms of nodes that were folded together; moves all others. */
static sj_status move_histograms(folding_run *run, sj_path_nodes *old)
{
    for (uint32_t i = 1; i < old->count; i++) {
        if (run->users[run->moved[i]] == SHARED) {
            SJ_TRY(sj_path_histogram_merge(&run->made.nodes[run->moved[i]].histogram,
                                           &old->nodes[i].histogram));
        }
    }
    for (uint32_t i = 1; i < old->count; i++) {
        if (run->users[run->moved[i]] != SHARED) {
            run->made.nodes[run->moved[i]].histogram = old->nodes[i].histogram;
            old->nodes[i].histogram = (sj_path_histogram){0};
        }
    }
    return SJ_OK;
}

sj_status sj_path_nodes_fold_rare(sj_path_nodes *paths, uint32_t keep, sj_path_folding *folding)
{
    folding_run run = {.old = paths};
    SJ_TRY(sj_path_nodes_settle(paths));
    run.weights = calloc(paths->count, sizeof(*run.weights));
    run.sorted = calloc(paths->count, sizeof(*run.sorted));
    run.moved = calloc(paths->count, sizeof(*run.moved));
    sj_status status = run.weights != NULL && run.sorted != NULL && run.moved != NULL
                           ? sj_path_nodes_init(&run.made)
                           : SJ_ENOMEM;
    if (status == SJ_OK) {
        run.made.most = paths->most;
        weigh(&run);
        find_least(&run, keep);
        status = move_sums(&run);
    }
    if (status == SJ_OK) {
        status = move_histograms(&run, paths);
    }
    if (status == SJ_OK) {
        *folding = (sj_path_folding){.moved = run.moved,
                                     .moved_count = paths->count,
                                     .paths = run.paths,
                                     .calls = run.calls};
        sj_path_nodes_deinit(paths);
        *paths = run.made;
    } else {
        free(run.moved);
        sj_path_nodes_deinit(&run.made);
    }
    free(run.weights);
    free(run.sorted);
    free(run.users);
    return status;
}

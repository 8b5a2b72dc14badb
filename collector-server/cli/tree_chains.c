#include "collector-server/cli/tree_chains.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64, LEAST_FOLDED = 2 };

/* Returns the index of the caller of the path that is added next and has this depth. Returns
 * paths->count, the index of the new path itself, for a root. */
static size_t find_parent(const sj_tree_paths *paths, int64_t depth)
{
    size_t at = paths->count;
    if (depth == 0 || at == 0) {
        return paths->count;
    }
    at--;
    while (paths->paths[at].depth >= depth && paths->paths[at].parent != at) {
        at = paths->paths[at].parent;
    }
    return paths->paths[at].depth < depth ? at : paths->count;
}

sj_status sj_tree_paths_add(sj_tree_paths *paths, const sj_tree_path *path)
{
    if (paths->count == paths->capacity) {
        const size_t capacity = paths->capacity == 0 ? FIRST_CAPACITY : paths->capacity * 2;
        sj_tree_path *grown = reallocarray(paths->paths, capacity, sizeof(*grown));
        if (grown == NULL) {
            return SJ_ENOMEM;
        }
        paths->paths = grown;
        paths->capacity = capacity;
    }
    char *copy = strdup(path->name != NULL ? path->name : "(unknown function)");
    char *module = path->module != NULL ? strdup(path->module) : NULL;
    if (copy == NULL || (path->module != NULL && module == NULL)) {
        free(copy);
        free(module);
        return SJ_ENOMEM;
    }
    sj_tree_path *added = &paths->paths[paths->count];
    *added = *path;
    added->name = copy;
    added->module = module;
    added->level = path->depth;
    added->callees = 0;
    added->folded = 0;
    added->parent = find_parent(paths, path->depth);
    if (added->parent != paths->count) {
        paths->paths[added->parent].callees++;
    }
    paths->count++;
    return SJ_OK;
}

/* True if the path is an only callee, has an only callee, and has little self time. */
static bool is_chain_link(const sj_tree_paths *paths, size_t at, double least_share)
{
    const sj_tree_path *path = &paths->paths[at];
    if (path->parent == at || path->callees != 1 || paths->paths[path->parent].callees != 1) {
        return false;
    }
    const double self_share =
        path->total_ns > 0 ? path->share * (double)path->self_ns / (double)path->total_ns : 0;
    return self_share < least_share;
}

void sj_tree_paths_fold(sj_tree_paths *paths, double least_share)
{
    size_t at = 0;
    while (at < paths->count) {
        sj_tree_path *path = &paths->paths[at];
        path->level = path->parent == at ? 0 : paths->paths[path->parent].level + 1;
        size_t chain = 0;
        while (at + chain < paths->count && is_chain_link(paths, at + chain, least_share)) {
            chain++;
        }
        if (chain < LEAST_FOLDED) {
            at++;
            continue;
        }
        path->folded = chain;
        for (size_t i = 0; i < chain; i++) {
            paths->paths[at + i].level = path->level;
        }
        at += chain;
    }
}

void sj_tree_paths_deinit(sj_tree_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++) {
        free(paths->paths[i].name);
        free(paths->paths[i].module);
    }
    free(paths->paths);
    *paths = (sj_tree_paths){0};
}

#include "collector-server/http/cluster_results.h"

#include "collector-server/forward/cluster_mirror.h"
#include "collector-server/http/context.h"
#include "collector-server/http/parameters.h"

#include <stdio.h>
#include <stdlib.h>

enum { VALUE_BYTES = 4096, NAME_BYTES = 80 };

/* Fetches the sums of one set of sessions. Ignores unknown sessions and invalid sets. */
static sj_status need(const sj_request *request, const char *set, sj_error *error)
{
    sj_error why = {0};
    const sj_status status = sj_cluster_mirror_need(request->context->mirror, set, &why);
    return status == SJ_OK || status == SJ_ENOTFOUND || status == SJ_EINVAL
               ? SJ_OK
               : sj_fail(error, status, "%s", why.text);
}

sj_status sj_cluster_results_prepare(const sj_request *request, bool is_of_session, sj_error *error)
{
    static const char *const sets[] = {"p.session", "p.a", "p.b"};
    if (request->context->mirror == NULL) {
        return SJ_OK;
    }
    if (is_of_session) {
        char set[24];
        snprintf(set, sizeof(set), "%lld", (long long)request->id);
        return need(request, set, error);
    }
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); ++i) {
        const char *set = NULL;
        SJ_TRY(sj_parameter_text(request, sets[i], VALUE_BYTES, &set, error));
        SJ_TRY(set != NULL ? need(request, set, error) : SJ_OK);
    }
    return SJ_OK;
}

static const char *find_value(void *context, const char *name)
{
    char key[NAME_BYTES];
    const char *value = NULL;
    sj_error ignored;
    snprintf(key, sizeof(key), "p.%s", name);
    return sj_parameter_text(context, key, VALUE_BYTES, &value, &ignored) == SJ_OK ? value : NULL;
}

sj_status sj_cluster_results_ask(const sj_request *request, const char *sql, int64_t rows,
                                 int64_t time_ms, sqlite3 **result, sj_error *error)
{
    const sj_cluster_limits limits = {.rows = rows, .time_ms = time_ms};
    char *filled = NULL;
    bool is_cut = false;
    if (request->context->mirror == NULL) {
        return sj_fail(error, SJ_EINVAL, "this server answers for one database, not for a cluster");
    }
    SJ_TRY(sj_cluster_fill(sql, find_value, (void *)request, &filled, error));
    const sj_status status =
        sj_cluster_mirror_ask(request->context->mirror, filled, &limits, result, &is_cut, error);
    free(filled);
    return status;
}

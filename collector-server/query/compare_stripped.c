/* Functions without names are matched by their code (functions.symbol_key), because they have other
 * addresses in another build. A function whose code changed, or is not unique, is not matched. This
 * file computes how much of the time of such functions was matched. */
#include "collector-server/query/compare_internal.h"

#include <math.h>

enum { KNOWN_MODULES = 64 };

/* Searches the builds of this side's modules on the other side. */
typedef struct build_search {
    const sj_session_set *others; /* sessions of the other side */
    sqlite3_stmt *module_of;      /* reads the module of a function of this side */
    sqlite3_stmt *is_loaded;      /* returns a row if a session of the other side loaded a build */
    struct {
        int64_t module_id;
        bool is_loaded;
    } known[KNOWN_MODULES]; /* earlier results, by module_id % KNOWN_MODULES */
} build_search;

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    return sj_fail(error, SJ_EIO, "cannot read the sessions to compare: %s",
                   sqlite3_errmsg(database));
}

static sj_status open_search(build_search *search, const sj_compare *compare,
                             const sj_compare_side sides[2], int side, sj_error *error)
{
    static const char module_sql[] = "SELECT module_id, build_id FROM functions JOIN modules USING "
                                     "(module_id) WHERE function_id = ?1";
    static const char loaded_sql[] = "SELECT 1 FROM session_modules JOIN modules USING (module_id) "
                                     "WHERE session_id = ?1 AND build_id = ?2 LIMIT 1";
    sqlite3 *this_database = sides[side].database;
    sqlite3 *other_database = sides[1 - side].database;
    search->others = &compare->sets[1 - side];
    if (sqlite3_prepare_v2(this_database, module_sql, -1, &search->module_of, NULL) != SQLITE_OK) {
        return fail_sql(this_database, error);
    }
    return sqlite3_prepare_v2(other_database, loaded_sql, -1, &search->is_loaded, NULL) == SQLITE_OK
               ? SJ_OK
               : fail_sql(other_database, error);
}

static void close_search(build_search *search)
{
    sqlite3_finalize(search->module_of);
    sqlite3_finalize(search->is_loaded);
}

/* True if a session of the other side loaded the build. */
static bool is_build_loaded(build_search *search, const void *build_id, int size)
{
    bool is_loaded = false;
    sqlite3_bind_blob(search->is_loaded, 2, build_id, size, SQLITE_STATIC);
    for (size_t i = 0; !is_loaded && i < search->others->count; ++i) {
        sqlite3_bind_int64(search->is_loaded, 1, search->others->samples[i].session_id);
        is_loaded = sqlite3_step(search->is_loaded) == SQLITE_ROW;
        sqlite3_reset(search->is_loaded);
    }
    return is_loaded;
}

/* True if the other side loaded the build of a function's module, or the function is not stored. */
static bool has_build_of(build_search *search, int64_t function_id)
{
    bool is_loaded = true;
    sqlite3_bind_int64(search->module_of, 1, function_id);
    if (sqlite3_step(search->module_of) == SQLITE_ROW) {
        const int64_t module_id = sqlite3_column_int64(search->module_of, 0);
        const size_t place = (uint64_t)module_id % KNOWN_MODULES;
        if (search->known[place].module_id != module_id) {
            search->known[place].module_id = module_id;
            search->known[place].is_loaded =
                is_build_loaded(search, sqlite3_column_blob(search->module_of, 1),
                                sqlite3_column_bytes(search->module_of, 1));
        }
        is_loaded = search->known[place].is_loaded;
    }
    sqlite3_reset(search->module_of);
    return is_loaded;
}

/* Does nothing unless the row is a function without a name, of a build that only one side has. Adds
 * its time to `all` and, if it was matched by code, to `matched`. */
static void add_row(sj_compare *compare, build_search searches[2], sj_compare_row *row,
                    double all[2], double matched[2])
{
    const int side = row->function_id[0] != 0 ? 0 : 1;
    if (!row->is_nameless || has_build_of(&searches[side], row->function_id[side])) {
        return;
    }
    const bool is_matched = row->function_id[1 - side] != 0;
    row->is_unmatched = !is_matched;
    compare->has_nameless = true;
    for (int i = 0; i < 2; ++i) {
        all[i] += row->self_ns[i];
        matched[i] += is_matched ? row->self_ns[i] : 0;
    }
}

sj_status sj_compare_match_nameless(sj_compare *compare, const sj_compare_side sides[2],
                                    sj_error *error)
{
    build_search searches[2] = {0};
    double all[2] = {0};
    double matched[2] = {0};
    sj_status status = open_search(&searches[0], compare, sides, 0, error);
    if (status == SJ_OK) {
        status = open_search(&searches[1], compare, sides, 1, error);
    }
    for (size_t i = 1; status == SJ_OK && i < compare->count; ++i) {
        add_row(compare, searches, &compare->rows[i], all, matched);
    }
    close_search(&searches[0]);
    close_search(&searches[1]);
    compare->matched_share = 1;
    for (int i = 0; i < 2; ++i) {
        const double unmatched = all[i] - matched[i];
        if (unmatched > 0) {
            compare->matched_share = fmin(compare->matched_share, matched[i] / all[i]);
            compare->unmatched_share =
                fmax(compare->unmatched_share, unmatched / compare->rows[0].self_ns[i]);
        }
    }
    return status;
}

bool sj_compare_matched_share(const sj_compare *compare, double *share)
{
    *share = compare->matched_share;
    return compare->has_nameless;
}

bool sj_compare_is_stripped(const sj_compare *compare)
{
    static const double least_matched = 0.5;
    /* A smaller share may be a library without symbols, beside a program with symbols. */
    static const double least_unmatched = 0.1;
    return compare->has_nameless && compare->matched_share < least_matched &&
           compare->unmatched_share >= least_unmatched;
}

/* The table function coverage(sessions [, by]): which functions or lines were entered.
 *
 * Design notes. The sessions may be of several builds. So a function is identified by its
 * symbol_key, and by its position among the functions of its module with the same key. All
 * functions of the sessions are read first. Then each sample's calls mark the functions that were
 * entered; for "mark", this is repeated per mark. The tables omit functions that are not separate
 * code: abstract methods and cold parts. An inherited Objective-C method, -[Receiver:Owner
 * selector], counts as its owner's. */
#include "collector-server/query/coverage_table.h"

#include "collector-server/query/coverage_lines.h"
#include "collector-server/query/name_scope.h"
#include "collector-server/query/session_set.h"
#include "collector-server/query/table_function.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/hash_map.h"
#include "schema/queries/query/coverage_table.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_NAME,
    COLUMN_MODULE,
    COLUMN_FUNCTIONS,
    COLUMN_UNWATCHED,
    COLUMN_ENTERED,
    COLUMN_SHARE,
    COLUMN_CALLS,
    COLUMN_MISSING,
    COLUMN_SESSIONS, /* arguments */
    COLUMN_BY
};

/* A function of any build. */
typedef struct covered_function {
    char *name;
    char *module;
    int64_t calls;
    bool is_watched; /* a session recorded its calls */
    bool is_entered;
} covered_function;

/* A row of the table. */
typedef struct coverage_group {
    char *name;
    const char *module; /* the module of all functions; NULL: they have several */
    /* numbers of functions, or of lines; lines have no calls */
    int64_t functions, unwatched, entered, calls;
    char *missing; /* lines that were not entered; NULL: none */
} coverage_group;

typedef struct coverage {
    sqlite3 *database;
    covered_function *functions;
    size_t function_count, function_capacity;
    sj_hash_map by_key; /* (symbol_key, position + 1) to index in `functions` */
    sj_hash_map by_id;  /* function_id to index in `functions` */
    coverage_group *groups;
    size_t group_count, group_capacity;
} coverage;

typedef struct coverage_cursor {
    sqlite3_vtab_cursor base;
    coverage cover;
    sqlite3_value *arguments[2];
    size_t row;
} coverage_cursor;

static void clear_coverage(coverage *cover)
{
    for (size_t i = 0; i < cover->function_count; i++) {
        free(cover->functions[i].name);
        free(cover->functions[i].module);
    }
    for (size_t i = 0; i < cover->group_count; i++) {
        free(cover->groups[i].name);
        free(cover->groups[i].missing);
    }
    free(cover->functions);
    free(cover->groups);
    sj_hash_map_deinit(&cover->by_key);
    sj_hash_map_deinit(&cover->by_id);
    *cover = (coverage){.database = cover->database};
}

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text != NULL ? text : "";
}

/* Writes the position of a function among the functions of its module with the same symbol_key.
 * `seen` has the positions of earlier functions of the module. */
static sj_status place_in_module(sj_hash_map *seen, uint64_t key, uint32_t *place)
{
    sj_hash_entry *known = sj_hash_map_find(seen, key, 1);
    *place = known != NULL ? ++known->first : 0;
    const sj_hash_entry entry = {.key = key, .sub = 1};
    return known != NULL ? SJ_OK : sj_hash_map_put(seen, &entry);
}

static sj_status find_function(coverage *cover, uint64_t key, uint32_t place, const char *name,
                               const char *module, uint32_t *found)
{
    const sj_hash_entry *known = sj_hash_map_find(&cover->by_key, key, place + 1);
    if (known != NULL) {
        *found = known->first;
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&cover->functions, &cover->function_capacity, cover->function_count, 1,
                            sizeof(*cover->functions)));
    covered_function *added = &cover->functions[cover->function_count];
    *added = (covered_function){.name = strdup(name), .module = strdup(module)};
    const sj_hash_entry entry = {
        .key = key, .sub = place + 1, .first = (uint32_t)cover->function_count};
    if (added->name == NULL || added->module == NULL ||
        sj_hash_map_put(&cover->by_key, &entry) != SJ_OK) {
        free(added->name);
        free(added->module);
        return SJ_ENOMEM;
    }
    *found = (uint32_t)cover->function_count++;
    return SJ_OK;
}

/* Writes the name of an inherited Objective-C method as its owner's: "-[Owner selector]" for
 * "-[Receiver:Owner selector]". Returns false for any other name. */
static bool owner_name(const char *name, char *owner, size_t capacity)
{
    const char *colon = strchr(name, ':');
    const char *blank = strchr(name, ' ');
    const size_t bytes = strlen(name);
    if ((name[0] != '-' && name[0] != '+') || name[1] != '[' || colon == NULL || blank == NULL ||
        colon > blank || bytes >= capacity) {
        return false;
    }
    owner[0] = name[0];
    owner[1] = '[';
    memcpy(owner + 2, colon + 1, strlen(colon + 1) + 1);
    return true;
}

/* Adds the functions of one session to cover->functions. */
/* Reads the functions of a session. Rows come module by module. */
typedef struct function_reading {
    coverage *cover;
    sj_hash_map seen; /* functions of the current module */
    int64_t module;
} function_reading;

static int add_function(void *context, sqlite3_stmt *row)
{
    function_reading *reading = context;
    coverage *cover = reading->cover;
    char owner[4096];
    uint32_t place = 0;
    uint32_t found = 0;
    const uint64_t key = (uint64_t)sqlite3_column_int64(row, 1);
    const char *technique = text_of(row, 5);
    if (sqlite3_column_int64(row, 4) != reading->module) {
        reading->module = sqlite3_column_int64(row, 4);
        sj_hash_map_deinit(&reading->seen);
        reading->seen = (sj_hash_map){0};
    }
    if (strcmp(technique, "part") == 0 ||
        strcmp(text_of(row, 6), "an abstract or native method") == 0 ||
        owner_name(text_of(row, 2), owner, sizeof(owner))) {
        return SQLITE_OK;
    }
    if (place_in_module(&reading->seen, key, &place) != SJ_OK ||
        find_function(cover, key, place, text_of(row, 2), text_of(row, 3), &found) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    const sj_hash_entry entry = {
        .key = (uint64_t)sqlite3_column_int64(row, 0), .sub = 1, .first = found};
    cover->functions[found].is_watched |= strcmp(technique, "none") != 0;
    return sj_hash_map_put(&cover->by_id, &entry) == SJ_OK ? SQLITE_OK : SQLITE_NOMEM;
}

static int add_functions(coverage *cover, int64_t session_id)
{
    function_reading reading = {.cover = cover};
    const int result = sj_sql_scan_text(cover->database, sj_coverage_functions_sql,
                                        SJ_SQL_INTS(session_id), add_function, &reading);
    sj_hash_map_deinit(&reading.seen);
    return result;
}

/* Returns the owner's method for an inherited Objective-C method, NULL if there is none. */
static covered_function *find_owner(coverage *cover, const char *name)
{
    char owner[4096];
    if (!owner_name(name, owner, sizeof(owner))) {
        return NULL;
    }
    for (size_t i = 0; i < cover->function_count; i++) {
        if (strcmp(cover->functions[i].name, owner) == 0) {
            return &cover->functions[i];
        }
    }
    return NULL;
}

/* Marks the functions that a sample entered, and adds their calls. */
static int enter_function(void *context, sqlite3_stmt *row)
{
    coverage *cover = context;
    const sj_hash_entry *known =
        sj_hash_map_find(&cover->by_id, (uint64_t)sqlite3_column_int64(row, 0), 1);
    covered_function *function =
        known != NULL ? &cover->functions[known->first] : find_owner(cover, text_of(row, 2));
    if (function != NULL) {
        function->is_entered = true;
        function->is_watched = true;
        function->calls += sqlite3_column_int64(row, 1);
    }
    return SQLITE_OK;
}

static int enter_sample(coverage *cover, const sj_sample *sample)
{
    static const char whole_sql[] =
        "SELECT x.function_id, x.calls, f.name FROM (SELECT function_id, calls FROM function_stats "
        "WHERE session_id = ?1 UNION ALL SELECT DISTINCT function_id, 0 FROM call_paths "
        "WHERE session_id = ?1) AS x JOIN functions AS f USING (function_id)";
    static const char window_sql[] =
        "SELECT x.function_id, x.calls, f.name FROM call_aggregate(?1, ?2, "
        "?3) AS x JOIN functions AS f USING (function_id)";
    return sample->windowed
               ? sj_sql_scan_text(cover->database, window_sql,
                                  SJ_SQL_INTS(sample->session_id, sample->from_ns, sample->to_ns),
                                  enter_function, cover)
               : sj_sql_scan_text(cover->database, whole_sql, SJ_SQL_INTS(sample->session_id),
                                  enter_function, cover);
}

/* Marks the functions that a set entered, and no others. */
static int enter_all(coverage *cover, const sj_session_set *set)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < cover->function_count; i++) {
        cover->functions[i].is_entered = false;
        cover->functions[i].calls = 0;
    }
    for (size_t i = 0; i < set->count && result == SQLITE_OK; i++) {
        result = enter_sample(cover, &set->samples[i]);
    }
    return result;
}

/* --- rows --- */

static sj_status add_group(coverage *cover, const char *name, size_t bytes, coverage_group **group)
{
    SJ_TRY(sj_array_reserve(&cover->groups, &cover->group_capacity, cover->group_count, 1,
                            sizeof(*cover->groups)));
    char *copy = malloc(bytes + 1);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(copy, name, bytes);
    copy[bytes] = '\0';
    *group = &cover->groups[cover->group_count++];
    **group = (coverage_group){.name = copy};
    return SJ_OK;
}

static void add_to_group(coverage_group *group, const covered_function *function)
{
    if (group->functions == 0) {
        group->module = function->module;
    } else if (group->module != NULL && strcmp(group->module, function->module) != 0) {
        group->module = NULL;
    }
    group->functions++;
    group->unwatched += !function->is_watched;
    group->entered += function->is_entered;
    group->calls += function->calls;
}

/* Returns the name of a function's group: `bytes` bytes, not NUL-terminated. */
static const char *group_name(const covered_function *function, const char *by, size_t *bytes)
{
    const char *start = function->name;
    if (strcmp(by, "module") == 0) {
        *bytes = strlen(function->module);
        return function->module;
    }
    if (strcmp(by, "function") == 0) {
        *bytes = strlen(function->name);
        return function->name;
    }
    *bytes = sj_name_class_bytes(function->name, &start);
    if (strcmp(by, "namespace") == 0) {
        *bytes = sj_name_namespace_bytes(start, *bytes);
    }
    return start;
}

/* For sorting functions by the names of their groups. */
typedef struct grouped_function {
    const covered_function *function;
    const char *name;
    size_t bytes;
} grouped_function;

static int compare_names(const void *left, const void *right)
{
    const grouped_function *a = left;
    const grouped_function *b = right;
    const int order = memcmp(a->name, b->name, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order != 0 ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static sj_status group_functions(coverage *cover, const char *by)
{
    const bool is_single = strcmp(by, "function") == 0;
    grouped_function *sorted = malloc((cover->function_count + 1) * sizeof(*sorted));
    coverage_group *group = NULL;
    sj_status status = sorted != NULL ? SJ_OK : SJ_ENOMEM;
    for (size_t i = 0; status == SJ_OK && i < cover->function_count; i++) {
        sorted[i].function = &cover->functions[i];
        sorted[i].name = group_name(&cover->functions[i], by, &sorted[i].bytes);
    }
    if (status == SJ_OK) {
        qsort(sorted, cover->function_count, sizeof(*sorted), compare_names);
    }
    for (size_t i = 0; status == SJ_OK && i < cover->function_count; i++) {
        if (group == NULL || is_single || compare_names(&sorted[i], &sorted[i - 1]) != 0) {
            status = add_group(cover, sorted[i].name, sorted[i].bytes, &group);
        }
        if (status == SJ_OK) {
            add_to_group(group, sorted[i].function);
        }
    }
    free(sorted);
    return status;
}

/* Adds the row of a mark: the functions that were entered between its begin and its end. */
static int group_mark(coverage *cover, const char *sessions, const char *mark, sj_error *error)
{
    coverage_group *group = NULL;
    sj_session_set set = {0};
    char *text = sqlite3_mprintf("%s+mark:%s", sessions, mark);
    if (text == NULL) {
        return SQLITE_NOMEM;
    }
    const sj_status found =
        sj_session_set_read(cover->database, text, SJ_SESSION_SET_MAX_SAMPLES, &set, error);
    sqlite3_free(text);
    if (found != SJ_OK) {
        return found == SJ_ENOTFOUND ? SQLITE_OK : SQLITE_ERROR; /* SJ_ENOTFOUND: it never ended */
    }
    const int result = enter_all(cover, &set);
    sj_session_set_deinit(&set);
    if (result != SQLITE_OK) {
        return result;
    }
    if (add_group(cover, mark, strlen(mark), &group) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    for (size_t i = 0; i < cover->function_count; i++) {
        add_to_group(group, &cover->functions[i]);
    }
    return SQLITE_OK;
}

typedef struct mark_grouping {
    coverage *cover;
    const char *sessions;
    sj_error *error;
} mark_grouping;

static int add_mark(void *context, sqlite3_stmt *row)
{
    const mark_grouping *grouping = context;
    const coverage *cover = grouping->cover;
    const char *mark = text_of(row, 0);
    for (size_t i = 0; i < cover->group_count; i++) {
        if (strcmp(cover->groups[i].name, mark) == 0) {
            return SQLITE_OK;
        }
    }
    return group_mark(grouping->cover, grouping->sessions, mark, grouping->error);
}

static int group_marks(coverage *cover, const char *sessions, const sj_session_set *set,
                       sj_error *error)
{
    static const char sql[] = "SELECT DISTINCT name FROM marks WHERE session_id = ?1 ORDER BY 1";
    mark_grouping grouping = {.cover = cover, .sessions = sessions, .error = error};
    int result = SQLITE_OK;
    for (size_t i = 0; result == SQLITE_OK && i < set->count; i++) {
        result = sj_sql_scan_text(cover->database, sql, SJ_SQL_INTS(set->samples[i].session_id),
                                  add_mark, &grouping);
    }
    return result;
}

static sj_status add_lines_row(void *context, const sj_lines_row *row)
{
    coverage_group *group = NULL;
    SJ_TRY(add_group(context, row->name, strlen(row->name), &group));
    group->functions = row->lines;
    group->unwatched = row->unknown;
    group->entered = row->entered;
    group->missing = row->missing != NULL ? strdup(row->missing) : NULL;
    return row->missing != NULL && group->missing == NULL ? SJ_ENOMEM : SJ_OK;
}

/* Makes the rows for "line" or "file". */
static int make_line_rows(coverage *cover, const sj_session_set *set, const char *by,
                          sj_error *error)
{
    const sj_status status = sj_coverage_lines_read(cover->database, set, strcmp(by, "line") == 0,
                                                    add_lines_row, cover, error);
    return status == SJ_OK ? SQLITE_OK : status == SJ_ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

static int make_rows(coverage *cover, const char *sessions, const char *by, sj_error *error)
{
    sj_session_set set = {0};
    int result = SQLITE_OK;
    if (sj_session_set_read(cover->database, sessions, SJ_SESSION_SET_MAX_SAMPLES, &set, error) !=
        SJ_OK) {
        return SQLITE_ERROR;
    }
    const bool is_of_lines = sj_coverage_is_of_lines(by);
    if (is_of_lines) {
        result = make_line_rows(cover, &set, by, error);
    }
    for (size_t i = 0; i < set.count && result == SQLITE_OK && !is_of_lines; i++) {
        if (i == 0 || set.samples[i].session_id != set.samples[i - 1].session_id) {
            result = add_functions(cover, set.samples[i].session_id);
        }
    }
    if (result == SQLITE_OK && strcmp(by, "mark") == 0) {
        result = group_marks(cover, sessions, &set, error);
    } else if (result == SQLITE_OK && !is_of_lines) {
        result = enter_all(cover, &set);
        if (result == SQLITE_OK && group_functions(cover, by) != SJ_OK) {
            result = SQLITE_NOMEM;
        }
    }
    sj_session_set_deinit(&set);
    return result;
}

bool sj_coverage_is_of_lines(const char *by)
{
    return strcmp(by, "file") == 0 || strcmp(by, "line") == 0;
}

bool sj_coverage_is_kind(const char *by)
{
    static const char *const kinds[] = {"module", "namespace", "class", "function",
                                        "mark",   "file",      "line"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(by, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* --- the table --- */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    coverage_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    cursor->cover.database = ((sj_table *)base)->state->database;
    *out = &cursor->base;
    return SQLITE_OK;
}

static void free_arguments(coverage_cursor *cursor)
{
    for (int i = 0; i < 2; i++) {
        sqlite3_value_free(cursor->arguments[i]);
        cursor->arguments[i] = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    clear_coverage(&((coverage_cursor *)base)->cover);
    free_arguments((coverage_cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    coverage_cursor *cursor = (coverage_cursor *)base;
    sj_error error = {0};
    (void)plan;
    (void)given;
    clear_coverage(&cursor->cover);
    free_arguments(cursor);
    cursor->row = 0;
    for (int i = 0; i < argc && i < 2; i++) {
        cursor->arguments[i] = sqlite3_value_dup(argv[i]);
    }
    const char *sessions = (const char *)sqlite3_value_text(argv[0]);
    const char *by = argc > 1 ? (const char *)sqlite3_value_text(argv[1]) : "module";
    int result = SQLITE_ERROR;
    if (by == NULL || !sj_coverage_is_kind(by)) {
        (void)!sj_fail(&error, SJ_EINVAL,
                       "coverage() is by module, namespace, class, function, mark, file or "
                       "line");
    } else if (sessions == NULL) {
        (void)!sj_fail(&error, SJ_EINVAL, "coverage() needs a set of sessions, as 'last'");
    } else {
        result = make_rows(&cursor->cover, sessions, by, &error);
    }
    if (error.text[0] != '\0') {
        sqlite3_free(base->pVtab->zErrMsg);
        base->pVtab->zErrMsg = sqlite3_mprintf("%s", error.text);
    }
    return result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ((coverage_cursor *)base)->row++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const coverage_cursor *cursor = (const coverage_cursor *)base;
    return cursor->row >= cursor->cover.group_count;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const coverage_cursor *cursor = (const coverage_cursor *)base;
    const coverage_group *group = &cursor->cover.groups[cursor->row];
    const int64_t numbers[] = {group->functions, group->unwatched, group->entered};
    if (column == COLUMN_NAME) {
        sqlite3_result_text(context, group->name, -1, SQLITE_TRANSIENT);
    } else if (column == COLUMN_MODULE && group->module != NULL) {
        sqlite3_result_text(context, group->module, -1, SQLITE_TRANSIENT);
    } else if (column >= COLUMN_FUNCTIONS && column <= COLUMN_ENTERED) {
        sqlite3_result_int64(context, numbers[column - COLUMN_FUNCTIONS]);
    } else if (column == COLUMN_SHARE && group->functions != 0) {
        sqlite3_result_double(context, (double)group->entered / (double)group->functions);
    } else if (column == COLUMN_CALLS) {
        sqlite3_result_int64(context, group->calls);
    } else if (column == COLUMN_MISSING && group->missing != NULL) {
        sqlite3_result_text(context, group->missing, -1, SQLITE_TRANSIENT);
    } else if (column >= COLUMN_SESSIONS && cursor->arguments[column - COLUMN_SESSIONS] != NULL) {
        sqlite3_result_value(context, cursor->arguments[column - COLUMN_SESSIONS]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((const coverage_cursor *)base)->row;
    return SQLITE_OK;
}

static const sqlite3_module coverage_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_coverage(sj_query_state *state)
{
    static const sj_table_kind kind = {.name = "coverage",
                                       .declaration = sj_coverage_columns_sql,
                                       .first_argument = COLUMN_SESSIONS,
                                       .argument_count = 2,
                                       .required_count = 1,
                                       .rows = 1000,
                                       .cost = 100000};
    return sj_table_register(state, &kind, &coverage_methods);
}

#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/maintenance/symbols.h"
#include "collector-server/store/database.h"
#include "proto/base/array.h"
#include "proto/base/units.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPEN_FOLDERS = 32 };

typedef struct symbols_run {
    sqlite3 *database;
    bool is_folder;        /* the path is a folder: skip files that match no module */
    bool only_counts;      /* visit_file only counts the files */
    sj_progress_work work; /* one step per file */
    uint64_t files;        /* number of counted files */
    int64_t matched;       /* number of files with the build-id of a recorded module */
    json_t *listed;        /* rows of the JSON output; NULL: the output is text */
    int exit_code;
} symbols_run;

static symbols_run *walking_run; /* nftw passes no context to its callback */

static void list_file(json_t *listed, const char *path, const sj_late_symbols *added)
{
    (void)json_array_append_new(
        listed, json_pack("{so sI sI sI}", "path", sj_json_clean_string(path), "named",
                          (json_int_t)added->named, "with_lines", (json_int_t)added->lined,
                          "inlined", (json_int_t)added->inlined));
}

static void add_file(symbols_run *run, const char *path)
{
    sj_late_symbols added;
    sj_error error = {0};
    const sj_status status = sj_late_symbols_add(run->database, path, &added, &error);
    sj_progress_step(run->work);
    if (status == SJ_OK) {
        ++run->matched;
        sj_work_progress_hide();
        if (run->listed != NULL) {
            list_file(run->listed, path, &added);
            return;
        }
        printf("%s: %s named, %lld with file and line, %lld inlined\n", path,
               SJ_COUNTED(added.named, "function"), (long long)added.lined,
               (long long)added.inlined);
    } else if (!run->is_folder || (status != SJ_ENOTFOUND && status != SJ_EUNSUPPORTED)) {
        run->exit_code =
            sj_command_error(&sj_command_symbols, sj_exit_code(status), "%s: %s", path, error.text);
    }
}

static int visit_file(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)place;
    if (kind == FTW_F && S_ISREG(status->st_mode)) {
        if (walking_run->only_counts) {
            walking_run->files++;
        } else {
            add_file(walking_run, path);
        }
    }
    return 0;
}

static void add_path(symbols_run *run, const char *path)
{
    struct stat status;
    char resolved[4096];
    if (realpath(path, resolved) == NULL || stat(resolved, &status) != 0) {
        run->exit_code = sj_command_error(&sj_command_symbols, SJ_EXIT_NOT_FOUND, "%s: %s", path,
                                          strerror(errno));
        return;
    }
    run->is_folder = S_ISDIR(status.st_mode);
    if (!run->is_folder) {
        add_file(run, resolved);
        return;
    }
    const int64_t before = run->matched;
    walking_run = run;
    nftw(resolved, visit_file, OPEN_FOLDERS, FTW_PHYS);
    if (run->matched == before) {
        run->exit_code =
            sj_command_error(&sj_command_symbols, SJ_EXIT_NOT_FOUND,
                             "%s: no file has the build-id of a recorded module", path);
    }
}

/* Adds the number of files below `path` to run->files. Ignores a path that cannot be read. */
static void count_path(symbols_run *run, const char *path)
{
    run->only_counts = true;
    walking_run = run;
    nftw(path, visit_file, OPEN_FOLDERS, FTW_PHYS);
    run->only_counts = false;
}

static void add_all(symbols_run *run, char **paths, size_t count)
{
    for (size_t i = 0; i < count && sj_progress_is_watched(); ++i) {
        count_path(run, paths[i]);
    }
    run->work = sj_progress_begin_list(run->files);
    for (size_t i = 0; i < count; ++i) {
        add_path(run, paths[i]);
    }
    sj_progress_end(run->work);
}

typedef struct path_list {
    char **paths;
    size_t count;
    size_t capacity;
} path_list;

/* Lists the files that were added before. The caller frees the list. */
static sj_status add_known_path(void *context, sqlite3_stmt *row)
{
    path_list *list = context;
    SJ_TRY(sj_array_reserve(&list->paths, &list->capacity, list->count, 1, sizeof(*list->paths)));
    list->paths[list->count] = strdup((const char *)sqlite3_column_text(row, 0));
    return list->paths[list->count] != NULL ? (list->count++, SJ_OK) : SJ_ENOMEM;
}

/* Reads again the files that were added before: newer modules may match them. */
static void add_again(symbols_run *run)
{
    path_list list = {0};
    run->exit_code =
        sj_query_each(&sj_command_symbols, run->database, "SELECT DISTINCT path FROM symbol_files",
                      (sj_sql_binds){0}, add_known_path, &list);
    if (run->exit_code == SJ_EXIT_OK) {
        add_all(run, list.paths, list.count);
    }
    for (size_t i = 0; i < list.count; ++i) {
        free(list.paths[i]);
    }
    free(list.paths);
}

static int run_action(const char *file, bool as_json, int count, char **words)
{
    sj_error error = {0};
    char path[PATH_MAX];
    symbols_run run = {0};
    const bool is_refresh = strcmp(words[0], "refresh") == 0;
    if (is_refresh ? count != 1 : strcmp(words[0], "add") != 0 || count < 2) {
        return sj_command_usage_error(&sj_command_symbols, "give add PATH... or refresh");
    }
    sj_status status = sj_database_path(file, path, &error);
    if (status == SJ_OK) {
        status = sj_database_open(path, SJ_DATABASE_WRITE, &run.database, &error);
    }
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_symbols, &error);
    }
    sj_work_progress_start();
    run.listed = as_json ? json_array() : NULL;
    if (is_refresh) {
        add_again(&run);
    } else {
        add_all(&run, words + 1, (size_t)count - 1);
    }
    sqlite3_close(run.database);
    const int written = as_json ? sj_json_output(&sj_command_symbols, run.listed) : SJ_EXIT_OK;
    return run.exit_code != SJ_EXIT_OK ? run.exit_code : written;
}

typedef struct symbols_options {
    const char *database;
    bool as_json;
} symbols_options;

static int run_symbols(int argc, char **argv)
{
    symbols_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_symbols, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first == argc) {
        return sj_command_usage_error(&sj_command_symbols, "give add PATH... or refresh");
    }
    return run_action(options.database, options.as_json, argc - first, argv + first);
}

static const sj_option symbols_table[] = {SJ_DATABASE_OPTION(offsetof(symbols_options, database)),
                                          {.name = "json",
                                           .kind = SJ_ARG_FLAG,
                                           .offset = offsetof(symbols_options, as_json),
                                           .help = "as JSON, with what each file contributed"},
                                          {0}};

const sj_command sj_command_symbols = {
    .name = "symbols",
    .summary = "add names, lines and inlined functions to stored sessions",
    .usage = "sojourn symbols [OPTIONS] add PATH... | refresh",
    .help =
        "Reads programs, libraries and separate debug files (or folders of them) with the\n"
        "build-id of a recorded module. Adds names of functions without one, files and lines\n"
        "(function_lines) and inlined functions (inlined_functions). `refresh` reads the added\n"
        "files again, for sessions that arrived later.\n",
    .options = symbols_table,
    .examples = "Examples:\n"
                "  sojourn symbols add build/app.debug\n"
                "  sojourn symbols add /usr/lib/debug --database lab.db\n",
    .run = run_symbols,
};

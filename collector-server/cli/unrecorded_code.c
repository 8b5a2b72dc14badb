#include "collector-server/cli/unrecorded_code.h"

#include "agent/policy/selection.h"
#include "agent/runtimes/runtime.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/shell_word.h"
#include "collector-server/store/sql.h"
#include "schema/queries/cli/unrecorded_code.h"

#include <stdlib.h>
#include <string.h>

/* The time of eight samples of the first period. Fewer samples say nothing. */
#define LEAST_NS INT64_C(80000000)

enum {
    LEAST_PERCENT = 50,
    /* A file that can be recorded is preferred if it has at least this share (1 / 4) of the time in
     * unrecorded code. */
    LEAST_SHARE_OF_REST = 4,
    PATHS_MOST = 256,
    NAME_COLUMNS = 60
};

/* Names of files without the part from ".so" on, because links to a library differ in it. */
typedef struct file_names {
    char *items[PATHS_MOST];
    size_t count;
} file_names;

/* The unrecorded files with the most time: one that can be recorded, and one that cannot. */
typedef struct code_search {
    file_names recorded;
    char library[SJ_UNRECORDED_NAME_BYTES];
    char fixed[SJ_UNRECORDED_NAME_BYTES]; /* code of the C library or the loader */
    int64_t sampled_ns, generated_ns, unrecorded_ns, library_ns, fixed_ns;
    bool has_runtime; /* a runtime's file was sampled: generated code is that of its methods */
} code_search;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int stem_length(const char *name)
{
    const char *end = strstr(name, ".so");
    return (int)(end != NULL && end != name ? (size_t)(end - name) : strlen(name));
}

static bool is_recorded(const file_names *names, const char *name)
{
    const size_t length = (size_t)stem_length(name);
    for (size_t i = 0; i < names->count; i++) {
        if (strlen(names->items[i]) == length && strncmp(names->items[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_of_runtime(const char *name)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        if (sj_runtime_has_file(sj_runtimes[i], name)) {
            return true;
        }
    }
    return false;
}

static sj_status read_recorded(void *context, sqlite3_stmt *row)
{
    code_search *search = context;
    const char *path = (const char *)sqlite3_column_text(row, 0);
    if (path != NULL && search->recorded.count < PATHS_MOST) {
        const char *name = file_name(path);
        char *stem = strndup(name, (size_t)stem_length(name));
        if (stem == NULL) {
            return SJ_ENOMEM;
        }
        search->recorded.items[search->recorded.count++] = stem;
    }
    return SJ_OK;
}

static sj_status read_sums(void *context, sqlite3_stmt *row)
{
    code_search *search = context;
    search->sampled_ns = sqlite3_column_int64(row, 0);
    search->generated_ns = sqlite3_column_int64(row, 1);
    return SJ_OK;
}

/* Adds the time of a file's samples to the search. Rows come in the order of their times, the
 * highest first. */
static sj_status read_file(void *context, sqlite3_stmt *row)
{
    code_search *search = context;
    const char *path = (const char *)sqlite3_column_text(row, 0);
    const int64_t ns = sqlite3_column_int64(row, 1);
    const char *name = path != NULL ? file_name(path) : "";
    search->has_runtime |= is_of_runtime(name);
    if (name[0] == '\0' || is_recorded(&search->recorded, name)) {
        return SJ_OK;
    }
    search->unrecorded_ns += ns;
    const bool is_fixed = sj_selection_is_never_recorded(path);
    char *place = is_fixed ? search->fixed : search->library;
    if (place[0] == '\0') {
        snprintf(place, SJ_UNRECORDED_NAME_BYTES, "%s", name);
        *(is_fixed ? &search->fixed_ns : &search->library_ns) = ns;
    }
    return SJ_OK;
}

/* Appends the program's arguments as words for a shell. Returns false if they do not fit. */
static bool append_arguments(char *const *arguments, sqlite3_str *text)
{
    char word[SJ_UNRECORDED_COMMAND_BYTES];
    for (size_t i = 0; arguments[i] != NULL; i++) {
        const char *shown = sj_shell_word(arguments[i], word, sizeof(word));
        if (shown == NULL) {
            return false;
        }
        sqlite3_str_appendf(text, " %s", shown);
    }
    return true;
}

/* Returns the command line that the session stores, or "". Free with sqlite3_free. */
static char *read_command(sqlite3 *database, int64_t session_id)
{
    sqlite3_stmt *row = NULL;
    char *command = NULL;
    if (sqlite3_prepare_v2(database, sj_unrecorded_code_command_sql, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, session_id);
        const char *text =
            sqlite3_step(row) == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
        command = sqlite3_mprintf("%s", text != NULL && sj_shell_is_plain(text, true) ? text : "");
    }
    sqlite3_finalize(row);
    return command;
}

/* Returns the command that records with `option`, or NULL. `stored` is the session's command line,
 * if `arguments` is NULL. Free the result with sqlite3_free. */
static char *make_command(const char *option, char *const *arguments, const char *stored)
{
    static const char attached[] = "attached to ";
    if (arguments == NULL && strncmp(stored, attached, strlen(attached)) == 0) {
        return strstr(option, "--module") == option /* calls into libraries need a new start */
                   ? sqlite3_mprintf("sojourn attach %s %s", option, stored + strlen(attached))
                   : NULL;
    }
    if (arguments == NULL) {
        return sqlite3_mprintf("sojourn record %s -- %s", option,
                               stored[0] != '\0' ? stored : "PROGRAM ...");
    }
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, "sojourn record %s --", option);
    if (!append_arguments(arguments, text)) {
        sqlite3_str_reset(text);
    }
    return sqlite3_str_finish(text);
}

static void write_command(sqlite3 *database, int64_t session_id, char *const *arguments,
                          bool is_library, sj_unrecorded_code *code)
{
    char pattern[SJ_UNRECORDED_NAME_BYTES + 1];
    char word[SJ_UNRECORDED_NAME_BYTES + 3];
    char option[SJ_UNRECORDED_NAME_BYTES + 16] = "--library-calls";
    snprintf(pattern, sizeof(pattern), "%.*s*", stem_length(code->place), code->place);
    const char *shown = sj_shell_word(pattern, word, sizeof(word));
    if (is_library && shown != NULL) {
        snprintf(option, sizeof(option), "--module %s", shown);
    }
    char *stored = arguments == NULL ? read_command(database, session_id) : NULL;
    char *command = !is_library || shown != NULL
                        ? make_command(option, arguments, stored != NULL ? stored : "")
                        : NULL;
    if (command != NULL && strlen(command) < sizeof(code->command)) {
        snprintf(code->command, sizeof(code->command), "%s", command);
    }
    sqlite3_free(command);
    sqlite3_free(stored);
}

static void choose_place(sqlite3 *database, int64_t session_id, char *const *arguments,
                         code_search *search, sj_unrecorded_code *code)
{
    const int64_t generated_ns = search->has_runtime ? 0 : search->generated_ns;
    const int64_t unrecorded_ns = search->unrecorded_ns + generated_ns;
    const bool is_library =
        search->library_ns > 0 && search->library_ns >= unrecorded_ns / LEAST_SHARE_OF_REST;
    const bool is_fixed = !is_library && search->fixed_ns >= generated_ns;
    const int64_t place_ns = is_library ? search->library_ns
                             : is_fixed ? search->fixed_ns
                                        : generated_ns;
    if (search->sampled_ns < LEAST_NS || place_ns <= 0 ||
        100 * unrecorded_ns < LEAST_PERCENT * search->sampled_ns) {
        return;
    }
    code->percent = (int)(100 * place_ns / search->sampled_ns);
    snprintf(code->place, sizeof(code->place), "%s",
             is_library ? search->library
             : is_fixed ? search->fixed
                        : "generated code");
    if (is_library || is_fixed) {
        write_command(database, session_id, arguments, is_library, code);
    }
}

sj_status sj_unrecorded_code_read(sqlite3 *database, int64_t session_id, char *const *arguments,
                                  sj_unrecorded_code *code, sj_error *error)
{
    const sj_sql_binds session = SJ_SQL_INTS(session_id);
    *code = (sj_unrecorded_code){0};
    code_search *search = calloc(1, sizeof(*search));
    if (search == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_status status =
        sj_sql_each(database, sj_unrecorded_code_samples_sql, session, read_sums, search, error);
    if (status == SJ_OK && search->sampled_ns >= LEAST_NS) {
        status = sj_sql_each(database, sj_unrecorded_code_recorded_sql, session, read_recorded,
                             search, error);
        if (status == SJ_OK) {
            status = sj_sql_each(database, sj_unrecorded_code_files_sql, session, read_file, search,
                                 error);
        }
        if (status == SJ_OK) {
            choose_place(database, session_id, arguments, search, code);
        }
    }
    for (size_t i = 0; i < search->recorded.count; i++) {
        free(search->recorded.items[i]);
    }
    free(search);
    return status;
}

void sj_unrecorded_code_print(FILE *file, const sj_unrecorded_code *code, const char *first,
                              const char *next)
{
    char name[SJ_FUNCTION_NAME_BYTES];
    if (code->percent == 0) {
        return;
    }
    fprintf(file, "%s%d %% of the CPU time passed in %s, which is not recorded%s\n", first,
            code->percent, sj_function_name_fit(code->place, NAME_COLUMNS, name),
            code->command[0] != '\0' ? ":" : "");
    if (code->command[0] != '\0') {
        fprintf(file, "%s%s\n", next, code->command);
    }
}

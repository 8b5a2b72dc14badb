#include "collector-server/cli/completion.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/store/sql.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static sj_status print_word(void *context, sqlite3_stmt *row)
{
    (void)context;
    puts((const char *)sqlite3_column_text(row, 0));
    return ferror(stdout) ? SJ_EIO : SJ_OK;
}

/* Prints nothing more if the database cannot be read: a shell that completes a word has no place
 * for messages. */
static void print_rows(const char *file, const char *sql)
{
    sqlite3 *database = NULL;
    sj_error ignored;
    if (sj_database_choose(file, &database, &ignored) == SJ_OK) {
        (void)!sj_sql_each(database, sql, (sj_sql_binds){0}, print_word, NULL, &ignored);
        sqlite3_close(database);
    }
}

static void print_processes(void)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat status;
        if (isdigit((unsigned char)entry->d_name[0]) &&
            fstatat(dirfd(folder), entry->d_name, &status, 0) == 0 &&
            (status.st_uid == geteuid() || geteuid() == 0) &&
            strtol(entry->d_name, NULL, 10) != getpid()) {
            puts(entry->d_name);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

bool sj_completion_words(const char *kind, const char *file)
{
    if (strcmp(kind, "sessions") == 0) {
        print_rows(file, "SELECT 'last' UNION ALL SELECT CAST(session_id AS TEXT) FROM sessions");
    } else if (strcmp(kind, "functions") == 0) {
        print_rows(file, "SELECT DISTINCT f.name FROM function_stats AS s JOIN functions AS f "
                         "USING (function_id) WHERE f.name NOT LIKE '%' || char(10) || '%' "
                         "ORDER BY f.name LIMIT 20000");
    } else if (strcmp(kind, "processes") == 0) {
        print_processes();
    } else {
        return false;
    }
    return true;
}

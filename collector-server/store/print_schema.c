/* Run by the build: prints the schema that all migrations together make, as a C string, so that a
 * new database takes one step. Altering tables step by step takes seven times the CPU.
 *   print_schema > schema.inc */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "collector-server/store/migrations.inc"

static const char *const OBJECTS =
    "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' "
    "ESCAPE '\\' ORDER BY rowid";

static int migrate(sqlite3 *database)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof(migrations) / sizeof(migrations[0]) && result == SQLITE_OK; ++i) {
        result = sqlite3_exec(database, migrations[i], NULL, NULL, NULL);
    }
    return result;
}

static void print_bytes(const char *text)
{
    for (; *text != '\0'; ++text) {
        printf("%d,", *text);
    }
}

static int print_schema(sqlite3 *database)
{
    sqlite3_stmt *objects = NULL;
    int result = sqlite3_prepare_v2(database, OBJECTS, -1, &objects, NULL);
    printf("static const char schema[] = {");
    while (result == SQLITE_OK && sqlite3_step(objects) == SQLITE_ROW) {
        print_bytes((const char *)sqlite3_column_text(objects, 0));
        print_bytes(";\n");
    }
    printf("0};\n");
    return result == SQLITE_OK ? sqlite3_finalize(objects) : result;
}

int main(void)
{
    sqlite3 *database = NULL;
    if (sqlite3_open(":memory:", &database) != SQLITE_OK || migrate(database) != SQLITE_OK ||
        print_schema(database) != SQLITE_OK) {
        fprintf(stderr, "print_schema: %s\n", sqlite3_errmsg(database));
        return 1;
    }
    sqlite3_close(database);
    return fflush(stdout) == 0 ? 0 : 1;
}

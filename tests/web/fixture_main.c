/* The server of the browser tests. It creates a database, serves it, and changes it on request.
 *
 *   web_fixture FILE EXTRA_FUNCTIONS
 *
 * It prints the URL with the token. Then it carries out each line of its input and answers "done":
 *   add COMMAND      adds a recording session with 100 calls
 *   grow CALLS       sets the number of session 3's calls
 *   sql STATEMENTS   runs the statements
 * It ends at the end of its input. */
#include "collector-server/http/http.h"
#include "collector-server/http/question_worker.h"
#include "tests/collector-server/http/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void obey(sqlite3 *database, char *line)
{
    char sql[128];
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "add ", 4) == 0) {
        fixture_add_session(database, line + 4, 100);
    } else if (strncmp(line, "grow ", 5) == 0) {
        sqlite3_snprintf(sizeof(sql), sql,
                         "UPDATE sessions SET stored_calls = %lld WHERE session_id = 3",
                         atoll(line + 5));
        fixture_run(database, sql);
    } else if (strncmp(line, "sql ", 4) == 0) {
        fixture_run(database, line + 4);
    } else {
        fprintf(stderr, "unknown order: %s\n", line);
        exit(2);
    }
    printf("done\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    if (argc != 3) {
        fprintf(stderr, "usage: web_fixture FILE EXTRA_FUNCTIONS\n");
        return 2;
    }
    sqlite3 *database = fixture_create(argv[1], (unsigned)atoi(argv[2]));
    const sj_http_options options = {.database_path = argv[1]};
    sj_http *server = NULL;
    sj_error error;
    if (sj_http_start(&options, &server, &error) != SJ_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%s#token=%s\n", sj_http_url(server), sj_http_token(server));
    fflush(stdout);
    char line[2048];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        obey(database, line);
    }
    sj_http_stop(server);
    sqlite3_close(database);
    return 0;
}

/* A store in its own file and the maker of its frames, for cmocka tests. A failure fails the
 * test. */
#ifndef SJ_TESTS_COLLECTOR_SERVER_STORE_LAB_FILE_H
#define SJ_TESTS_COLLECTOR_SERVER_STORE_LAB_FILE_H

#include "collector-server/store/store.h"
#include "tests/collector-server/store/frame_maker.h"

typedef struct lab_file {
    char path[64];
    sj_store *store;
    frame_maker maker;
    sj_error error;
} lab_file;

/* Selects all aggregates of the database, in a fixed order. */
extern const char lab_file_sums_sql[];

int lab_file_set_up(void **state);
int lab_file_tear_down(void **state);
void lab_file_remove(const char *path);
void lab_file_open(lab_file *lab, uint64_t max_bytes, size_t graph_bytes);

sj_status lab_file_apply(lab_file *lab, sj_slice frame, bool *duplicate);
void lab_file_put(lab_file *lab, sj_slice frame);
void lab_file_put_metadata(lab_file *lab);
void lab_file_begin(lab_file *lab);
void lab_file_commit(lab_file *lab);

/* Returns the rows of a query as text. Free it with sqlite3_free. */
char *lab_file_ask(const lab_file *lab, const char *sql);
void lab_file_expect(const lab_file *lab, const char *sql, const char *reply);

/* Runs statements without the store, as other programs do. */
void lab_file_run(const lab_file *lab, const char *sql);

#endif

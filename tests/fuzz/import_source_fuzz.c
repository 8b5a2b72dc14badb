/* Imports a file of any bytes. The first byte chooses the importer. An import may fail, with a
 * message. What it imports must be verifiable. */
#include "collector-server/import/importer.h"
#include "collector-server/store/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char file_path[64], database_path[80];

static void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "import_source_fuzz: %s\n", what);
        abort();
    }
}

static void remove_files(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[96];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", database_path, ends[i]);
        unlink(name);
    }
    unlink(file_path);
}

static void report(void *context, const sj_finding *finding)
{
    (void)context;
    must(false, finding->what);
}

static void verify(void)
{
    sj_error error = {0};
    sj_store *store = NULL;
    sj_verified verified;
    const sj_store_options options = {.path = database_path};
    const sj_verify_options checks = {.check_only = true, .report = report};
    must(sj_store_open(&options, &store, &error) == SJ_OK, error.text);
    must(sj_store_verify(store, &checks, &verified, &error) == SJ_OK, error.text);
    sj_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = 0;
    while (sj_importers[count] != NULL) {
        count++;
    }
    if (size == 0) {
        return 0;
    }
    if (file_path[0] == '\0') {
        snprintf(file_path, sizeof(file_path), "/dev/shm/import_source_fuzz.%d", (int)getpid());
        snprintf(database_path, sizeof(database_path), "%s.db", file_path);
        (void)atexit(remove_files);
    }
    FILE *file = fopen(file_path, "wb");
    must(file != NULL && fwrite(data + 1, 1, size - 1, file) == size - 1 && fclose(file) == 0,
         "cannot write the file");
    const sj_importer *used = NULL;
    sj_import_sums sums;
    sj_error error = {0};
    const sj_import_request request = {
        .path = file_path, .importer = sj_importers[data[0] % count], .database = database_path};
    const sj_status status = sj_import_file(&request, &used, &sums, &error);
    must(status == SJ_OK || error.text[0] != '\0', "a failure without a message");
    if (status == SJ_OK) {
        verify();
    }
    remove_files();
    return 0;
}

#include "collector-server/cli/embedded.h"

#include "collector-server/ingest/ingest.h"
#include "collector-server/store/page_size.h"
#include "collector-server/store/store.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct sj_embedded {
    char path[PATH_MAX];
    char url[64];
    bool created;
    sj_store *store;
    sj_ingest *ingest;
};

sj_status sj_embedded_start(const char *path, sj_embedded **embedded, sj_error *error)
{
    static atomic_uint number;
    sj_embedded *started = calloc(1, sizeof(*started));
    if (started == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    snprintf(started->path, sizeof(started->path), "%s", path);
    /* Each collector needs its own address: the previous one may close its address with a delay. */
    snprintf(started->url, sizeof(started->url), "inproc://sojourn-%d-%u", (int)getpid(),
             atomic_fetch_add(&number, 1));
    started->created = access(path, F_OK) != 0;
    const sj_store_options store = {
        .path = started->path, .create = true, .aggregates_delay_ms = SJ_AGGREGATES_DELAY_MS};
    const char *const urls[] = {started->url};
    const sj_ingest_options ingest = {.urls = urls, .url_count = 1, .window = SJ_EMBEDDED_WINDOW};
    sj_status status = sj_store_open(&store, &started->store, error);
    if (status == SJ_OK) {
        status = sj_ingest_start(started->store, &ingest, &started->ingest, error);
    }
    if (status != SJ_OK) {
        sj_embedded_stop(started, true);
        return status;
    }
    *embedded = started;
    return SJ_OK;
}

const char *sj_embedded_url(const sj_embedded *embedded)
{
    return embedded->url;
}

static void remove_database(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    char name[PATH_MAX + 8];
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

void sj_embedded_stop(sj_embedded *embedded, bool discard)
{
    if (embedded == NULL) {
        return;
    }
    if (embedded->ingest != NULL) {
        sj_ingest_stop(embedded->ingest);
    }
    const bool opened = embedded->store != NULL;
    sj_store_close(embedded->store);
    if (discard && embedded->created) {
        remove_database(embedded->path);
    } else if (opened) {
        sj_database_pack(embedded->path);
    }
    free(embedded);
}

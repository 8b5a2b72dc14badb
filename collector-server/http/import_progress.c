#include "collector-server/http/import_progress.h"

#include "collector-server/fleet/secret.h"
#include "collector-server/http/request_pool.h"
#include "proto/base/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct copied_import {
    char import[SJ_SECRET_TEXT_BYTES]; /* "": unused entry */
    double part;
} copied_import;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static copied_import all[SJ_REQUEST_THREADS];
static _Thread_local copied_import *own;

/* Returns the entry of an import, or NULL. The caller holds `lock`. */
static copied_import *find(const char *import)
{
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(all[i].import, import) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

/* Stores the progress of the calling thread's import. */
static void show(const sj_progress *progress)
{
    pthread_mutex_lock(&lock);
    own->part = progress->part < 0 ? 0 : progress->part;
    pthread_mutex_unlock(&lock);
}

void sj_import_progress_watch(const char *import)
{
    pthread_mutex_lock(&lock);
    own = find("");
    if (own != NULL) {
        snprintf(own->import, sizeof(own->import), "%s", import);
        own->part = 0;
    }
    pthread_mutex_unlock(&lock);
    sj_progress_watch(own != NULL ? show : NULL);
}

void sj_import_progress_leave(void)
{
    sj_progress_watch(NULL);
    pthread_mutex_lock(&lock);
    if (own != NULL) {
        own->import[0] = '\0';
    }
    own = NULL;
    pthread_mutex_unlock(&lock);
}

double sj_import_progress_of(const char *import)
{
    pthread_mutex_lock(&lock);
    const copied_import *found = import[0] != '\0' ? find(import) : NULL;
    const double part = found != NULL ? found->part : -1;
    pthread_mutex_unlock(&lock);
    return part;
}

#include "collector-server/sojournd/database_watch.h"

#include "collector-server/store/database.h"
#include "collector-server/store/file_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

struct sj_database_watch {
    const char *path;
    struct stat about; /* state of the file when the watch was opened */
    sqlite3 *database;
    sj_file_watch file;
    pthread_mutex_t lock; /* guards the connection and `file` */
};

sj_status sj_database_watch_open(const char *path, sj_database_watch **watch, sj_error *error)
{
    sj_database_watch *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->path = path;
    sj_status status = sj_database_open(path, SJ_DATABASE_READ, &made->database, error);
    if (status == SJ_OK && stat(path, &made->about) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot read the attributes of %s", path);
    }
    if (status == SJ_OK) {
        status = sj_file_watch_check(&made->file, made->database, path, error);
    }
    if (status != SJ_OK) {
        sj_database_watch_close(made);
        return status;
    }
    *watch = made;
    return SJ_OK;
}

void sj_database_watch_close(sj_database_watch *watch)
{
    if (watch != NULL) {
        sqlite3_close(watch->database);
        pthread_mutex_destroy(&watch->lock);
        free(watch);
    }
}

sj_status sj_database_watch_check(sj_database_watch *watch, sj_error *error)
{
    struct stat now;
    if (stat(watch->path, &now) != 0 || now.st_ino != watch->about.st_ino ||
        now.st_dev != watch->about.st_dev) {
        return sj_fail(error, SJ_EIO,
                       "%s was removed or replaced while it was open; put it back as it was, or "
                       "restart this program",
                       watch->path);
    }
    pthread_mutex_lock(&watch->lock);
    const sj_status status = sj_file_watch_check(&watch->file, watch->database, watch->path, error);
    pthread_mutex_unlock(&watch->lock);
    return status;
}

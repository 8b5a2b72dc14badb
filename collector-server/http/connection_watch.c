/* Design notes: a socket is only shut down, under the lock under which libmicrohttpd's closing
 * notification removes it, so the descriptor cannot have become another file meanwhile; the
 * library then sees the end of the stream and closes it in its own thread. */
#include "collector-server/http/connection_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

typedef struct watched {
    struct MHD_Connection *connection; /* NULL: free */
    int socket;
    uint64_t deadline_ns;
} watched;

struct sj_connection_watch {
    pthread_mutex_t lock;
    watched entries[SJ_HTTP_CONNECTIONS_MAX];
};

static uint64_t in_seconds(unsigned seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec + seconds) * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

sj_status sj_connection_watch_new(sj_connection_watch **watch)
{
    sj_connection_watch *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    pthread_mutex_init(&made->lock, NULL);
    *watch = made;
    return SJ_OK;
}

void sj_connection_watch_free(sj_connection_watch *watch)
{
    if (watch != NULL) {
        pthread_mutex_destroy(&watch->lock);
        free(watch);
    }
}

static watched *find_entry(sj_connection_watch *watch, const struct MHD_Connection *connection)
{
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
        if (watch->entries[i].connection == connection) {
            return &watch->entries[i];
        }
    }
    return NULL;
}

void sj_connection_watch_notify(void *context, struct MHD_Connection *connection,
                                void **socket_context, enum MHD_ConnectionNotificationCode code)
{
    sj_connection_watch *watch = context;
    (void)socket_context;
    pthread_mutex_lock(&watch->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        watched *free_entry = find_entry(watch, NULL);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (free_entry != NULL && info != NULL) {
            *free_entry = (watched){.connection = connection,
                                    .socket = info->connect_fd,
                                    .deadline_ns = in_seconds(SJ_HTTP_REQUEST_SECONDS)};
        }
    } else {
        watched *entry = find_entry(watch, connection);
        if (entry != NULL) {
            *entry = (watched){0};
        }
    }
    pthread_mutex_unlock(&watch->lock);
}

static void set_deadline(sj_connection_watch *watch, const struct MHD_Connection *connection,
                         uint64_t deadline_ns)
{
    pthread_mutex_lock(&watch->lock);
    watched *entry = find_entry(watch, connection);
    if (entry != NULL) {
        entry->deadline_ns = deadline_ns;
    }
    pthread_mutex_unlock(&watch->lock);
}

void sj_connection_watch_answering(sj_connection_watch *watch, struct MHD_Connection *connection,
                                   int unlimited)
{
    set_deadline(watch, connection, unlimited ? UINT64_MAX : in_seconds(SJ_HTTP_RESPONSE_SECONDS));
}

void sj_connection_watch_answered(sj_connection_watch *watch, struct MHD_Connection *connection)
{
    set_deadline(watch, connection, in_seconds(SJ_HTTP_REQUEST_SECONDS));
}

void sj_connection_watch_sweep(sj_connection_watch *watch, uint64_t now_ns)
{
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_MAX; i++) {
        watched *entry = &watch->entries[i];
        if (entry->connection != NULL && now_ns > entry->deadline_ns) {
            shutdown(entry->socket, SHUT_RDWR);
            entry->deadline_ns = UINT64_MAX;
        }
    }
    pthread_mutex_unlock(&watch->lock);
}

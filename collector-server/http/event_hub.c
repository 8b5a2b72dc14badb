/* Design notes. A ring holds the latest messages, which are numbered. A stream stores the number of
 * the next message that it needs. If that message was overwritten, the stream gets `event: resync`
 * instead. give_bytes suspends a stream without a message, and the hub's thread resumes it.
 *
 * libmicrohttpd calls give_bytes and end_stream on its own threads. The hub's lock serialises these
 * functions and the hub's thread. */
#include "collector-server/http/event_hub.h"

#include "collector-server/http/reply.h"
#include "collector-server/query/session_changes.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { RING_SIZE = 16, HEARTBEAT_POLLS = 30 };

typedef struct hub_message {
    char *text;    /* for streams that report all sessions; owned */
    json_t *items; /* the changed sessions; NULL: every stream gets `text`; owned */
} hub_message;

typedef struct event_stream {
    sj_event_hub *hub;
    struct event_stream *next;
    struct MHD_Connection *connection;
    sj_visitor visitor;
    int64_t session; /* the only session that the stream reports; 0: all sessions */
    uint64_t next_message;
    size_t offset; /* bytes of `text` that were sent */
    char *text;    /* text that is being sent; owned */
    int socket;
    bool suspended;
    bool is_ended; /* the client has disconnected, or its token has ended */
} event_stream;

struct sj_event_hub {
    pthread_mutex_t lock;
    pthread_cond_t stop_wanted;
    pthread_t thread;
    sqlite3 *database;
    sj_session_changes *changes;
    sj_connection_watch *watch;
    const sj_login *login;
    event_stream *streams;
    size_t stream_count;
    hub_message ring[RING_SIZE]; /* message n is at n % RING_SIZE */
    uint64_t next_message;
    bool stopping;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Returns a "sessions" event with the data {"items": items}, or NULL if out of memory. The caller
 * frees the text. */
static char *event_text(json_t *items)
{
    char *data = json_dumps(items, JSON_COMPACT);
    char *text = NULL;
    if (data != NULL && asprintf(&text, "event: sessions\ndata: {\"items\":%s}\n\n", data) < 0) {
        text = NULL;
    }
    free(data);
    return text;
}

/* Returns a "sessions" event with only the given session. Returns NULL if the message does not
 * report that session, or if out of memory. The caller frees the text. */
static char *text_about(const hub_message *message, int64_t session)
{
    char id[24];
    size_t index;
    json_t *item;
    snprintf(id, sizeof(id), "%" PRId64, session);
    json_array_foreach(message->items, index, item)
    {
        const char *of = json_string_value(json_object_get(item, "id"));
        if (of != NULL && strcmp(of, id) == 0) {
            json_t *alone = json_pack("[O]", item);
            char *text = alone != NULL ? event_text(alone) : NULL;
            json_decref(alone);
            return text;
        }
    }
    return NULL;
}

/* Returns the next text for a stream, or NULL if no new message concerns the stream. The caller
 * holds the lock and frees the text. */
static char *next_text(event_stream *stream)
{
    const sj_event_hub *hub = stream->hub;
    char *text = NULL;
    if (hub->next_message - stream->next_message > RING_SIZE) {
        stream->next_message = hub->next_message;
        return strdup("event: resync\ndata: {}\n\n");
    }
    while (text == NULL && stream->next_message != hub->next_message) {
        const hub_message *message = &hub->ring[stream->next_message++ % RING_SIZE];
        text = stream->session != 0 && message->items != NULL ? text_about(message, stream->session)
                                                              : strdup(message->text);
    }
    return text;
}

static ssize_t give_bytes(void *context, uint64_t position, char *buffer, size_t capacity)
{
    event_stream *stream = context;
    sj_event_hub *hub = stream->hub;
    ssize_t given = 0;
    (void)position;
    pthread_mutex_lock(&hub->lock);
    if (hub->stopping || stream->is_ended) {
        given = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (stream->text == NULL && (stream->text = next_text(stream)) == NULL) {
        stream->suspended = true;
        MHD_suspend_connection(stream->connection);
    }
    if (stream->text != NULL && given == 0) {
        const size_t left = strlen(stream->text) - stream->offset;
        given = (ssize_t)(left < capacity ? left : capacity);
        memcpy(buffer, stream->text + stream->offset, (size_t)given);
        stream->offset += (size_t)given;
        if ((size_t)given == left) {
            free(stream->text);
            stream->text = NULL;
            stream->offset = 0;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    return given;
}

static void end_stream(void *context)
{
    event_stream *stream = context;
    sj_event_hub *hub = stream->hub;
    pthread_mutex_lock(&hub->lock);
    event_stream **link = &hub->streams;
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link == stream) {
        *link = stream->next;
        hub->stream_count--;
    }
    pthread_mutex_unlock(&hub->lock);
    free(stream->text);
    free(stream);
}

static event_stream *add_stream(sj_event_hub *hub, const sj_request *request, int64_t session)
{
    struct MHD_Connection *connection = request->connection;
    event_stream *stream = calloc(1, sizeof(*stream));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char *greeting = strdup("retry: 2000\nevent: hello\ndata: {}\n\n");
    pthread_mutex_lock(&hub->lock);
    const bool refused = stream == NULL || greeting == NULL || info == NULL || hub->stopping ||
                         hub->stream_count >= SJ_EVENT_STREAMS_MAX;
    if (!refused) {
        *stream = (event_stream){.hub = hub,
                                 .next = hub->streams,
                                 .connection = connection,
                                 .socket = info->connect_fd,
                                 .visitor = request->visitor,
                                 .session = session,
                                 .next_message = hub->next_message,
                                 .text = greeting};
        hub->streams = stream;
        hub->stream_count++;
    }
    pthread_mutex_unlock(&hub->lock);
    if (refused) {
        free(stream);
        free(greeting);
        return NULL;
    }
    return stream;
}

enum MHD_Result sj_event_hub_subscribe(sj_event_hub *hub, const sj_request *request,
                                       int64_t session)
{
    struct MHD_Connection *connection = request->connection;
    event_stream *stream = add_stream(hub, request, session);
    if (stream == NULL) {
        return sj_reply_error(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "too many event streams are open");
    }
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, give_bytes, stream, end_stream);
    if (response == NULL) {
        end_stream(stream);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return sj_reply_send(connection, MHD_HTTP_OK, response);
}

/* Resumes all suspended connections. The caller holds the lock. */
static void resume_all(sj_event_hub *hub)
{
    for (event_stream *stream = hub->streams; stream != NULL; stream = stream->next) {
        if (stream->suspended) {
            stream->suspended = false;
            MHD_resume_connection(stream->connection);
        }
    }
}

static bool has_disconnected(const event_stream *stream)
{
    char byte;
    return recv(stream->socket, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Ends streams whose visitor's token has ended, and suspended streams whose client has
 * disconnected. libmicrohttpd does not check suspended connections, so a closed tab would occupy a
 * stream until the next message. The socket of a listed stream is open. */
static void end_streams(sj_event_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    for (event_stream *stream = hub->streams; stream != NULL; stream = stream->next) {
        stream->is_ended = stream->is_ended || !sj_login_is_valid(hub->login, &stream->visitor) ||
                           (stream->suspended && has_disconnected(stream));
        if (stream->is_ended && stream->suspended) {
            stream->suspended = false;
            MHD_resume_connection(stream->connection);
        }
    }
    pthread_mutex_unlock(&hub->lock);
}

/* Adds a message and resumes all suspended streams. Takes ownership of `text`, and adds a reference
 * to `items`. Does nothing if `text` is NULL. */
static void publish(sj_event_hub *hub, char *text, json_t *items)
{
    if (text == NULL) {
        return;
    }
    pthread_mutex_lock(&hub->lock);
    hub_message *slot = &hub->ring[hub->next_message % RING_SIZE];
    free(slot->text);
    json_decref(slot->items);
    *slot = (hub_message){.text = text, .items = json_incref(items)};
    hub->next_message++;
    resume_all(hub);
    pthread_mutex_unlock(&hub->lock);
}

/* Waits for the next poll. Returns false if the hub is stopping. */
static bool wait_for_poll(sj_event_hub *hub)
{
    const uint64_t until_ns = now_ns() + (uint64_t)SJ_EVENT_POLL_MS * 1000000u;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    pthread_mutex_lock(&hub->lock);
    int waited = 0;
    while (!hub->stopping && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&hub->stop_wanted, &hub->lock, &until);
    }
    const bool may_continue = !hub->stopping;
    pthread_mutex_unlock(&hub->lock);
    return may_continue;
}

static void *run_hub(void *context)
{
    sj_event_hub *hub = context;
    for (unsigned polls = 1; wait_for_poll(hub); polls++) {
        end_streams(hub);
        json_t *changed = sj_session_changes_poll(hub->changes, hub->database);
        if (changed != NULL) {
            json_t *items = json_object_get(changed, "items");
            publish(hub, event_text(items), items);
            json_decref(changed);
        } else if (polls % HEARTBEAT_POLLS == 0) {
            publish(hub, strdup(": still here\n\n"), NULL);
        }
        sj_connection_watch_sweep(hub->watch, now_ns());
    }
    return NULL;
}

static void init_locks(sj_event_hub *hub)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&hub->stop_wanted, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&hub->lock, NULL);
}

sj_status sj_event_hub_start(sj_database_pool *databases, sj_connection_watch *watch,
                             const sj_login *login, sj_event_hub **hub, sj_error *error)
{
    sj_event_hub *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    init_locks(made);
    made->watch = watch;
    made->login = login;
    made->changes = sj_session_changes_new();
    sj_status status = made->changes != NULL
                           ? sj_database_pool_open(databases, &made->database, error)
                           : sj_fail(error, SJ_ENOMEM, "out of memory");
    if (status == SJ_OK) {
        json_decref(sj_session_changes_poll(made->changes, made->database));
        const int code = pthread_create(&made->thread, NULL, run_hub, made);
        if (code != 0) {
            status = sj_fail(error, SJ_EIO, "cannot start a thread: %s", strerror(code));
        }
    }
    if (status != SJ_OK) {
        sj_event_hub_free(made);
        return status;
    }
    *hub = made;
    return SJ_OK;
}

void sj_event_hub_stop(sj_event_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->stopping = true;
    pthread_cond_signal(&hub->stop_wanted);
    pthread_mutex_unlock(&hub->lock);
    pthread_join(hub->thread, NULL);
    pthread_mutex_lock(&hub->lock);
    resume_all(hub);
    pthread_mutex_unlock(&hub->lock);
}

void sj_event_hub_free(sj_event_hub *hub)
{
    if (hub == NULL) {
        return;
    }
    for (size_t i = 0; i < RING_SIZE; i++) {
        free(hub->ring[i].text);
        json_decref(hub->ring[i].items);
    }
    sj_session_changes_free(hub->changes);
    sqlite3_close(hub->database);
    pthread_cond_destroy(&hub->stop_wanted);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

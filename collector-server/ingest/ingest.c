/* Design notes
 *
 * Three threads. The receiver takes messages off a raw REP socket (the reply's way back lies in the
 * message header, so any number of requests may be open) and answers PINGs at once; when the queue
 * holds `queue_bytes` it stops receiving, and NNG and the kernel slow the senders. The writer takes
 * all that is queued, stores it in one transaction, and sends the replies after COMMIT: under load
 * a commit covers what arrived during the one before. A commit writes whole pages of every index,
 * however few blocks it has: while many senders send (so that none waits for its window), it
 * gathers for GATHER_MS. The watchdog pings listeners.
 *
 * A reply that cannot be delivered is dropped by NNG; the sender asks again and is told
 * "duplicate". */
#include "collector-server/ingest/ingest.h"

#include "collector-server/ingest/complaints.h"
#include "collector-server/ingest/known_pipes.h"
#include "collector-server/ingest/listener.h"
#include "proto/sojourn.pb-c.h"

#include <malloc.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    DEFAULT_QUEUE_BYTES = 64 << 20,
    DEFAULT_WINDOW = 16,
    MAX_WINDOW = 48, /* NNG keeps 64 replies a connection and drops what is beyond */
    DEFAULT_WATCHDOG_MS = 500,
    MANY_SENDERS = 8,
    GATHER_MS = 10,
    IDLE_MAINTAIN_MS = 1000,
    KEPT_HEAP_BYTES = 16 << 20,
    REPLY_TIMEOUT_MS = 100,
    ACK_BYTES = 1024,
    MESSAGE_OVERHEAD_BYTES = 256
};

typedef struct queued_frame {
    nng_msg *message;
    int sender; /* its connection */
    uint64_t received_ns;
    sj_status status;
    bool duplicate;
    sj_error error;
} queued_frame;

typedef struct frame_list {
    queued_frame *frames;
    size_t count;
    size_t capacity;
    size_t bytes;
} frame_list;

struct sj_ingest {
    sj_store *store;
    nng_socket socket;
    sj_listener *listeners;
    size_t listener_count;
    size_t queue_bytes;
    uint32_t window;
    uint32_t watchdog_ms;
    nng_aio *receive;
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* something is queued, or stopping */
    pthread_cond_t taken;   /* the queue has room, or stopping */
    bool stopping;
    bool receiver_done;
    bool paused; /* the receiver waits for room */
    sj_ingest_gate gate;
    sj_known_pipes *known; /* connections that said a good HELLO; NULL: all may speak */
    nng_tls_config *tls;
    char *certificate;
    frame_list queue;
    pthread_t receiver, writer, watchdog;
    unsigned threads_started;
    sj_ingest_counters counters;
    sj_complaints complaints;
};

static void deadline_after(struct timespec *deadline, uint32_t ms)
{
    clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += ms / 1000;
    deadline->tv_nsec += (long)(ms % 1000) * 1000000;
    if (deadline->tv_nsec >= 1000000000) {
        deadline->tv_sec++;
        deadline->tv_nsec -= 1000000000;
    }
}

static uint64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sends the answer along the way that the message came; takes the message. */
static void reply(sj_ingest *ingest, nng_msg *message, uint64_t received_ns, sj_status status,
                  const char *text, bool duplicate)
{
    const bool no_credit =
        status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EAGAIN;
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    uint8_t header[ACK_BYTES];
    uint8_t frame[ACK_BYTES + SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    ack.status = status;
    ack.message = (char *)(uintptr_t)text;
    ack.window = no_credit ? 0 : ingest->window;
    ack.duplicate = duplicate;
    ack.major = SJ_FRAME_MAJOR;
    ack.minor = SJ_FRAME_MINOR;
    ack.server_version = (char *)(uintptr_t)SJ_VERSION;
    ack.received_realtime_ns = received_ns;
    ack.sent_realtime_ns = realtime_ns();
    const sj_slice packed = {.data = header, .size = sojourn__ack__pack(&ack, header)};
    nng_msg_clear(message);
    if (sj_frame_write(SJ_FRAME_ACK, packed, (sj_slice){0}, frame, sizeof(frame), &size) != SJ_OK ||
        nng_msg_append(message, frame, size) != 0 || nng_sendmsg(ingest->socket, message, 0) != 0) {
        nng_msg_free(message);
    }
}

static sj_status enqueue(frame_list *list, nng_msg *message, uint64_t received_ns)
{
    if (list->count == list->capacity) {
        const size_t wanted = list->capacity == 0 ? 64 : list->capacity * 2;
        queued_frame *moved = realloc(list->frames, wanted * sizeof(*moved));
        if (moved == NULL) {
            return SJ_ENOMEM;
        }
        list->frames = moved;
        list->capacity = wanted;
    }
    list->frames[list->count++] = (queued_frame){.message = message,
                                                 .sender = nng_pipe_id(nng_msg_get_pipe(message)),
                                                 .received_ns = received_ns};
    list->bytes += nng_msg_len(message) + MESSAGE_OVERHEAD_BYTES;
    return SJ_OK;
}

static void count_stranger(sj_ingest *ingest)
{
    pthread_mutex_lock(&ingest->lock);
    ingest->counters.strangers++;
    pthread_mutex_unlock(&ingest->lock);
}

/* judge_hello decides on a sender that says who it is; when it is refused, the message has been
 * answered. */
static bool judge_hello(sj_ingest *ingest, nng_msg *message, const sj_frame_view *view,
                        uint64_t received_ns)
{
    sj_error error = {0};
    int64_t pass = 0;
    Sojourn__Hello *hello = sojourn__hello__unpack(NULL, view->header.size, view->header.data);
    sj_status status = hello != NULL
                           ? ingest->gate.hello(ingest->gate.context, hello, &pass, &error)
                           : sj_fail(&error, SJ_ECORRUPT, "the HELLO cannot be read");
    if (hello != NULL) {
        sojourn__hello__free_unpacked(hello, NULL);
    }
    if (status == SJ_OK) {
        const int pipe = nng_pipe_id(nng_msg_get_pipe(message));
        status = sj_known_pipes_add(ingest->known, (uint32_t)pipe, pass);
    }
    if (status != SJ_OK) {
        sj_complain(&ingest->complaints, nng_msg_get_pipe(message), error.text);
        count_stranger(ingest);
        reply(ingest, message, received_ns, status, error.text, false);
    }
    return status == SJ_OK;
}

/* is_welcome judges the sender of a frame; when it is not, the message has been answered. */
static bool is_welcome(sj_ingest *ingest, nng_msg *message, const sj_frame_view *view,
                       uint64_t received_ns)
{
    if (ingest->known == NULL) {
        return true;
    }
    if (view->type == SJ_FRAME_HELLO) {
        return judge_hello(ingest, message, view, received_ns);
    }
    const uint32_t pipe = (uint32_t)nng_pipe_id(nng_msg_get_pipe(message));
    const int64_t pass = sj_known_pipes_pass(ingest->known, pipe);
    if (pass != 0 && ingest->gate.has_pass(ingest->gate.context, pass)) {
        return true;
    }
    count_stranger(ingest);
    if (pass != 0) {
        sj_known_pipes_remove(ingest->known, pipe);
        reply(ingest, message, received_ns, SJ_EPERM, "the device's token was revoked or renewed",
              false);
    } else {
        /* Not final: NNG sends again over a new connection before the uplink says hello on it. */
        reply(ingest, message, received_ns, SJ_EAGAIN, "say hello first", false);
    }
    return false;
}

/* take_aside handles what is not for the store; false: it is. */
static bool take_aside(sj_ingest *ingest, nng_msg *message, const sj_frame_view *view,
                       uint64_t received_ns)
{
    if (view->type == SJ_FRAME_PING) {
        reply(ingest, message, received_ns, SJ_OK, "", false);
        return true;
    }
    if (view->type >= SJ_FRAME_ENROL && view->type <= SJ_FRAME_FLEET_LAST) {
        if (ingest->gate.fleet != NULL) {
            ingest->gate.fleet(ingest->gate.context, ingest->socket, message);
        } else {
            reply(ingest, message, received_ns, SJ_EUNSUPPORTED, "this collector has no fleet",
                  false);
        }
        return true;
    }
    return !is_welcome(ingest, message, view, received_ns);
}

static void take_message(sj_ingest *ingest, nng_msg *message)
{
    const uint64_t received_ns = realtime_ns();
    sj_frame_view view;
    const sj_slice bytes = {.data = nng_msg_body(message), .size = nng_msg_len(message)};
    const sj_status status = sj_frame_read(bytes, &view);
    const bool whole = status == SJ_OK && view.frame_bytes == bytes.size;
    if (whole && take_aside(ingest, message, &view, received_ns)) {
        return;
    }
    pthread_mutex_lock(&ingest->lock);
    ingest->counters.frames++;
    ingest->counters.bytes += bytes.size;
    sj_status queued = SJ_ECORRUPT;
    if (whole) {
        queued = enqueue(&ingest->queue, message, received_ns);
    } else {
        ingest->counters.rejected++;
    }
    if (ingest->queue.bytes > ingest->counters.queue_peak_bytes) {
        ingest->counters.queue_peak_bytes = ingest->queue.bytes;
    }
    pthread_cond_signal(&ingest->arrived);
    pthread_mutex_unlock(&ingest->lock);
    if (!whole) {
        sj_complain(&ingest->complaints, nng_msg_get_pipe(message),
                    "the message is not one whole frame of this version");
        reply(ingest, message, received_ns,
              status == SJ_EVERSION || status == SJ_ELIMIT ? status : SJ_ECORRUPT,
              status == SJ_EVERSION ? "the frame is of another major version"
                                    : "the message is not one whole frame",
              false);
    } else if (queued != SJ_OK) {
        reply(ingest, message, received_ns, SJ_ENOMEM, "the collector is short of memory", false);
    }
}

static void *run_receiver(void *argument)
{
    sj_ingest *ingest = argument;
    pthread_mutex_lock(&ingest->lock);
    while (!ingest->stopping) {
        ingest->paused = ingest->queue.bytes >= ingest->queue_bytes;
        if (ingest->paused) {
            pthread_cond_wait(&ingest->taken, &ingest->lock);
            continue;
        }
        pthread_mutex_unlock(&ingest->lock);
        nng_recv_aio(ingest->socket, ingest->receive);
        nng_aio_wait(ingest->receive);
        const int result = nng_aio_result(ingest->receive);
        if (result == 0) {
            take_message(ingest, nng_aio_get_msg(ingest->receive));
        } else if (result != NNG_ECANCELED) {
            nng_msleep(10); /* out of memory or the like: do not spin */
        }
        pthread_mutex_lock(&ingest->lock);
    }
    ingest->receiver_done = true;
    pthread_cond_broadcast(&ingest->arrived);
    pthread_mutex_unlock(&ingest->lock);
    return NULL;
}

static bool ends_batch(sj_status status)
{
    return status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EAGAIN;
}

static void refuse_all(frame_list *batch, sj_status status, const sj_error *error)
{
    for (size_t i = 0; i < batch->count; ++i) {
        batch->frames[i].status = status;
        batch->frames[i].duplicate = false;
        batch->frames[i].error = *error;
    }
}

/* Stores a batch in one transaction; every frame knows its answer afterwards. */
static void store_batch(sj_ingest *ingest, frame_list *batch)
{
    sj_error error = {0};
    sj_status status = sj_store_begin(ingest->store, &error);
    if (status != SJ_OK) {
        refuse_all(batch, status, &error);
        return;
    }
    for (size_t i = 0; i < batch->count && !ends_batch(status); ++i) {
        queued_frame *queued = &batch->frames[i];
        sj_frame_view view;
        const sj_slice bytes = {.data = nng_msg_body(queued->message),
                                .size = nng_msg_len(queued->message)};
        queued->error.text[0] = '\0';
        status = sj_frame_read(bytes, &view);
        if (status == SJ_OK) {
            status = sj_store_apply(ingest->store, &view, &queued->duplicate, &queued->error);
        }
        queued->status = status;
        error = queued->error;
    }
    if (ends_batch(status)) {
        sj_store_rollback(ingest->store);
        refuse_all(batch, status, &error);
        return;
    }
    status = sj_store_commit(ingest->store, &error);
    if (status != SJ_OK) {
        refuse_all(batch, ends_batch(status) ? status : SJ_EIO, &error);
    }
}

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void count_batch(sj_ingest *ingest, const frame_list *batch)
{
    pthread_mutex_lock(&ingest->lock);
    ingest->counters.commits++;
    for (size_t i = 0; i < batch->count; ++i) {
        const queued_frame *queued = &batch->frames[i];
        ingest->counters.duplicates += queued->status == SJ_OK && queued->duplicate;
        ingest->counters.refused += ends_batch(queued->status);
        ingest->counters.rejected += queued->status != SJ_OK && !ends_batch(queued->status);
    }
    ingest->counters.calls = sj_store_stored_calls(ingest->store);
    ingest->counters.writer_cpu_ns = thread_cpu_ns();
    pthread_mutex_unlock(&ingest->lock);
}

/* How many connections a batch came from, at least: as far as it matters. */
static unsigned count_senders(const frame_list *batch)
{
    unsigned count = 0;
    int last = -1;
    for (size_t i = 0; i < batch->count && count < MANY_SENDERS; ++i) {
        count += batch->frames[i].sender != last;
        last = batch->frames[i].sender;
    }
    return count;
}

/* Takes everything queued; false when the ingest has stopped and nothing is left. */
static bool take_batch(sj_ingest *ingest, frame_list *batch)
{
    bool maintained = false;
    unsigned idle_ms = IDLE_MAINTAIN_MS;
    if (count_senders(batch) >= MANY_SENDERS) {
        nng_msleep(GATHER_MS);
    }
    pthread_mutex_lock(&ingest->lock);
    while (ingest->queue.count == 0 && !ingest->receiver_done) {
        struct timespec deadline;
        deadline_after(&deadline, idle_ms);
        if (maintained) {
            pthread_cond_wait(&ingest->arrived, &ingest->lock);
        } else if (pthread_cond_timedwait(&ingest->arrived, &ingest->lock, &deadline) != 0) {
            pthread_mutex_unlock(&ingest->lock);
            maintained = !sj_store_maintain(ingest->store);
            idle_ms = 0; /* the rest, unless something has come */
            pthread_mutex_lock(&ingest->lock);
        }
    }
    const frame_list empty = *batch;
    *batch = ingest->queue;
    ingest->queue = empty;
    ingest->queue.count = 0;
    ingest->queue.bytes = 0;
    pthread_cond_broadcast(&ingest->taken);
    pthread_mutex_unlock(&ingest->lock);
    return batch->count > 0;
}

static void *run_writer(void *argument)
{
    sj_ingest *ingest = argument;
    frame_list batch = {0};
    while (take_batch(ingest, &batch)) {
        store_batch(ingest, &batch);
        count_batch(ingest, &batch);
        for (size_t i = 0; i < batch.count; ++i) {
            queued_frame *queued = &batch.frames[i];
            if (queued->status != SJ_OK && !ends_batch(queued->status)) {
                sj_complain(&ingest->complaints, nng_msg_get_pipe(queued->message),
                            queued->error.text);
            }
            reply(ingest, queued->message, queued->received_ns, queued->status,
                  queued->status == SJ_OK ? "" : queued->error.text, queued->duplicate);
        }
        sj_store_mend(ingest->store);
    }
    free(batch.frames);
    return NULL;
}

/* Waits; true when the ingest is stopping. */
static bool sleep_watchdog(sj_ingest *ingest, bool *paused)
{
    struct timespec deadline;
    deadline_after(&deadline, ingest->watchdog_ms);
    pthread_mutex_lock(&ingest->lock);
    while (!ingest->stopping &&
           pthread_cond_timedwait(&ingest->taken, &ingest->lock, &deadline) == 0) {
    }
    const bool stopping = ingest->stopping;
    *paused = ingest->paused;
    pthread_mutex_unlock(&ingest->lock);
    return stopping;
}

static void *run_watchdog(void *argument)
{
    sj_ingest *ingest = argument;
    bool paused = false;
    while (!sleep_watchdog(ingest, &paused)) {
        for (size_t i = 0; i < ingest->listener_count && !paused; ++i) {
            sj_listener *listener = &ingest->listeners[i];
            if (!sj_listener_needs_watch(listener) ||
                sj_listener_answers(listener, (int)ingest->watchdog_ms)) {
                continue;
            }
            pthread_mutex_lock(&ingest->lock);
            paused = ingest->paused; /* then silence means nothing */
            pthread_mutex_unlock(&ingest->lock);
            if (!paused && sj_listener_recreate(listener)) {
                pthread_mutex_lock(&ingest->lock);
                ingest->counters.listeners_recreated++;
                pthread_mutex_unlock(&ingest->lock);
            }
        }
    }
    return NULL;
}

/* Frames come and go by the thousand: memory that is given back to the kernel is soon asked for
 * again, which costs more than the frames do. */
static void keep_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_HEAP_BYTES);
    mallopt(M_MMAP_THRESHOLD, KEPT_HEAP_BYTES / 8);
    mallopt(M_TOP_PAD, KEPT_HEAP_BYTES / 32);
}

static void raise_file_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void forget_pipe(nng_pipe pipe, nng_pipe_ev event, void *argument)
{
    sj_ingest *ingest = argument;
    (void)event;
    sj_known_pipes_remove(ingest->known, (uint32_t)nng_pipe_id(pipe));
}

/* open_gate makes what strangers are told apart by, and the certificate that we show. */
static sj_status open_gate(sj_ingest *ingest, const sj_ingest_options *options, sj_error *error)
{
    ingest->gate = options->gate;
    if (options->gate.hello != NULL) {
        if (sj_known_pipes_new(&ingest->known) != SJ_OK ||
            nng_pipe_notify(ingest->socket, NNG_PIPE_EV_REM_POST, forget_pipe, ingest) != 0) {
            return sj_fail(error, SJ_ENOMEM, "no memory for the ingest");
        }
    }
    if (options->certificate == NULL) {
        return SJ_OK;
    }
    ingest->certificate = strdup(options->certificate);
    int result = nng_tls_config_alloc(&ingest->tls, NNG_TLS_MODE_SERVER);
    if (result == 0) {
        result = nng_tls_config_own_cert(ingest->tls, options->certificate, options->key, NULL);
    }
    return result == 0 && ingest->certificate != NULL
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "the certificate cannot be used: %s", nng_strerror(result));
}

static sj_status open_socket(sj_ingest *ingest, const sj_ingest_options *options, sj_error *error)
{
    int result = nng_rep0_open_raw(&ingest->socket);
    if (result == 0) {
        result = nng_socket_set_size(ingest->socket, NNG_OPT_RECVMAXSZ, SJ_FRAME_MAX_BYTES);
    }
    if (result == 0) {
        result = nng_socket_set_int(ingest->socket, NNG_OPT_SENDBUF, 1024);
    }
    if (result == 0) {
        result = nng_socket_set_ms(ingest->socket, NNG_OPT_SENDTIMEO, REPLY_TIMEOUT_MS);
    }
    if (result == 0) {
        result = nng_aio_alloc(&ingest->receive, NULL, NULL);
    }
    if (result != 0) {
        return sj_fail(error, SJ_EIO, "cannot open the collector's socket: %s",
                       nng_strerror(result));
    }
    nng_aio_set_timeout(ingest->receive, NNG_DURATION_INFINITE);
    SJ_TRY(open_gate(ingest, options, error));
    ingest->listeners = calloc(options->url_count, sizeof(*ingest->listeners));
    if (ingest->listeners == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for listeners");
    }
    for (size_t i = 0; i < options->url_count; ++i) {
        ingest->listener_count++;
        SJ_TRY(sj_listener_open(&ingest->listeners[i], ingest->socket, options->urls[i],
                                ingest->tls, ingest->certificate, error));
    }
    return SJ_OK;
}

static sj_status start_threads(sj_ingest *ingest, sj_error *error)
{
    void *(*const bodies[])(void *) = {run_writer, run_receiver, run_watchdog};
    static const char *const names[] = {"ingest:writer", "ingest:receive", "ingest:watch"};
    pthread_t *const threads[] = {&ingest->writer, &ingest->receiver, &ingest->watchdog};
    for (unsigned i = 0; i < 3; ++i) {
        if (pthread_create(threads[i], NULL, bodies[i], ingest) != 0) {
            return sj_fail(error, SJ_EIO, "cannot start the ingest's threads");
        }
        pthread_setname_np(*threads[i], names[i]); /* for those who ask top or perf */
        ingest->threads_started++;
    }
    return SJ_OK;
}

sj_status sj_ingest_start(sj_store *store, const sj_ingest_options *options, sj_ingest **ingest,
                          sj_error *error)
{
    sj_ingest *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the ingest");
    }
    made->store = store;
    made->queue_bytes = options->queue_bytes != 0 ? options->queue_bytes : DEFAULT_QUEUE_BYTES;
    made->window = options->window == 0           ? DEFAULT_WINDOW
                   : options->window > MAX_WINDOW ? MAX_WINDOW
                                                  : options->window;
    made->watchdog_ms = options->watchdog_ms != 0 ? options->watchdog_ms : DEFAULT_WATCHDOG_MS;
    sj_complaints_init(&made->complaints, options->complain, options->complain_context);
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->arrived, &clock);
    pthread_cond_init(&made->taken, &clock);
    pthread_condattr_destroy(&clock);
    raise_file_limit();
    keep_heap();
    sj_status status = open_socket(made, options, error);
    if (status == SJ_OK) {
        status = start_threads(made, error);
    }
    if (status != SJ_OK) {
        sj_ingest_stop(made);
        return status;
    }
    *ingest = made;
    return SJ_OK;
}

/* Ends the receiver, which may be about to wait for a message that never comes. */
static void stop_receiver(sj_ingest *ingest)
{
    bool done = false;
    while (!done) {
        nng_aio_cancel(ingest->receive);
        nng_msleep(1);
        pthread_mutex_lock(&ingest->lock);
        done = ingest->receiver_done;
        pthread_mutex_unlock(&ingest->lock);
    }
    pthread_join(ingest->receiver, NULL);
}

void sj_ingest_stop(sj_ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }
    pthread_mutex_lock(&ingest->lock);
    ingest->stopping = true;
    ingest->receiver_done = ingest->threads_started < 2;
    pthread_cond_broadcast(&ingest->taken);
    pthread_cond_broadcast(&ingest->arrived);
    pthread_mutex_unlock(&ingest->lock);
    if (ingest->threads_started > 2) {
        pthread_join(ingest->watchdog, NULL);
    }
    if (ingest->threads_started > 1) {
        stop_receiver(ingest);
    }
    if (ingest->threads_started > 0) {
        pthread_join(ingest->writer, NULL);
        nng_msleep(20); /* lets NNG hand the last replies to the kernel */
    }
    for (size_t i = 0; i < ingest->listener_count; ++i) {
        sj_listener_close(&ingest->listeners[i]);
    }
    nng_close(ingest->socket);
    if (ingest->receive != NULL) {
        nng_aio_free(ingest->receive);
    }
    if (ingest->tls != NULL) {
        nng_tls_config_free(ingest->tls);
    }
    free(ingest->certificate);
    sj_known_pipes_free(ingest->known);
    pthread_cond_destroy(&ingest->arrived);
    pthread_cond_destroy(&ingest->taken);
    pthread_mutex_destroy(&ingest->lock);
    sj_complaints_deinit(&ingest->complaints);
    free(ingest->queue.frames);
    free(ingest->listeners);
    free(ingest);
}

void sj_ingest_get_counters(sj_ingest *ingest, sj_ingest_counters *counters)
{
    pthread_mutex_lock(&ingest->lock);
    *counters = ingest->counters;
    pthread_mutex_unlock(&ingest->lock);
}

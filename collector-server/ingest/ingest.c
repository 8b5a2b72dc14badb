/* Design notes
 *
 * The listeners' threads pass messages to admission, answer PINGs and refusals at once, and
 * queue the other frames. If the queue holds `queue_bytes`, the listeners stop reading from
 * connections that have sent something, and the kernel slows the senders.
 *
 * The writer takes all queued frames, stores them in one transaction, and sends the replies
 * after COMMIT. So under load, a commit covers the frames that arrived during the previous
 * commit. A commit writes whole pages of every index, even for few blocks. Therefore the writer
 * gathers frames for GATHER_MS. It does so only if there are many senders, because a single
 * sender would wait for its window. The watchdog pings the addresses.
 *
 * A reply that cannot be delivered is dropped. The sender asks again and gets "duplicate". */
#include "collector-server/ingest/ingest.h"

#include "collector-server/ingest/listener.h"
#include "collector-server/ingest/probe.h"
#include "collector-server/ingest/rate_limited_log.h"
#include "proto/base/array.h"
#include "proto/wire/sojourn.pb-c.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    DEFAULT_QUEUE_BYTES = 64 << 20,
    DEFAULT_WINDOW = 16,
    MAX_WINDOW = 48, /* the edge reads up to 64 frames ahead */
    DEFAULT_WATCHDOG_MS = 10000,
    DEFAULT_RECHECK_MS = 60000,
    MANY_SENDERS = 8,
    GATHER_MS = 3,
    IDLE_MAINTAIN_MS = 1000,
    QUIET_MAINTAIN_MS = 60000, /* interval once all deferred maintenance is done */
    KEPT_HEAP_BYTES = 16 << 20,
    PROBE_MS = 5000,
    ACK_BYTES = 1024,
    KEPT_FRAMES = 4096
};

typedef struct queued_frame {
    sj_inbound inbound;
    uint64_t received_ns; /* CLOCK_REALTIME, for the sender */
    uint64_t arrived_ns;  /* CLOCK_MONOTONIC */
    sj_status status;
    bool duplicate;
    sj_error error;
} queued_frame;

/* The memory of a queued frame besides its bytes. */
#define MESSAGE_OVERHEAD_BYTES (2 * sizeof(queued_frame))

typedef struct frame_list {
    queued_frame *frames;
    size_t count;
    size_t capacity;
    size_t bytes;
} frame_list;

struct sj_ingest {
    sj_store *store;
    sj_listener *listener;
    char **urls; /* addresses that the watchdog pings */
    size_t url_count;
    char *certificate; /* certificate that the watchdog trusts */
    size_t queue_bytes;
    uint32_t window;
    uint64_t incarnation; /* random number of this process, which senders compare */
    uint32_t watchdog_ms;
    uint32_t recheck_ms;
    pthread_mutex_t lock;   /* guards the flags, the queue, the counters, `storing_ns`,
                             * `refusing_ns` and `problem` */
    pthread_cond_t arrived; /* a frame was queued, or the ingest stops */
    pthread_cond_t stopped;
    bool stopping;
    bool receiving_done;
    bool was_full;          /* a full queue made a listener pause */
    sj_admission admission; /* used only by the edge's thread */
    frame_list queue;
    pthread_t writer, watchdog;
    unsigned threads_started;
    sj_ingest_counters counters;
    /* CLOCK_MONOTONIC: arrival of the oldest frame of the current batch; 0: no batch */
    uint64_t storing_ns;
    uint64_t refusing_ns; /* the same for the first refused batch; 0: the last batch was stored */
    sj_error problem;     /* why the last batch was refused; "": it was stored */
    uint64_t refused_ns;  /* time of the last refusal; used only by the writer */
    sj_rate_limited_log complaints;
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

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* True if the sender keeps a frame with this status, and sends it again later. */
static bool is_kept_by_sender(sj_status status)
{
    return sj_store_ends_batch(status) || status == SJ_EQUOTA;
}

/* Answers a message and frees it. */
static void reply(sj_ingest *ingest, sj_inbound *inbound, uint64_t received_ns, sj_status status,
                  const char *text, bool duplicate)
{
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    uint8_t header[ACK_BYTES];
    uint8_t frame[ACK_BYTES + SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    ack.status = status;
    ack.message = (char *)(uintptr_t)text;
    ack.window = is_kept_by_sender(status) ? 0 : ingest->window;
    ack.duplicate = duplicate;
    ack.major = SJ_FRAME_MAJOR;
    ack.minor = SJ_FRAME_MINOR;
    ack.server_version = (char *)(uintptr_t)SJ_VERSION;
    ack.received_realtime_ns = received_ns;
    ack.sent_realtime_ns = realtime_ns();
    ack.incarnation = ingest->incarnation;
    const sj_slice packed = {.data = header, .size = sojourn__ack__pack(&ack, header)};
    if (sj_frame_write(SJ_FRAME_ACK, packed, (sj_slice){0}, frame, sizeof(frame), &size) == SJ_OK) {
        sj_listener_reply(ingest->listener, inbound, (sj_slice){.data = frame, .size = size},
                          false);
    }
    sj_listener_free_message(inbound);
}

/* Adds a frame to the queue. Returns SJ_EFULL if the queue is full or the ingest stops, or
 * SJ_ENOMEM. */
static sj_status enqueue(sj_ingest *ingest, const sj_inbound *inbound, uint64_t received_ns)
{
    frame_list *list = &ingest->queue;
    sj_status status = SJ_EFULL;
    pthread_mutex_lock(&ingest->lock);
    const bool is_full = ingest->stopping || list->bytes >= ingest->queue_bytes;
    ingest->was_full = ingest->was_full || is_full;
    if (!is_full) {
        status =
            sj_array_reserve(&list->frames, &list->capacity, list->count, 1, sizeof(*list->frames));
    }
    if (status == SJ_OK) {
        list->frames[list->count++] = (queued_frame){
            .inbound = *inbound, .received_ns = received_ns, .arrived_ns = monotonic_ns()};
        list->bytes += inbound->edge.body.size + MESSAGE_OVERHEAD_BYTES;
        ingest->counters.frames++;
        ingest->counters.bytes += inbound->edge.body.size;
        if (list->bytes > ingest->counters.queue_peak_bytes) {
            ingest->counters.queue_peak_bytes = list->bytes;
        }
        pthread_cond_signal(&ingest->arrived);
    }
    pthread_mutex_unlock(&ingest->lock);
    return status;
}

static void count_one(sj_ingest *ingest, uint64_t *counter)
{
    pthread_mutex_lock(&ingest->lock);
    ++*counter;
    pthread_mutex_unlock(&ingest->lock);
}

/* Answers a message that is not a whole frame of this version. */
static sj_edge_verdict reject(sj_ingest *ingest, sj_inbound *inbound, uint64_t received_ns,
                              sj_status status)
{
    const bool is_named = status == SJ_EVERSION || status == SJ_ELIMIT;
    count_one(ingest, &ingest->counters.rejected);
    sj_complain(&ingest->complaints, &inbound->edge.peer,
                "the message is not one whole frame of this version");
    reply(ingest, inbound, received_ns, is_named ? status : SJ_ECORRUPT,
          status == SJ_EVERSION ? "the frame is of another major version"
                                : "the message is not one whole frame",
          false);
    return SJ_EDGE_ACCEPTED;
}

static sj_edge_verdict hand_to_fleet(sj_ingest *ingest, sj_inbound *inbound, uint64_t received_ns)
{
    const sj_ingest_gate *gate = &ingest->admission.gate;
    if (gate->fleet(gate->context, sj_listener_edge(ingest->listener), &inbound->edge) != SJ_OK) {
        if (!inbound->edge.is_stranger) {
            return SJ_EDGE_FULL; /* a device does not send its results again */
        }
        reply(ingest, inbound, received_ns, SJ_EAGAIN, "the collector is busy; ask again", false);
    }
    return SJ_EDGE_ACCEPTED;
}

/* Runs on a listener's thread. */
static sj_edge_verdict handle_message(void *context, sj_inbound *inbound)
{
    sj_ingest *ingest = context;
    const uint64_t received_ns = realtime_ns();
    sj_error error = {0};
    sj_frame_view view;
    sj_status status = SJ_OK;
    if (!inbound->edge.is_cut) {
        status = sj_frame_read(inbound->edge.body, &view);
        if (status != SJ_OK || view.frame_bytes != inbound->edge.body.size) {
            return reject(ingest, inbound, received_ns, status);
        }
    }
    const sj_admission_verdict verdict = sj_admission_judge(
        &ingest->admission, ingest->listener != NULL ? sj_listener_edge(ingest->listener) : NULL,
        &inbound->edge, inbound->edge.is_cut ? NULL : &view, &status, &error);
    if (verdict == SJ_ADMIT_TO_FLEET) {
        return hand_to_fleet(ingest, inbound, received_ns);
    }
    if (verdict == SJ_ADMIT_TO_STORE) {
        status = enqueue(ingest, inbound, received_ns);
        if (status != SJ_ENOMEM) {
            return status == SJ_OK ? SJ_EDGE_ACCEPTED : SJ_EDGE_FULL;
        }
        sj_fail(&error, status, "the collector is short of memory");
    }
    if (verdict == SJ_ADMIT_REFUSE) {
        count_one(ingest, &ingest->counters.strangers);
        if (status == SJ_ECLOSED) {
            return SJ_EDGE_HANG_UP; /* the edge frees the message */
        }
        if (status != SJ_EAGAIN) {
            sj_complain(&ingest->complaints, &inbound->edge.peer, error.text);
        }
    }
    reply(ingest, inbound, received_ns, status, error.text, false);
    return SJ_EDGE_ACCEPTED;
}

/* Refuses a batch that could not begin or commit. Its senders keep the frames, whatever the
 * reason. */
static void refuse_all(frame_list *batch, sj_status status, const sj_error *error)
{
    for (size_t i = 0; i < batch->count; ++i) {
        batch->frames[i].status = sj_store_ends_batch(status) ? status : SJ_EIO;
        batch->frames[i].duplicate = false;
        batch->frames[i].error = *error;
    }
}

/* Stores a batch in one transaction and sets the status of every frame. */
static void store_batch(sj_ingest *ingest, frame_list *batch)
{
    sj_error error = {0};
    sj_status status = sj_store_begin(ingest->store, &error);
    if (status != SJ_OK) {
        refuse_all(batch, status, &error);
        return;
    }
    for (size_t i = 0; i < batch->count && !sj_store_ends_batch(status); ++i) {
        queued_frame *queued = &batch->frames[i];
        sj_frame_view view;
        queued->error.text[0] = '\0';
        status = sj_frame_read(queued->inbound.edge.body, &view);
        if (status == SJ_OK) {
            status = sj_store_apply(ingest->store, &view, &queued->inbound.edge.sender,
                                    &queued->duplicate, &queued->error);
        }
        queued->status = status;
        error = queued->error;
    }
    if (sj_store_ends_batch(status)) {
        sj_store_rollback(ingest->store);
        refuse_all(batch, status, &error);
        return;
    }
    status = sj_store_commit(ingest->store, &error);
    if (status != SJ_OK) {
        refuse_all(batch, status, &error);
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
    sj_store_counters stored;
    sj_store_get_counters(ingest->store, &stored);
    pthread_mutex_lock(&ingest->lock);
    ingest->counters.commits++;
    for (size_t i = 0; i < batch->count; ++i) {
        const queued_frame *queued = &batch->frames[i];
        ingest->counters.duplicates += queued->status == SJ_OK && queued->duplicate;
        ingest->counters.refused += is_kept_by_sender(queued->status);
        ingest->counters.rejected += queued->status != SJ_OK && !is_kept_by_sender(queued->status);
    }
    ingest->counters.foreign = stored.foreign;
    ingest->counters.calls = stored.calls;
    ingest->counters.writer_cpu_ns = thread_cpu_ns();
    ingest->counters.lag_ns = monotonic_ns() - ingest->storing_ns;
    pthread_mutex_unlock(&ingest->lock);
}

/* Sets the reason why frames are not stored ("": they are stored), for sj_ingest_check. Logs
 * changes; `if_none` is the line for "". */
static void set_problem(sj_ingest *ingest, const char *why, const char *if_none)
{
    char line[sizeof(ingest->problem.text) + 64];
    pthread_mutex_lock(&ingest->lock);
    const bool is_new = strcmp(ingest->problem.text, why) != 0;
    snprintf(ingest->problem.text, sizeof(ingest->problem.text), "%s", why);
    ingest->refusing_ns = why[0] == '\0'             ? 0
                          : ingest->refusing_ns != 0 ? ingest->refusing_ns
                                                     : ingest->storing_ns;
    ingest->storing_ns = 0;
    pthread_mutex_unlock(&ingest->lock);
    if (is_new) {
        snprintf(line, sizeof(line), "no frame is stored: %s", why);
        sj_report_line(&ingest->complaints, why[0] != '\0' ? line : if_none);
    }
}

/* Records whether the batch was refused. */
static void note_problem(sj_ingest *ingest, const frame_list *batch)
{
    const char *why = "";
    for (size_t i = 0; i < batch->count && why[0] == '\0'; ++i) {
        why = sj_store_ends_batch(batch->frames[i].status) ? batch->frames[i].error.text : "";
    }
    ingest->refused_ns = why[0] != '\0' ? monotonic_ns() : 0;
    set_problem(ingest, why, "frames are stored again");
}

/* Checks the store again if no batch has come for a while after a refused one. While senders send,
 * their batches are the better check: sj_store_check does not find every fault, such as a failing
 * disk. */
static void check_sinks_again(sj_ingest *ingest)
{
    sj_error error = {0};
    if (ingest->refused_ns != 0 &&
        monotonic_ns() - ingest->refused_ns >= ingest->recheck_ms * UINT64_C(1000000)) {
        const bool is_well = sj_store_check(ingest->store, &error) == SJ_OK;
        ingest->refused_ns = is_well ? 0 : ingest->refused_ns;
        set_problem(ingest, error.text, "frames can be stored again");
    }
}

/* Returns a lower bound of the number of connections in a batch, up to MANY_SENDERS. */
static unsigned count_senders(const frame_list *batch)
{
    unsigned count = 0;
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < batch->count && count < MANY_SENDERS; ++i) {
        count += batch->frames[i].inbound.edge.connection != last;
        last = batch->frames[i].inbound.edge.connection;
    }
    return count;
}

/* Takes all queued frames; waits for one if needed. Returns false when the ingest has stopped and
 * the queue is empty. */
static bool pop_batch(sj_ingest *ingest, frame_list *batch)
{
    unsigned idle_ms = IDLE_MAINTAIN_MS;
    if (count_senders(batch) >= MANY_SENDERS) {
        const struct timespec gather = {.tv_nsec = GATHER_MS * 1000000L};
        nanosleep(&gather, NULL);
    }
    pthread_mutex_lock(&ingest->lock);
    while (ingest->queue.count == 0 && !ingest->receiving_done) {
        struct timespec deadline;
        deadline_after(&deadline, idle_ms);
        if (pthread_cond_timedwait(&ingest->arrived, &ingest->lock, &deadline) != 0) {
            pthread_mutex_unlock(&ingest->lock);
            /* Continue maintenance at once, unless a frame has arrived. */
            idle_ms = sj_store_maintain(ingest->store) ? 0
                      : ingest->refused_ns != 0        ? IDLE_MAINTAIN_MS
                                                       : QUIET_MAINTAIN_MS;
            check_sinks_again(ingest);
            pthread_mutex_lock(&ingest->lock);
        }
    }
    const frame_list empty = *batch;
    *batch = ingest->queue;
    ingest->queue = empty;
    ingest->queue.count = 0;
    ingest->queue.bytes = 0;
    ingest->storing_ns = batch->count > 0 ? batch->frames[0].arrived_ns : 0;
    const bool was_full = ingest->was_full && !ingest->stopping;
    ingest->was_full = false;
    pthread_mutex_unlock(&ingest->lock);
    if (was_full) {
        sj_listener_resume(ingest->listener);
    }
    return batch->count > 0;
}

static void *run_writer(void *argument)
{
    sj_ingest *ingest = argument;
    frame_list batch = {0};
    while (pop_batch(ingest, &batch)) {
        store_batch(ingest, &batch);
        count_batch(ingest, &batch);
        note_problem(ingest, &batch);
        for (size_t i = 0; i < batch.count; ++i) {
            queued_frame *queued = &batch.frames[i];
            if (queued->status != SJ_OK && !sj_store_ends_batch(queued->status)) {
                sj_complain(&ingest->complaints, &queued->inbound.edge.peer, queued->error.text);
            }
            reply(ingest, &queued->inbound, queued->received_ns, queued->status,
                  queued->status == SJ_OK ? "" : queued->error.text, queued->duplicate);
        }
        sj_listener_flush(ingest->listener);
        if (batch.capacity > KEPT_FRAMES) {
            free(batch.frames);
            batch = (frame_list){0};
        }
        sj_store_recover(ingest->store);
    }
    free(batch.frames);
    return NULL;
}

/* Waits until the next ping. Returns true when the ingest is stopping. */
static bool sleep_watchdog(sj_ingest *ingest)
{
    struct timespec deadline;
    deadline_after(&deadline, ingest->watchdog_ms);
    pthread_mutex_lock(&ingest->lock);
    while (!ingest->stopping &&
           pthread_cond_timedwait(&ingest->stopped, &ingest->lock, &deadline) == 0) {
    }
    const bool stopping = ingest->stopping;
    pthread_mutex_unlock(&ingest->lock);
    return stopping;
}

static void watch(sj_ingest *ingest, sj_probe **probes)
{
    const sj_edge_peer self = {0};
    char line[256];
    while (!sleep_watchdog(ingest)) {
        for (size_t i = 0; i < ingest->url_count; ++i) {
            if (probes[i] == NULL || sj_probe_is_answered(probes[i], PROBE_MS)) {
                continue;
            }
            count_one(ingest, &ingest->counters.unanswered_probes);
            snprintf(line, sizeof(line), "no answer at %.200s within %d s", ingest->urls[i],
                     PROBE_MS / 1000);
            sj_complain(&ingest->complaints, &self, line);
        }
    }
}

static void *run_watchdog(void *argument)
{
    sj_ingest *ingest = argument;
    sj_probe **probes = calloc(ingest->url_count + 1, sizeof(sj_probe *));
    for (size_t i = 0; probes != NULL && i < ingest->url_count; ++i) {
        probes[i] = sj_endpoint_is_url(ingest->urls[i])
                        ? sj_probe_new(ingest->urls[i], ingest->certificate)
                        : NULL;
    }
    if (probes != NULL) {
        watch(ingest, probes);
    }
    for (size_t i = 0; probes != NULL && i < ingest->url_count; ++i) {
        sj_probe_free(probes[i]);
    }
    free(probes);
    return NULL;
}

/* Keeps freed memory in the process. Frames are allocated and freed by the thousand, and getting
 * memory from the kernel again costs more than the frames. */
static void keep_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, KEPT_HEAP_BYTES);
    mallopt(M_MMAP_THRESHOLD, KEPT_HEAP_BYTES / 8);
    mallopt(M_TOP_PAD, KEPT_HEAP_BYTES / 32);
}

/* Returns a number that other processes of the collector do not have. Senders only compare it,
 * so the time is enough if the system has no random numbers yet. */
static uint64_t new_incarnation(void)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number)) {
        number = realtime_ns();
    }
    return number != 0 ? number : 1;
}

static sj_status note_urls(sj_ingest *ingest, const sj_ingest_options *options)
{
    ingest->urls = calloc(options->url_count + 1, sizeof(*ingest->urls));
    if (ingest->urls == NULL) {
        return SJ_ENOMEM;
    }
    for (; ingest->url_count < options->url_count; ingest->url_count++) {
        ingest->urls[ingest->url_count] = strdup(options->urls[ingest->url_count]);
        if (ingest->urls[ingest->url_count] == NULL) {
            return SJ_ENOMEM;
        }
    }
    if (options->certificate != NULL) {
        ingest->certificate = strdup(options->certificate);
    }
    return options->certificate == NULL || ingest->certificate != NULL ? SJ_OK : SJ_ENOMEM;
}

static sj_status start_threads(sj_ingest *ingest, sj_error *error)
{
    void *(*const bodies[])(void *) = {run_writer, run_watchdog};
    static const char *const names[] = {"ingest:writer", "ingest:watch"};
    pthread_t *const threads[] = {&ingest->writer, &ingest->watchdog};
    for (unsigned i = 0; i < 2; ++i) {
        if (pthread_create(threads[i], NULL, bodies[i], ingest) != 0) {
            return sj_fail(error, SJ_EIO, "cannot start the ingest's threads");
        }
        pthread_setname_np(*threads[i], names[i]); /* shown by top and perf */
        ingest->threads_started++;
    }
    return SJ_OK;
}

static sj_status start_all(sj_ingest *ingest, const sj_ingest_options *options, sj_error *error)
{
    const sj_listener_options listener = {.urls = options->urls,
                                          .url_count = options->url_count,
                                          .certificate = options->certificate,
                                          .key = options->key,
                                          .limits = options->limits,
                                          .handle = handle_message,
                                          .context = ingest};
    if (note_urls(ingest, options) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the ingest");
    }
    SJ_TRY(sj_listener_start(&listener, &ingest->listener, error));
    return start_threads(ingest, error);
}

sj_status sj_ingest_start(sj_store *store, const sj_ingest_options *options, sj_ingest **ingest,
                          sj_error *error)
{
    sj_ingest *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the ingest");
    }
    made->store = store;
    made->admission.gate = options->gate;
    made->queue_bytes = options->queue_bytes != 0 ? options->queue_bytes : DEFAULT_QUEUE_BYTES;
    made->window = options->window == 0           ? DEFAULT_WINDOW
                   : options->window > MAX_WINDOW ? MAX_WINDOW
                                                  : options->window;
    made->watchdog_ms = options->watchdog_ms != 0 ? options->watchdog_ms : DEFAULT_WATCHDOG_MS;
    made->recheck_ms = options->recheck_ms != 0 ? options->recheck_ms : DEFAULT_RECHECK_MS;
    sj_rate_limited_log_init(&made->complaints, options->complain, options->complain_context);
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->arrived, &clock);
    pthread_cond_init(&made->stopped, &clock);
    pthread_condattr_destroy(&clock);
    made->incarnation = new_incarnation();
    keep_heap();
    const sj_status status = start_all(made, options, error);
    if (status != SJ_OK) {
        sj_ingest_stop(made);
        return status;
    }
    *ingest = made;
    return SJ_OK;
}

/* Frees queued frames that the writer did not read. They were never acknowledged. */
static void free_queue(sj_ingest *ingest)
{
    for (size_t i = 0; i < ingest->queue.count; i++) {
        sj_listener_free_message(&ingest->queue.frames[i].inbound);
    }
    free(ingest->queue.frames);
}

void sj_ingest_stop(sj_ingest *ingest)
{
    if (ingest == NULL) {
        return;
    }
    pthread_mutex_lock(&ingest->lock);
    ingest->stopping = true; /* enqueue refuses frames from here on */
    pthread_cond_broadcast(&ingest->stopped);
    pthread_mutex_unlock(&ingest->lock);
    if (ingest->threads_started > 1) {
        pthread_join(ingest->watchdog, NULL);
    }
    if (ingest->listener != NULL) {
        sj_listener_pause(ingest->listener);
    }
    pthread_mutex_lock(&ingest->lock);
    ingest->receiving_done = true;
    pthread_cond_broadcast(&ingest->arrived);
    pthread_mutex_unlock(&ingest->lock);
    if (ingest->threads_started > 0) {
        pthread_join(ingest->writer, NULL);
    }
    sj_listener_stop(ingest->listener);
    free_queue(ingest);
    for (size_t i = 0; i < ingest->url_count; i++) {
        free(ingest->urls[i]);
    }
    free(ingest->urls);
    free(ingest->certificate);
    pthread_cond_destroy(&ingest->arrived);
    pthread_cond_destroy(&ingest->stopped);
    pthread_mutex_destroy(&ingest->lock);
    sj_rate_limited_log_deinit(&ingest->complaints);
    free(ingest);
}

/* Returns the age of the oldest frame that was received and not acknowledged. Senders still hold
 * the frames of a refused batch. The caller holds the lock. */
static uint64_t oldest_unacknowledged_ns(const sj_ingest *ingest)
{
    const uint64_t since_ns = ingest->refusing_ns != 0  ? ingest->refusing_ns
                              : ingest->storing_ns != 0 ? ingest->storing_ns
                              : ingest->queue.count > 0 ? ingest->queue.frames[0].arrived_ns
                                                        : 0;
    return since_ns != 0 ? monotonic_ns() - since_ns : 0;
}

void sj_ingest_get_counters(sj_ingest *ingest, sj_ingest_counters *counters)
{
    pthread_mutex_lock(&ingest->lock);
    *counters = ingest->counters;
    counters->is_refusing = ingest->problem.text[0] != '\0';
    counters->oldest_unacknowledged_ns = oldest_unacknowledged_ns(ingest);
    pthread_mutex_unlock(&ingest->lock);
    if (ingest->listener != NULL && sj_listener_edge(ingest->listener) != NULL) {
        sj_edge_get_counters(sj_listener_edge(ingest->listener), &counters->edge);
    }
}

sj_status sj_ingest_check(sj_ingest *ingest, sj_error *error)
{
    pthread_mutex_lock(&ingest->lock);
    const sj_status status = ingest->problem.text[0] == '\0'
                                 ? SJ_OK
                                 : sj_fail(error, SJ_EAGAIN, "%s", ingest->problem.text);
    pthread_mutex_unlock(&ingest->lock);
    return status;
}

/* Design notes
 *
 * The edge's thread checks tokens against a table in memory (session_grants.h), which the service's
 * thread renews. Only messages with a valid token, and enrolments, are added to the list here. The
 * list is limited in messages and bytes. The service's thread answers them with its own database
 * connection.
 *
 * A POLL that finds no command is parked until its time has passed. The thread checks parked polls
 * only after another connection changed the database (PRAGMA data_version). So waiting devices cost
 * nothing. */
#include "collector-server/fleet/fleet_service.h"

#include "collector-server/fleet/device_instances.h"
#include "collector-server/fleet/export_jobs.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_policies.h"
#include "collector-server/fleet/parked_polls.h"
#include "collector-server/fleet/session_grants.h"
#include "proto/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_WAITING = 4096, /* messages in the list, and their total size */
    MAX_WAITING_BYTES = 32 << 20,
    MAX_ENROLMENTS = 64, /* limit of enrolments among them */
    LOOK_MS = 100,       /* interval of checking the database for new commands */
    MAX_WAIT_MS = 25000,
    HEADER_BYTES = SJ_FLEET_ARGUMENTS_BYTES + 1024,
    PART_BYTES = 64 * 1024,
    POLICIES_TIMEOUT_MS = 3600000
};

typedef struct arrival {
    struct arrival *next;
    sj_edge_message message;
    bool is_enrolment;
} arrival;

struct sj_fleet_service {
    sj_fleet *fleet; /* used only by the service's thread */
    bool requires_tokens;
    pthread_mutex_t lock; /* guards the members up to `stopping` */
    pthread_cond_t arrived;
    sj_edge *edge; /* set by the first message; it never changes after that */
    arrival *first, **last;
    size_t waiting_count, waiting_bytes, enrolment_count;
    bool stopping;
    pthread_t thread;
    bool thread_started;
    sj_parked_polls parked; /* used only by the service's thread */
    sj_device_instances *instances;
    int64_t data_version;
    bool passes_changed; /* since the parked polls were last checked */
    sj_session_grants *passes;
    char database[PATH_MAX];
    uint8_t header[HEADER_BYTES];
    uint8_t part[PART_BYTES];
    uint8_t frame[HEADER_BYTES + PART_BYTES + SJ_FRAME_PREFIX_BYTES];
    sj_fleet_command command;
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Sends a frame to the sender of `message`. */
static void send_with(sj_fleet_service *service, const sj_edge_message *message, sj_frame_type type,
                      const ProtobufCMessage *body, sj_slice payload)
{
    size_t size = 0;
    if (protobuf_c_message_get_packed_size(body) <= sizeof(service->header)) {
        const sj_slice header = {.data = service->header,
                                 .size = protobuf_c_message_pack(body, service->header)};
        if (sj_frame_write((uint16_t)type, header, payload, service->frame, sizeof(service->frame),
                           &size) == SJ_OK) {
            sj_edge_reply(service->edge, message, (sj_slice){.data = service->frame, .size = size},
                          false);
            sj_edge_flush(service->edge);
        }
    }
}

static void send_reply(sj_fleet_service *service, const sj_edge_message *message,
                       sj_frame_type type, const ProtobufCMessage *body)
{
    send_with(service, message, type, body, (sj_slice){0});
}

static void send_ack(sj_fleet_service *service, const sj_edge_message *message, sj_status status,
                     const char *text)
{
    Sojourn__Ack ack = SOJOURN__ACK__INIT;
    ack.status = status;
    ack.message = (char *)(uintptr_t)text;
    ack.major = SJ_FRAME_MAJOR;
    ack.minor = SJ_FRAME_MINOR;
    ack.server_version = (char *)(uintptr_t)SJ_VERSION;
    send_reply(service, message, SJ_FRAME_ACK, &ack.base);
}

/* Answers a poll with the next command. Returns false if there is none, or if it cannot be read. */
static bool give_command(sj_fleet_service *service, const sj_parked_poll *poll)
{
    sj_error error = {0};
    Sojourn__Command body = SOJOURN__COMMAND__INIT;
    const sj_status status = sj_fleet_next(service->fleet, poll->device_id, poll->instance,
                                           poll->last_command, &service->command, &error);
    if (status != SJ_OK) {
        return false;
    }
    body.command = (uint64_t)service->command.command_id;
    body.kind = service->command.kind;
    body.arguments = service->command.arguments;
    body.timeout_ms = service->command.timeout_ms;
    body.claim = poll->instance != 0;
    send_reply(service, &poll->message, SJ_FRAME_COMMAND, &body.base);
    return true;
}

/* Answers the parked poll that a new poll of the same device replaces. */
static void drop_older(sj_fleet_service *service, const sj_parked_poll *poll)
{
    sj_parked_poll older;
    if (sj_parked_polls_pop_older(&service->parked, poll, &older)) {
        send_ack(service, &older.message, SJ_OK, "");
    }
}

/* Queues the policies that the device lacks according to its status. */
static void sync_policies(sj_fleet_service *service, int64_t device_id, const char *status)
{
    sj_error error = {0};
    int64_t command_id = 0;
    json_t *report = json_loads(status, JSON_REJECT_DUPLICATES, NULL);
    const char *has = json_string_value(json_object_get(report, "policies"));
    if (has != NULL) {
        (void)!sj_fleet_policies_sync(service->fleet, device_id, has, "collector",
                                      POLICIES_TIMEOUT_MS, &command_id, &error);
    }
    json_decref(report);
}

/* Notes the process that polls. If it shows that two processes have the device's identity, stores
 * and logs that. Returns true if the process has just started and no other one is known. */
static bool note_process(sj_fleet_service *service, const sj_parked_poll *poll)
{
    sj_error error = {0};
    const sj_instance_verdict verdict =
        sj_device_instances_note(service->instances, poll->device_id, poll->instance, now_ms());
    if (verdict.is_proof) {
        /* On failure, the next such poll stores it. */
        (void)!sj_fleet_note_copy(service->fleet, poll->device_id, &error);
    }
    if (verdict.is_news) {
        sj_log(SJ_LOG_WARN, "copied",
               "two daemons have the identity and token of device %" PRId64
               "; each command runs on one of them. On the copy, stop sojourn-device, remove its"
               " file device-id and enroll it with a new invitation",
               poll->device_id);
    }
    return verdict.is_restart;
}

static void handle_poll(sj_fleet_service *service, const sj_edge_message *message,
                        const Sojourn__Poll *poll)
{
    sj_error error = {0};
    const uint32_t wait_ms = poll->wait_ms < MAX_WAIT_MS ? poll->wait_ms : MAX_WAIT_MS;
    sj_parked_poll one = {.message = *message,
                          .instance = (int64_t)(poll->instance & INT64_MAX),
                          .last_command = poll->last_command,
                          .deadline_ms = now_ms() + wait_ms};
    one.message.memory = NULL; /* a parked poll keeps only the reply address */
    one.message.body = (sj_slice){0};
    sj_status status =
        sj_fleet_check(service->fleet, &poll->device_id, poll->token, &one.device_id, &error);
    if (status == SJ_OK) {
        const sj_fleet_poll noted = {.instance = one.instance,
                                     .is_restart = note_process(service, &one),
                                     .last_command = poll->last_command,
                                     .status = poll->status};
        status = sj_fleet_note_poll(service->fleet, one.device_id, &noted, &error);
    }
    if (status != SJ_OK) {
        send_ack(service, message, status, error.text);
        return;
    }
    sync_policies(service, one.device_id, poll->status);
    drop_older(service, &one);
    if (!give_command(service, &one) &&
        (wait_ms == 0 || !sj_parked_polls_add(&service->parked, &one))) {
        send_ack(service, message, SJ_OK, "");
    }
}

static void handle_claim(sj_fleet_service *service, const sj_edge_message *message,
                         const Sojourn__Claim *claim)
{
    sj_error error = {0};
    int64_t device_id = 0;
    const int64_t instance = (int64_t)(claim->instance & INT64_MAX);
    sj_status status =
        sj_fleet_check(service->fleet, &claim->device_id, claim->token, &device_id, &error);
    if (status == SJ_OK && instance == 0) {
        status = sj_fail(&error, SJ_EINVAL, "a claim needs the number of the daemon's process");
    }
    if (status == SJ_OK) {
        status = sj_fleet_claim(service->fleet, device_id, instance, claim->command, &error);
    }
    send_ack(service, message, status, error.text);
}

static void handle_result(sj_fleet_service *service, const sj_edge_message *message,
                          const Sojourn__CommandResult *result)
{
    sj_error error = {0};
    int64_t device_id = 0;
    sj_status status =
        sj_fleet_check(service->fleet, &result->device_id, result->token, &device_id, &error);
    if (status == SJ_OK) {
        status = sj_fleet_finish(service->fleet, device_id, result->command, result->failed,
                                 result->result, &error);
    }
    send_ack(service, message, status, error.text);
}

/* Renews the passes. Returns true if they changed. */
static bool renew_passes(sj_fleet_service *service)
{
    const bool changed =
        sj_session_grants_renew(service->passes, sj_fleet_database(service->fleet));
    return changed;
}

static void handle_enrolment(sj_fleet_service *service, const sj_edge_message *message,
                             const Sojourn__Hello *hello)
{
    sj_error error = {0};
    char token[SJ_SECRET_TEXT_BYTES] = "";
    int64_t namesakes = 0;
    Sojourn__Enrolled body = SOJOURN__ENROLLED__INIT;
    body.status = sj_fleet_enrol(service->fleet, hello, token, &namesakes, &error);
    /* The device connects with its new token at once. */
    service->passes_changed = renew_passes(service) || service->passes_changed;
    if (body.status == SJ_OK && namesakes != 0) {
        sj_fail(
            &error, SJ_OK,
            "%lld more of this collector's devices are called \"%.64s\"; --name gives another name",
            (long long)namesakes, hello->device_name);
    }
    body.message = error.text;
    body.token = body.status == SJ_OK ? token : "";
    send_reply(service, message, SJ_FRAME_ENROLLED, &body.base);
}

/* Reads the requested part of a file. Returns SJ_EIO if the file is gone or shorter than the
 * offset. */
static sj_status read_part(sj_fleet_service *service, const Sojourn__Fetch *fetch,
                           Sojourn__Part *part, size_t *bytes, sj_error *error)
{
    char path[PATH_MAX];
    struct stat about;
    sj_command_file_path(service->database, fetch->file, path, sizeof(path));
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = -1;
    if (file >= 0 && fstat(file, &about) == 0 && fetch->offset <= (uint64_t)about.st_size) {
        part->total_bytes = (uint64_t)about.st_size;
        got = pread(file, service->part, sizeof(service->part), (off_t)fetch->offset);
    }
    const int problem = errno;
    if (file >= 0) {
        close(file);
    }
    *bytes = got > 0 ? (size_t)got : 0;
    return got >= 0 ? SJ_OK
                    : sj_fail(error, SJ_EIO, "the collector cannot read the file: %s",
                              strerror(problem));
}

static void handle_fetch(sj_fleet_service *service, const sj_edge_message *message,
                         const Sojourn__Fetch *fetch)
{
    sj_error error = {0};
    int64_t device_id = 0;
    size_t bytes = 0;
    Sojourn__Part part = SOJOURN__PART__INIT;
    sj_status status =
        sj_fleet_check(service->fleet, &fetch->device_id, fetch->token, &device_id, &error);
    if (status == SJ_OK) {
        status = sj_fleet_may_fetch(service->fleet, device_id, fetch->file, &error);
    }
    if (status == SJ_OK) {
        status = read_part(service, fetch, &part, &bytes, &error);
    }
    part.status = status;
    part.message = error.text;
    part.offset = fetch->offset;
    send_with(service, message, SJ_FRAME_PART, &part.base,
              (sj_slice){.data = service->part, .size = bytes});
}

static const ProtobufCMessageDescriptor *descriptor_of(uint16_t type)
{
    switch (type) {
    case SJ_FRAME_ENROL:
        return &sojourn__hello__descriptor;
    case SJ_FRAME_POLL:
        return &sojourn__poll__descriptor;
    case SJ_FRAME_RESULT:
        return &sojourn__command_result__descriptor;
    case SJ_FRAME_FETCH:
        return &sojourn__fetch__descriptor;
    case SJ_FRAME_CLAIM:
        return &sojourn__claim__descriptor;
    default:
        return NULL;
    }
}

static void handle_message(sj_fleet_service *service, const sj_edge_message *message)
{
    sj_frame_view view;
    const sj_status status = sj_frame_read(message->body, &view);
    const ProtobufCMessageDescriptor *descriptor =
        status == SJ_OK ? descriptor_of(view.type) : NULL;
    ProtobufCMessage *body = NULL;
    if (descriptor != NULL) {
        body = protobuf_c_message_unpack(descriptor, NULL, view.header.size, view.header.data);
    }
    if (body == NULL) {
        send_ack(service, message, descriptor == NULL ? SJ_EUNSUPPORTED : SJ_ECORRUPT,
                 "the collector cannot read this frame");
        return;
    }
    if (view.type == SJ_FRAME_POLL) {
        handle_poll(service, message, (const Sojourn__Poll *)(const void *)body);
    } else if (view.type == SJ_FRAME_RESULT) {
        handle_result(service, message, (const Sojourn__CommandResult *)(const void *)body);
    } else if (view.type == SJ_FRAME_CLAIM) {
        handle_claim(service, message, (const Sojourn__Claim *)(const void *)body);
    } else if (view.type == SJ_FRAME_FETCH) {
        handle_fetch(service, message, (const Sojourn__Fetch *)(const void *)body);
    } else {
        handle_enrolment(service, message, (const Sojourn__Hello *)(const void *)body);
    }
    protobuf_c_message_free_unpacked(body, NULL);
}

/* True if another connection wrote since the last check. Also ends commands whose timeout has
 * passed. */
static bool has_changed(sj_fleet_service *service)
{
    sqlite3_stmt *statement = NULL;
    int64_t version = 0;
    sj_error error = {0};
    if (sqlite3_prepare_v2(sj_fleet_database(service->fleet), "PRAGMA data_version", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        version = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    /* The next read of a command reports the error. */
    (void)!sj_fleet_expire(service->fleet, &error);
    const bool changed = version != service->data_version;
    service->data_version = version;
    return changed;
}

/* True if a command is queued or sent. Without one, parked polls need no check, although the
 * ingest changes the database all the time. */
static bool has_open_commands(sj_fleet_service *service)
{
    sqlite3_stmt *statement = NULL;
    const bool found =
        sqlite3_prepare_v2(sj_fleet_database(service->fleet),
                           "SELECT 1 FROM commands WHERE state IN ('queued', 'sent') LIMIT 1", -1,
                           &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    return found;
}

/* Answers a parked poll of a device whose token was revoked. Returns false if the token is
 * valid. */
static bool throw_out(sj_fleet_service *service, const sj_parked_poll *poll)
{
    if (sj_session_grants_has_device(service->passes, poll->device_id)) {
        return false;
    }
    send_ack(service, &poll->message, SJ_EPERM, "the device's token was revoked");
    return true;
}

/* Answers each parked poll for which there is a command, whose device's token was revoked, or whose
 * time has passed. */
static void serve_parked(sj_fleet_service *service)
{
    const bool changed = has_changed(service);
    const bool has_commands = changed && service->parked.count != 0 && has_open_commands(service);
    const bool passes_changed = (changed && renew_passes(service)) || service->passes_changed;
    service->passes_changed = false;
    const uint64_t now = now_ms();
    for (size_t i = service->parked.count; i-- > 0;) {
        const sj_parked_poll *poll = &service->parked.list[i];
        bool is_answered = passes_changed && throw_out(service, poll);
        is_answered = is_answered || (has_commands && give_command(service, poll));
        if (!is_answered && now >= poll->deadline_ms) {
            send_ack(service, &poll->message, SJ_OK, "");
            is_answered = true;
        }
        if (is_answered) {
            sj_parked_polls_remove(&service->parked, i);
        }
    }
}

/* Waits up to LOOK_MS for messages. Returns the list of all that have arrived, which the caller
 * owns. */
static arrival *wait_for_arrivals(sj_fleet_service *service, bool *stopping)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += LOOK_MS * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&service->lock);
    if (service->first == NULL && !service->stopping) {
        pthread_cond_timedwait(&service->arrived, &service->lock, &deadline);
    }
    arrival *taken = service->first;
    service->first = NULL;
    service->last = &service->first;
    *stopping = service->stopping;
    pthread_mutex_unlock(&service->lock);
    return taken;
}

static void free_arrival(sj_fleet_service *service, arrival *one)
{
    pthread_mutex_lock(&service->lock);
    service->waiting_count--;
    service->waiting_bytes -= one->message.body.size;
    service->enrolment_count -= one->is_enrolment;
    pthread_mutex_unlock(&service->lock);
    free(one->message.memory);
    free(one);
}

static void *run(void *argument)
{
    sj_fleet_service *service = argument;
    bool stopping = false;
    while (!stopping) {
        arrival *taken = wait_for_arrivals(service, &stopping);
        while (taken != NULL) {
            arrival *next = taken->next;
            handle_message(service, &taken->message);
            free_arrival(service, taken);
            taken = next;
        }
        serve_parked(service);
    }
    for (size_t i = 0; i < service->parked.count; i++) {
        send_ack(service, &service->parked.list[i].message, SJ_OK, "");
    }
    service->parked.count = 0;
    return NULL;
}

/* Runs on the edge's thread. */
static sj_status judge(void *context, const sj_credentials *shown, int64_t *grant, sj_error *error)
{
    sj_fleet_service *service = context;
    uint8_t hash[SJ_SECRET_HASH_BYTES];
    sj_secret_hash_bytes(shown->token.data, shown->token.size, hash);
    *grant = sj_session_grants_judge(service->passes, shown->device_id.data, hash);
    return *grant != 0 ? SJ_OK
                       : sj_fail(error, SJ_EPERM,
                                 "the device's token is not valid here; enrol the device again");
}

static bool has_pass(void *context, int64_t pass)
{
    const sj_fleet_service *service = context;
    return sj_session_grants_has(service->passes, pass);
}

static bool has_space_for(const sj_fleet_service *service, const arrival *one)
{
    return !service->stopping && service->waiting_count < MAX_WAITING &&
           service->waiting_bytes < MAX_WAITING_BYTES &&
           (!one->is_enrolment || service->enrolment_count < MAX_ENROLMENTS);
}

/* Runs on the edge's thread. */
static sj_status queue_fleet_frame(void *context, sj_edge *edge, const sj_edge_message *message)
{
    sj_fleet_service *service = context;
    arrival *one = calloc(1, sizeof(*one));
    if (one == NULL) {
        return SJ_EAGAIN;
    }
    one->message = *message;
    one->is_enrolment = message->is_stranger; /* other peers have shown a token */
    pthread_mutex_lock(&service->lock);
    const bool is_queued = has_space_for(service, one);
    if (is_queued) {
        /* set only once, because the service's thread reads it without the lock */
        if (service->edge != edge) {
            service->edge = edge;
        }
        *service->last = one;
        service->last = &one->next;
        service->waiting_count++;
        service->waiting_bytes += message->body.size;
        service->enrolment_count += one->is_enrolment;
        pthread_cond_signal(&service->arrived);
    }
    pthread_mutex_unlock(&service->lock);
    if (!is_queued) {
        free(one);
    }
    return is_queued ? SJ_OK : SJ_EAGAIN;
}

sj_ingest_gate sj_fleet_service_gate(sj_fleet_service *service)
{
    return (sj_ingest_gate){.context = service,
                            .requires_tokens = service->requires_tokens,
                            .judge = judge,
                            .has_grant = has_pass,
                            .fleet = queue_fleet_frame};
}

sj_status sj_fleet_service_start(const sj_fleet_service_options *options,
                                 sj_fleet_service **service, sj_error *error)
{
    sj_fleet_service *made = calloc(1, sizeof(*made));
    pthread_condattr_t clock;
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->requires_tokens = options->requires_tokens;
    made->last = &made->first;
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&made->arrived, &clock);
    pthread_condattr_destroy(&clock);
    snprintf(made->database, sizeof(made->database), "%.4000s", options->database);
    sj_status status = sj_fleet_open(options->database, &made->fleet, error);
    if (status == SJ_OK && ((made->passes = sj_session_grants_new()) == NULL ||
                            (made->instances = sj_device_instances_new()) == NULL)) {
        status = sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (status == SJ_OK) {
        (void)sj_session_grants_renew(made->passes, sj_fleet_database(made->fleet));
    }
    if (status == SJ_OK && pthread_create(&made->thread, NULL, run, made) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot start the thread of the fleet");
    }
    if (status != SJ_OK) {
        sj_fleet_service_free(made);
        return status;
    }
    made->thread_started = true;
    *service = made;
    return SJ_OK;
}

void sj_fleet_service_stop(sj_fleet_service *service)
{
    if (service == NULL || !service->thread_started) {
        return;
    }
    pthread_mutex_lock(&service->lock);
    service->stopping = true;
    pthread_cond_signal(&service->arrived);
    pthread_mutex_unlock(&service->lock);
    pthread_join(service->thread, NULL);
    service->thread_started = false;
}

void sj_fleet_service_free(sj_fleet_service *service)
{
    if (service == NULL) {
        return;
    }
    sj_fleet_service_stop(service);
    sj_fleet_close(service->fleet);
    sj_session_grants_free(service->passes);
    pthread_cond_destroy(&service->arrived);
    pthread_mutex_destroy(&service->lock);
    sj_parked_polls_deinit(&service->parked);
    sj_device_instances_free(service->instances);
    free(service);
}

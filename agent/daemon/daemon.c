#include "agent/daemon/daemon.h"

#include "agent/daemon/collector_client.h"
#include "agent/daemon/commands.h"
#include "agent/daemon/device_policies.h"
#include "agent/daemon/shipper.h"
#include "agent/daemon/state_file.h"
#include "agent/host/directories.h"
#include "agent/host/file_limit.h"
#include "agent/host/own_limits.h"
#include "proto/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    WAIT_MS = 20000,
    REPLY_MS = 30000,
    HELLO_MS = 5000,
    PAUSE_MS = 1000,
    SHIP_PAUSE_MS = 2000,
    NAMES_PAUSE_MS = 250
};

static const char last_command_file[] = "last-command.json";
static const char no_status[] = "{\"problem\":\"out of memory\"}";

#define DEFAULT_SPOOL_BYTES (UINT64_C(4) << 30)

typedef struct sj_daemon sj_daemon;

/* One collector, which a thread asks for commands. */
typedef struct server {
    sj_daemon *daemon;
    const sj_session_collector *collector;
    sj_device_command_context commands;
    sj_server_client *client;
    pthread_t thread;
    bool is_started;
    uint64_t last_command;
    bool told_refusal;
    bool is_away; /* True if the collector does not reply. */
    /* Modification time of the enrolment file whose name and tags were reported last. */
    struct timespec names_known;
} server;

struct sj_daemon {
    sj_enrolment enrolment;
    sj_device device;
    char directory[PATH_MAX];
    char spool_root[PATH_MAX];
    int lock;
    server servers[SJ_COLLECTORS_MAX];
    sj_shipper shipper;
    pthread_mutex_t hello_lock;
    sj_server_client *hello; /* Connection of the current hello; hello_lock protects it. */
    uint64_t instance;       /* Random number of this process; see Poll. */
    /* Commands of several collectors run one after the other. Protects last_command_file, too. */
    pthread_mutex_t command_lock;
    atomic_bool is_stuck; /* True if a connection hangs, so that the daemon ends. */
};

static void pause_ms(const sj_daemon *daemon, int ms)
{
    for (int waited = 0; waited < ms && !atomic_load(&daemon->shipper.stop); waited += 50) {
        const struct timespec slice = {.tv_nsec = 50 * 1000000};
        nanosleep(&slice, NULL);
    }
}

/* True if last_command_file is missing or damaged, so that a new one has to be written. */
static bool is_to_be_new(sj_status status)
{
    return status == SJ_ENOTFOUND || status == SJ_ECORRUPT;
}

/* Reads the last commands of all collectors, which the file keeps by address. A file of an older
 * version has only "command", for the first collector. Fails if out of memory, because commands
 * could then run twice. */
static sj_status load_last_commands(sj_daemon *daemon, sj_error *error)
{
    json_t *kept = NULL;
    const sj_status status = sj_state_file_load(last_command_file, &kept, error);
    if (status != SJ_OK) {
        return is_to_be_new(status) ? SJ_OK : status;
    }
    for (size_t i = 0; i < daemon->enrolment.count; ++i) {
        server *asked = &daemon->servers[i];
        const json_t *command =
            json_object_get(json_object_get(kept, "collectors"), asked->collector->url);
        if (command == NULL && i == 0) {
            command = json_object_get(kept, "command");
        }
        asked->last_command = (uint64_t)json_integer_value(command);
    }
    json_decref(kept);
    return SJ_OK;
}

/* Writes a command's number into the object of last_command_file. */
static sj_status set_last_command(json_t *kept, const char *url, uint64_t command, sj_error *error)
{
    if (!json_is_object(json_object_get(kept, "collectors"))) {
        SJ_TRY(sj_state_set(kept, "collectors", json_object(), error));
    }
    return sj_state_set(json_object_get(kept, "collectors"), url, json_integer((json_int_t)command),
                        error);
}

/* Stores the command's number before the command is run. So a command never runs twice; it does not
 * run at all if this process is killed right now. */
static sj_status keep_last_command(server *asked, uint64_t command, sj_error *error)
{
    json_t *kept = NULL;
    sj_status status = sj_state_file_load(last_command_file, &kept, error);
    if (is_to_be_new(status)) {
        kept = json_object();
        status = SJ_OK;
    }
    if (status == SJ_OK) {
        status = set_last_command(kept, asked->collector->url, command, error);
    }
    if (status == SJ_OK) {
        status = sj_state_file_keep(last_command_file, kept, error);
    }
    json_decref(kept);
    if (status == SJ_OK) {
        asked->last_command = command;
    }
    return status;
}

static sj_status ask(server *asked, sj_frame_type type, const ProtobufCMessage *message,
                     sj_server_reply *reply, sj_error *error)
{
    uint8_t *frame = NULL;
    size_t size = 0;
    *reply = (sj_server_reply){0};
    sj_status status = sj_server_client_frame(type, message, &frame, &size);
    if (status != SJ_OK) {
        return sj_fail(error, status, "cannot ask the collector: %s", sj_status_text(status));
    }
    status = sj_server_client_ask(asked->client, (sj_slice){.data = frame, .size = size}, REPLY_MS,
                                  reply, error);
    free(frame);
    return status;
}

/* Repeats the result until the collector has it, the result turns out too large for a frame, or the
 * daemon ends. */
static void send_result(server *asked, uint64_t command, bool failed, const char *text)
{
    Sojourn__CommandResult result = SOJOURN__COMMAND_RESULT__INIT;
    result.device_id.len = SJ_DEVICE_ID_BYTES;
    result.device_id.data = asked->daemon->device.id;
    result.token = (char *)(uintptr_t)asked->collector->token;
    result.command = command;
    result.failed = failed;
    result.result = (char *)(uintptr_t)text;
    for (bool sent = false; !sent && !atomic_load(&asked->daemon->shipper.stop);) {
        sj_server_reply reply;
        sj_error error = {0};
        const sj_status status = ask(asked, SJ_FRAME_RESULT, &result.base, &reply, &error);
        sent = status == SJ_OK || status == SJ_ELIMIT;
        sj_server_reply_deinit(&reply);
        if (!sent) {
            pause_ms(asked->daemon, PAUSE_MS);
        }
    }
}

/* Reads a part of a file of the collector; see commands.h. */
static sj_status fetch(void *context, uint64_t file, uint64_t offset, uint8_t *bytes,
                       size_t capacity, size_t *got, sj_error *error)
{
    server *asked = context;
    sj_server_reply reply;
    Sojourn__Fetch question = SOJOURN__FETCH__INIT;
    question.device_id.len = SJ_DEVICE_ID_BYTES;
    question.device_id.data = asked->daemon->device.id;
    question.token = (char *)(uintptr_t)asked->collector->token;
    question.file = file;
    question.offset = offset;
    SJ_TRY(ask(asked, SJ_FRAME_FETCH, &question.base, &reply, error));
    sj_status status = SJ_OK;
    if (reply.part == NULL || reply.payload_bytes > capacity || reply.part->offset != offset) {
        status = sj_fail(error, SJ_ECORRUPT, "the collector's answer is not understood");
    } else if (reply.part->status != SJ_OK) {
        status = sj_fail(error, SJ_EIO, "%s", reply.part->message);
    } else {
        memcpy(bytes, reply.payload, reply.payload_bytes);
        *got = reply.payload_bytes;
    }
    sj_server_reply_deinit(&reply);
    return status;
}

/* Returns true if this process may run the command: another machine may have the same identity. If
 * the collector did not decide, the next poll asks again. */
static bool claim_command(server *asked, const Sojourn__Command *command)
{
    Sojourn__Claim claim = SOJOURN__CLAIM__INIT;
    sj_server_reply reply = {0};
    sj_error error = {0};
    claim.device_id.len = SJ_DEVICE_ID_BYTES;
    claim.device_id.data = asked->daemon->device.id;
    claim.token = (char *)(uintptr_t)asked->collector->token;
    claim.command = command->command;
    claim.instance = asked->daemon->instance;
    sj_status status = ask(asked, SJ_FRAME_CLAIM, &claim.base, &reply, &error);
    if (status == SJ_OK) {
        status = reply.ack != NULL ? (sj_status)reply.ack->status : SJ_ECORRUPT;
        sj_fail(&error, status, "%s", reply.ack != NULL ? reply.ack->message : "no answer");
    }
    sj_server_reply_deinit(&reply);
    if (status != SJ_OK) {
        sj_log(SJ_LOG_WARN, "command", "%" PRIu64 " is left alone: %s", command->command,
               error.text);
    }
    if (status != SJ_OK && status != SJ_EEXIST && status != SJ_ENOTFOUND) {
        pause_ms(asked->daemon, PAUSE_MS);
    }
    return status == SJ_OK;
}

/* Runs a command, unless its number cannot be stored first. */
static sj_status run_command(server *asked, const Sojourn__Command *command, json_t **result,
                             sj_error *error)
{
    pthread_mutex_lock(&asked->daemon->command_lock);
    sj_status status = keep_last_command(asked, command->command, error);
    if (status == SJ_OK) {
        status = sj_device_command_run(
            &asked->commands, command->kind, command->arguments,
            command->timeout_ms < REPLY_MS ? (int)command->timeout_ms : REPLY_MS, result, error);
    }
    pthread_mutex_unlock(&asked->daemon->command_lock);
    return status;
}

/* Returns the result as a text that fits into a frame; the caller frees it. Returns NULL if out of
 * memory; `error` says so. */
static char *text_of_result(const json_t *result, sj_error *error)
{
    char *text = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text != NULL && strlen(text) > SJ_FRAME_MAX_HEADER_BYTES - 1024) {
        free(text);
        text = strdup("\"the result is too long\"");
    }
    if (text == NULL) {
        sj_fail(error, SJ_ENOMEM, "%s", sj_device_command_no_result);
    }
    return text;
}

static void carry_out(server *asked, const Sojourn__Command *command)
{
    json_t *result = NULL;
    sj_error error = {0};
    if (command->claim && !claim_command(asked, command)) {
        return;
    }
    const sj_status status = run_command(asked, command, &result, &error);
    char *text = status == SJ_OK ? text_of_result(result, &error) : NULL;
    sj_log(text != NULL ? SJ_LOG_INFO : SJ_LOG_WARN, "command", "%" PRIu64 " %.32s: %s",
           command->command, command->kind, text != NULL ? "done" : error.text);
    send_result(asked, command->command, text == NULL, text != NULL ? text : error.text);
    free(text);
    json_decref(result);
}

static void handle_reply(server *asked, const sj_server_reply *reply)
{
    if (reply->command != NULL) {
        asked->told_refusal = false;
        carry_out(asked, reply->command);
    } else if (reply->ack != NULL && reply->ack->status != SJ_OK) {
        if (!asked->told_refusal) {
            sj_log(SJ_LOG_ERROR, "refused", "the collector refuses: %s", reply->ack->message);
        }
        asked->told_refusal = true;
        pause_ms(asked->daemon, 5 * PAUSE_MS);
    }
}

/* Registers the client of a hello, so that the end of the daemon can interrupt it. NULL: the hello
 * is over. Returns false if the daemon is ending; then nothing may be asked. */
static bool note_hello(sj_daemon *daemon, sj_server_client *client)
{
    pthread_mutex_lock(&daemon->hello_lock);
    const bool may_ask = !atomic_load(&daemon->shipper.stop);
    daemon->hello = may_ask ? client : NULL;
    pthread_mutex_unlock(&daemon->hello_lock);
    return may_ask;
}

static void break_off_hello(sj_daemon *daemon)
{
    pthread_mutex_lock(&daemon->hello_lock);
    if (daemon->hello != NULL) {
        sj_server_client_stop(daemon->hello);
    }
    pthread_mutex_unlock(&daemon->hello_lock);
}

/* Reports the device's identity to the collector: at the start, and after a change of name or
 * tags. */
static sj_status say_hello(server *asked, sj_error *error)
{
    sj_daemon *daemon = asked->daemon;
    sj_device device;
    sj_server_reply reply = {0};
    sj_server_client *client = NULL;
    uint8_t *hello = NULL;
    size_t hello_bytes = 0;
    SJ_TRY(sj_enrolment_device(&device, error));
    SJ_TRY(sj_device_hello(&device, asked->collector->token, (sj_slice){0}, &hello, &hello_bytes));
    /* Uses a separate connection, because the other one waits for commands. */
    sj_status status =
        sj_server_client_open(asked->collector->url, asked->collector->certificate, &client, error);
    if (status == SJ_OK) {
        status = note_hello(daemon, client)
                     ? sj_server_client_ask(client, (sj_slice){.data = hello, .size = hello_bytes},
                                            HELLO_MS, &reply, error)
                     : SJ_ECLOSED;
        (void)note_hello(daemon, NULL);
    }
    sj_server_reply_deinit(&reply);
    sj_server_client_close(client);
    free(hello);
    return status;
}

/* Says hello if the file with name and tags has changed since the last hello. */
static void report_names(server *asked)
{
    char path[PATH_MAX];
    struct stat about;
    sj_error error = {0};
    if (sj_state_file_path("collector.json", path, sizeof(path), &error) != SJ_OK ||
        stat(path, &about) != 0 ||
        (about.st_mtim.tv_sec == asked->names_known.tv_sec &&
         about.st_mtim.tv_nsec == asked->names_known.tv_nsec)) {
        return;
    }
    if (say_hello(asked, &error) == SJ_OK) {
        asked->names_known = about.st_mtim;
    }
}

/* Logs when the collector becomes unreachable, and when it replies again. */
static void log_reach(server *asked, bool is_away, const char *text)
{
    const char *what = asked->daemon->enrolment.count > 1 ? "its sessions wait on disk, and new "
                                                            "ones go to the next collector"
                                                          : "sessions are kept on disk";
    if (is_away && !asked->is_away) {
        sj_log(SJ_LOG_WARN, "away", "%s: %s; %s", asked->collector->url, text, what);
    } else if (!is_away && asked->is_away) {
        sj_log(SJ_LOG_INFO, "back", "%s: the collector answers again", asked->collector->url);
    }
    asked->is_away = is_away;
}

/* Ends the daemon if its connection hangs for good, because only a new process has a new NNG. */
static void end_if_stuck(const server *asked)
{
    sj_daemon *daemon = asked->daemon;
    if (sj_server_client_is_stuck(asked->client) && !atomic_load(&daemon->shipper.stop) &&
        !atomic_exchange(&daemon->is_stuck, true)) {
        kill(getpid(), SIGTERM);
    }
}

static void *run_commands(void *argument)
{
    server *asked = argument;
    const sj_daemon *daemon = asked->daemon;
    while (!atomic_load(&daemon->shipper.stop)) {
        Sojourn__Poll poll = SOJOURN__POLL__INIT;
        sj_server_reply reply = {0};
        sj_error error = {0};
        json_t *status = sj_device_command_status(&asked->commands);
        char *text = json_dumps(status, JSON_COMPACT);
        poll.device_id.len = SJ_DEVICE_ID_BYTES;
        poll.device_id.data = (uint8_t *)(uintptr_t)daemon->device.id;
        poll.token = (char *)(uintptr_t)asked->collector->token;
        poll.last_command = asked->last_command;
        poll.instance = daemon->instance;
        poll.wait_ms = WAIT_MS;
        poll.status = text != NULL ? text : (char *)(uintptr_t)no_status;
        if (ask(asked, SJ_FRAME_POLL, &poll.base, &reply, &error) == SJ_OK) {
            log_reach(asked, false, "");
            handle_reply(asked, &reply);
        } else {
            log_reach(asked, true, error.text);
            end_if_stuck(asked);
            pause_ms(daemon, PAUSE_MS);
        }
        sj_server_reply_deinit(&reply);
        free(text);
        json_decref(status);
    }
    return NULL;
}

static void *run_shipper(void *argument)
{
    sj_daemon *daemon = argument;
    while (!atomic_load(&daemon->shipper.stop)) {
        (void)sj_shipper_round(&daemon->shipper);
        for (int waited = 0; waited < SHIP_PAUSE_MS && !atomic_load(&daemon->shipper.stop);
             waited += NAMES_PAUSE_MS) {
            for (size_t i = 0; i < daemon->enrolment.count; ++i) {
                report_names(&daemon->servers[i]);
            }
            pause_ms(daemon, NAMES_PAUSE_MS);
        }
    }
    return NULL;
}

static sj_status be_alone(sj_daemon *daemon, sj_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/lock", daemon->directory);
    daemon->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (daemon->lock < 0) {
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(errno));
    }
    return flock(daemon->lock, LOCK_EX | LOCK_NB) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EEXIST, "another sojourn-device runs here (%s)", path);
}

static sj_status draw_instance(sj_daemon *daemon, sj_error *error)
{
    if (getrandom(&daemon->instance, sizeof(daemon->instance), 0) != sizeof(daemon->instance)) {
        return sj_fail(error, SJ_EIO, "cannot draw a random number: %s", strerror(errno));
    }
    daemon->instance = (daemon->instance & INT64_MAX) | 1;
    return SJ_OK;
}

static sj_status prepare_server(sj_daemon *daemon, size_t number, const sj_daemon_options *options,
                                sj_error *error)
{
    server *asked = &daemon->servers[number];
    asked->daemon = daemon;
    asked->collector = &daemon->enrolment.collectors[number];
    asked->commands = (sj_device_command_context){
        .spool_root = daemon->spool_root,
        .spool_bytes = options->spool_bytes != 0 ? options->spool_bytes : DEFAULT_SPOOL_BYTES,
        .policies = sj_device_policies_number(number, asked->collector->url),
        .collector = asked,
        .fetch = fetch};
    return sj_server_client_open(asked->collector->url, asked->collector->certificate,
                                 &asked->client, error);
}

static sj_status prepare(sj_daemon *daemon, const sj_daemon_options *options, sj_error *error)
{
    SJ_TRY(draw_instance(daemon, error));
    SJ_TRY(sj_state_directory("device", daemon->directory, PATH_MAX, error));
    SJ_TRY(sj_state_directory("device/spool", daemon->spool_root, PATH_MAX, error));
    SJ_TRY(be_alone(daemon, error));
    SJ_TRY(sj_enrolment_load(&daemon->enrolment, error));
    SJ_TRY(sj_enrolment_device(&daemon->device, error));
    daemon->shipper.spool_root = daemon->spool_root;
    daemon->shipper.enrolment = &daemon->enrolment;
    daemon->shipper.device = &daemon->device;
    for (size_t i = 0; i < daemon->enrolment.count; ++i) {
        SJ_TRY(prepare_server(daemon, i, options, error));
    }
    return load_last_commands(daemon, error);
}

/* Starts a thread for each collector. Returns false if one cannot be started. */
static bool start_servers(sj_daemon *daemon)
{
    bool are_started = true;
    for (size_t i = 0; are_started && i < daemon->enrolment.count; ++i) {
        server *asked = &daemon->servers[i];
        asked->is_started = pthread_create(&asked->thread, NULL, run_commands, asked) == 0;
        are_started = asked->is_started;
        if (are_started) {
            sj_log(SJ_LOG_INFO, "started", "%s reports to %s", daemon->device.name,
                   asked->collector->url);
        }
    }
    return are_started;
}

static void stop_servers(sj_daemon *daemon)
{
    for (size_t i = 0; i < daemon->enrolment.count; ++i) {
        sj_server_client_stop(daemon->servers[i].client);
    }
    break_off_hello(daemon);
    for (size_t i = 0; i < daemon->enrolment.count; ++i) {
        if (daemon->servers[i].is_started) {
            pthread_join(daemon->servers[i].thread, NULL);
        }
    }
}

static sj_status work(sj_daemon *daemon, const sigset_t *signals, sj_error *error)
{
    pthread_t shipper;
    int signal_number = 0;
    const bool are_started = start_servers(daemon);
    const bool ships = are_started && pthread_create(&shipper, NULL, run_shipper, daemon) == 0;
    if (ships) {
        (void)sigwait(signals, &signal_number);
    }
    atomic_store(&daemon->shipper.stop, true);
    stop_servers(daemon);
    if (ships) {
        pthread_join(shipper, NULL);
    }
    if (atomic_load(&daemon->is_stuck)) {
        return sj_fail(error, SJ_EIO,
                       "the connection to the collector hangs; start the device again");
    }
    sj_log(SJ_LOG_INFO, "stopped", "asked to end; recordings continue");
    return ships ? SJ_OK : sj_fail(error, SJ_EIO, "cannot start a thread");
}

sj_status sj_daemon_run(const sj_daemon_options *options, sj_error *error)
{
    static sj_daemon daemon = {.lock = -1,
                               .hello_lock = PTHREAD_MUTEX_INITIALIZER,
                               .command_lock = PTHREAD_MUTEX_INITIALIZER};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    sj_file_limit_ignore();
    sj_own_limits_raise();
    /* The kernel reaps workers, because the daemon does not wait for them. */
    signal(SIGCHLD, SIG_IGN);
    sj_log_open("sojourn-device");
    sj_status status = prepare(&daemon, options, error);
    if (status == SJ_OK) {
        status = work(&daemon, &signals, error);
    }
    for (size_t i = 0; i < SJ_COLLECTORS_MAX; ++i) {
        sj_server_client_close(daemon.servers[i].client);
    }
    sj_enrolment_deinit(&daemon.enrolment);
    if (daemon.lock >= 0) {
        close(daemon.lock);
    }
    return status;
}

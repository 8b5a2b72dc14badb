#include "agent/link/link_server.h"

#include "agent/host/clock.h"
#include "agent/link/class_reply.h"
#include "agent/link/code_reply.h"
#include "agent/link/container_reply.h"
#include "agent/link/memory_file.h"
#include "agent/link/stall.h"
#include "agent/objfile/system_library.h"
#include "agent/ptrace/proc_status.h"
#include "agent/registry/method_group.h"
#include "agent/runtimes/runtime.h"
#include "proto/base/socket_file.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 128, BACKLOG = 128, PLAN_POLL_MS = 5 };

typedef struct link_client {
    int fd;
    pid_t pid;         /* The process that connected. 0: this PID namespace has no number for it. */
    uint64_t process;  /* 0 until HELLO */
    uint64_t asked_ns; /* when its last packet arrived */
    uint64_t asked_ticks;
    uint8_t *request; /* packet that requests a plan that is being made; NULL: none; owned */
    size_t request_bytes;
} link_client;

struct sj_link_server {
    sj_link_server_options options;
    sj_socket_file socket_file;
    int listener;
    int wake; /* eventfd: signals the stop */
    pthread_t thread;
    bool thread_started;
    link_client clients[CLIENTS_MAX];
    size_t client_count;
    uint8_t packet[SJ_LINK_MAX_BYTES]; /* used by the server's thread */
    size_t packet_bytes;
    int file; /* descriptor that came with the packet; -1: none */
    _Atomic uint64_t connections;
    _Atomic uint64_t joined;
    _Atomic uint64_t ready;
    _Atomic uint64_t bad_packets;
};

static sj_status send_packet(int fd, sj_link_type type, const void *payload, size_t bytes,
                             const void *text, size_t text_bytes)
{
    uint8_t packet[sizeof(sj_link_packet) + 256 + PATH_MAX];
    sj_writer writer = sj_writer_of(packet, sizeof(packet));
    const sj_link_packet head = {.version = SJ_LINK_VERSION,
                                 .type = (uint16_t)type,
                                 .payload_bytes = (uint32_t)(bytes + text_bytes)};
    sj_write_bytes(&writer, &head, sizeof(head));
    sj_write_bytes(&writer, payload, bytes);
    sj_write_bytes(&writer, text, text_bytes);
    const size_t size = sj_writer_used(&writer);
    if (writer.bad || send(fd, packet, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) {
        return SJ_ECLOSED;
    }
    return SJ_OK;
}

/* True if the name cannot lead out of the runtime directory. */
static bool is_file_name(const char *name, size_t capacity)
{
    const size_t bytes = strnlen(name, capacity);
    return bytes != 0 && bytes < capacity && memchr(name, '/', bytes) == NULL && name[0] != '.';
}

/* Replaces the pids that the agent knows in its own PID namespace by those of this recorder's. */
static void translate_pids(const link_client *client, sj_link_hello *hello)
{
    sj_proc_status facts;
    if (client->pid == 0 || client->pid == (pid_t)hello->pid) {
        return;
    }
    hello->pid = (uint32_t)client->pid;
    hello->parent_pid =
        sj_proc_status_read(client->pid, &facts) == SJ_OK ? (uint32_t)facts.parent : 0;
}

static sj_status reply_to_hello(sj_link_server *server, link_client *client, sj_reader *reader)
{
    sj_link_hello hello;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(hello));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&hello, bytes, sizeof(hello));
    if (!is_file_name(hello.arena_name, sizeof(hello.arena_name)) ||
        hello.occasion > SJ_OCCASION_ATTACH) {
        return SJ_ECORRUPT;
    }
    translate_pids(client, &hello);
    if (hello.occasion == SJ_OCCASION_DLOPEN) {
        SJ_TRY(
            sj_registry_find_process(server->options.registry, (pid_t)hello.pid, &client->process));
    } else {
        SJ_TRY(sj_registry_add_process(server->options.registry, (pid_t)hello.pid,
                                       (pid_t)hello.parent_pid, (sj_link_occasion)hello.occasion,
                                       sj_clock_ticks(), &client->process));
        const sj_link_process process = {
            .number = client->process, .pid = (pid_t)hello.pid, .arena_name = hello.arena_name};
        /* Noted before the arena is read, because the recovery of a killed recorder's session needs
         * the name. */
        sj_registry_note_arena(server->options.registry, client->process, hello.arena_name);
        SJ_TRY(server->options.joined(server->options.context, &process));
        atomic_fetch_add(&server->joined, 1);
    }
    sj_link_welcome welcome = server->options.welcome;
    if ((welcome.runtimes & SJ_LINK_RUNTIME_COUNTING) == 0) {
        welcome.runtimes = sj_registry_present_runtimes(server->options.registry, welcome.runtimes);
    }
    return send_packet(client->fd, SJ_LINK_WELCOME, &welcome, sizeof(welcome), NULL, 0);
}

/* Reads the structure and the path after it. Replaces the path by the path of the real file. */
static sj_status read_module(sj_reader *reader, sj_link_module *module, char path[PATH_MAX])
{
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(*module));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(module, bytes, sizeof(*module));
    const uint8_t *text = sj_read_bytes(reader, module->path_bytes);
    if (text == NULL || module->path_bytes >= PATH_MAX ||
        module->build_id_bytes > SJ_BUILD_ID_MAX_BYTES ||
        memchr(text, '\0', module->path_bytes) != NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(path, text, module->path_bytes);
    path[module->path_bytes] = '\0';
    sj_real_module_path(path);
    return SJ_OK;
}

typedef sj_status (*module_planner)(sj_registry *registry, const sj_plan_request *request,
                                    sj_plan_reply *reply);

/* Returns the function that handles a request for a module's plan. */
static module_planner planner_of(sj_link_type type)
{
    switch (type) {
    case SJ_LINK_TRANSITION:
        return sj_registry_review_module;
    case SJ_LINK_IMPORTS:
        return sj_registry_plan_imports;
    default:
        return sj_registry_plan_module;
    }
}

static sj_status send_plan(int fd, const sj_plan_reply *planned)
{
    const sj_link_plan reply = {.first_function = planned->first_function,
                                .path_bytes = (uint32_t)strlen(planned->plan_path)};
    return send_packet(fd, SJ_LINK_PLAN, &reply, sizeof(reply), planned->plan_path,
                       reply.path_bytes);
}

/* Sends a plan that is not in a file. */
static sj_status send_plan_itself(int fd, const sj_plan_reply *planned)
{
    const sj_link_plan reply = {.first_function = planned->first_function};
    const size_t bytes = planned->plan.size_bytes;
    const sj_link_packet head = {.version = SJ_LINK_VERSION,
                                 .type = SJ_LINK_PLAN,
                                 .payload_bytes = (uint32_t)(sizeof(reply) + bytes)};
    const struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)&head, .iov_len = sizeof(head)},
        {.iov_base = (void *)(uintptr_t)&reply, .iov_len = sizeof(reply)},
        {.iov_base = (void *)(uintptr_t)planned->plan.header, .iov_len = bytes}};
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = 3};
    const ssize_t size = (ssize_t)(sizeof(head) + sizeof(reply) + bytes);
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == size ? SJ_OK : SJ_ECLOSED;
}

static sj_status send_skip(int fd, sj_skip reason)
{
    const sj_link_skip skip = {.reason = reason};
    return send_packet(fd, SJ_LINK_SKIP, &skip, sizeof(skip), NULL, 0);
}

static void drop_request(link_client *client)
{
    free(client->request);
    client->request = NULL;
}

/* Keeps the request of a client that must wait for its plan. The reply is sent later; other clients
 * are served meanwhile. */
static sj_status keep_request(const sj_link_server *server, link_client *client)
{
    if (client->request != NULL) {
        return SJ_OK;
    }
    client->request = malloc(server->packet_bytes);
    if (client->request == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(client->request, server->packet, server->packet_bytes);
    client->request_bytes = server->packet_bytes;
    return SJ_OK;
}

static sj_status reply_to_module(sj_link_server *server, link_client *client, sj_reader *reader,
                                 sj_link_type type)
{
    sj_link_module module;
    char path[PATH_MAX];
    sj_plan_reply planned = {0};
    SJ_TRY(read_module(reader, &module, path));
    const sj_plan_request request = {.process = client->process,
                                     .module = &module,
                                     .path = path,
                                     .now_ticks = client->asked_ticks,
                                     .asked_ns = client->asked_ns};
    sj_status status = planner_of(type)(server->options.registry, &request, &planned);
    if (status == SJ_EAGAIN) {
        status = keep_request(server, client);
        if (status == SJ_OK) {
            return SJ_OK;
        }
    }
    drop_request(client);
    if (status != SJ_OK && status != SJ_EUNSUPPORTED) {
        sj_registry_note_unplanned(server->options.registry, path, status);
    }
    return status == SJ_OK ? send_plan(client->fd, &planned)
                           : send_skip(client->fd, SJ_SKIP_MODULE);
}

static sj_status reply_to_code(sj_link_server *server, link_client *client, sj_reader *reader)
{
    sj_plan_reply planned = {0};
    const sj_status status = sj_link_plan_code(server->options.registry, client->process, reader,
                                               server->file, &planned);
    if (status == SJ_EUNSUPPORTED) {
        return send_skip(client->fd, SJ_SKIP_UNDECODABLE);
    }
    if (status != SJ_OK || planned.plan.header == NULL) {
        return status == SJ_OK ? send_plan(client->fd, &planned) : status;
    }
    const sj_status sent = send_plan_itself(client->fd, &planned);
    sj_plan_free(&planned.plan);
    return sent;
}

static sj_status reply_to_applied(sj_link_server *server, link_client *client, sj_reader *reader)
{
    sj_link_applied applied;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(applied));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&applied, bytes, sizeof(applied));
    const size_t count = sj_reader_left(reader) / sizeof(sj_link_failure);
    sj_link_failure *failures = calloc(count + 1, sizeof(*failures));
    if (failures == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(failures, sj_read_bytes(reader, count * sizeof(*failures)), count * sizeof(*failures));
    sj_registry *registry = server->options.registry;
    const sj_status status =
        applied.first_function != 0
            ? sj_registry_applied(registry, client->process, &applied, failures, count)
            : sj_registry_report_generated(registry, client->process, failures, count);
    free(failures);
    return status;
}

static bool is_terminated(const uint8_t *texts, uint32_t bytes)
{
    return texts != NULL && bytes > 1 && texts[0] != '\0' && texts[bytes - 1] == '\0';
}

/* Registers the methods that a class of the app's runtime understands, as a group named after the
 * class. */
static sj_status reply_to_methods(sj_link_server *server, link_client *client, sj_reader *reader)
{
    enum { CLASS_BYTES = 1024, LANGUAGE_BYTES = 16, NAME_BYTES = 4096 };
    char path[LANGUAGE_BYTES + CLASS_BYTES];
    char name[NAME_BYTES];
    uint8_t wanted[SJ_METHOD_GROUP_MAX];
    sj_link_methods methods;
    sj_link_methods_added added = {0};
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(methods));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&methods, bytes, sizeof(methods));
    const uint8_t *lineage = sj_read_bytes(reader, methods.lineage_bytes);
    const uint8_t *names = sj_read_bytes(reader, methods.names_bytes);
    const uint8_t *left_alone = sj_read_bytes(reader, methods.count);
    const sj_runtime *runtime = sj_runtime_of_language(methods.language);
    if (!is_terminated(lineage, methods.lineage_bytes) || left_alone == NULL || runtime == NULL ||
        strlen((const char *)lineage) > CLASS_BYTES || methods.count > SJ_METHOD_GROUP_MAX ||
        !is_terminated(names, methods.names_bytes)) {
        return SJ_ECORRUPT;
    }
    for (uint32_t i = 0; i < methods.count; i++) {
        wanted[i] = left_alone[i] == 0;
    }
    snprintf(path, sizeof(path), "%s:%s", runtime->prefix, (const char *)lineage);
    sj_slice slice = {.data = names, .size = methods.names_bytes};
    if (runtime->has_lineages) {
        const uint64_t code = sj_read_u64(reader);
        SJ_TRY(sj_registry_learn_class(server->options.registry, client->process,
                                       (sj_slice){.data = lineage, .size = methods.lineage_bytes}));
        slice = (sj_slice){.data = (const uint8_t *)name,
                           .size = sj_registry_name_method(server->options.registry,
                                                           client->process, (const char *)names,
                                                           code, name, sizeof(name))};
        if (reader->bad || methods.count != 1 || slice.size == 0) {
            return SJ_ECORRUPT;
        }
    }
    SJ_TRY(sj_registry_add_methods(server->options.registry, client->process, path, slice,
                                   methods.count, sj_clock_ticks(), &added.first_function, wanted));
    added.count = methods.count;
    return send_packet(client->fd, SJ_LINK_METHODS_ADDED, &added, sizeof(added), wanted,
                       added.count);
}

/* Registers methods whose code was replaced. The app continues after the reply. */
static sj_status reply_to_replaced_methods(sj_link_server *server, link_client *client,
                                           sj_reader *reader)
{
    sj_link_replaced_methods head;
    sj_replaced_code changes[SJ_LINK_REPLACED_METHODS_MAX];
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(head));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&head, bytes, sizeof(head));
    if (head.count > SJ_LINK_REPLACED_METHODS_MAX) {
        return SJ_ECORRUPT;
    }
    for (uint32_t i = 0; i < head.count; i++) {
        changes[i].code = sj_read_u64(reader);
        const size_t left = sj_reader_left(reader);
        changes[i].name = (const char *)reader->at;
        const size_t length = reader->bad ? left : strnlen(changes[i].name, left);
        if (length == left || sj_read_bytes(reader, length + 1) == NULL) {
            return SJ_ECORRUPT;
        }
    }
    const sj_status status = sj_registry_replace_methods(server->options.registry, client->process,
                                                         changes, head.count, sj_clock_ticks());
    if (status != SJ_OK && status != SJ_ELIMIT) {
        return status;
    }
    return send_packet(client->fd, SJ_LINK_DONE, NULL, 0, NULL, 0);
}

static sj_status reply_to_unloaded(sj_link_server *server, link_client *client, sj_reader *reader)
{
    sj_link_module module;
    char path[PATH_MAX];
    SJ_TRY(read_module(reader, &module, path));
    const sj_status status = sj_registry_unloaded(server->options.registry, client->process,
                                                  module.bias, sj_clock_ticks());
    /* Modules that were never planned have no mapping. */
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

static sj_status send_refusal(const link_client *client, const char *reason)
{
    return send_packet(client->fd, SJ_LINK_REFUSED, NULL, 0, reason, strlen(reason));
}

void sj_link_reply(int fd, sj_link_type type, const char *text)
{
    const size_t most = SJ_LINK_MAX_BYTES - sizeof(sj_link_packet);
    const size_t bytes = strlen(text) < most ? strlen(text) : most;
    const sj_link_packet head = {
        .version = SJ_LINK_VERSION, .type = (uint16_t)type, .payload_bytes = (uint32_t)bytes};
    const struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)&head, .iov_len = sizeof(head)},
                                  {.iov_base = (void *)(uintptr_t)text, .iov_len = bytes}};
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = 2};
    (void)!sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static sj_status reply_to_policy(const sj_link_server *server, const link_client *client,
                                 sj_reader *reader)
{
    const size_t bytes = sj_reader_left(reader);
    const sj_slice document = {.data = sj_read_bytes(reader, bytes), .size = bytes};
    if (document.data == NULL || bytes == 0) {
        return SJ_ECORRUPT;
    }
    const sj_status status =
        server->options.policy != NULL
            ? server->options.policy(server->options.context, document, client->fd)
            : SJ_EUNSUPPORTED;
    switch (status) {
    case SJ_OK:
        return SJ_OK;
    case SJ_EAGAIN:
        return send_refusal(client, "its policy is being changed already; try again");
    case SJ_EUNSUPPORTED:
        return send_refusal(client, "its policy cannot be changed");
    default:
        return send_refusal(client, sj_status_text(status));
    }
}

static sj_status reply_to_policy_question(const sj_link_server *server, const link_client *client)
{
    if (server->options.reply_to_policy == NULL) {
        return send_refusal(client, "this recording has no policy");
    }
    server->options.reply_to_policy(server->options.context, client->fd);
    return SJ_OK;
}

static sj_status reply_to_trigger(const sj_link_server *server, const link_client *client,
                                  const char *name)
{
    if (server->options.trigger == NULL) {
        return send_refusal(client, "this recording takes no triggers");
    }
    if (server->options.trigger(server->options.context, name) != SJ_OK) {
        return send_refusal(client, "no trigger \"command\" of its policy has that name");
    }
    return send_packet(client->fd, SJ_LINK_DONE, NULL, 0, NULL, 0);
}

/* Serves `sojourn mark` and `sojourn trigger`, which send no HELLO. */
static sj_status reply_to_mark(sj_link_server *server, const link_client *client, sj_reader *reader,
                               bool is_trigger)
{
    sj_link_mark mark;
    char name[SJ_LINK_MARK_NAME_BYTES + 1] = "";
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(mark));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&mark, bytes, sizeof(mark));
    if (mark.end > 1 || mark.name_bytes == 0 || mark.name_bytes > SJ_LINK_MARK_NAME_BYTES ||
        mark.name_bytes != sj_reader_left(reader)) {
        return SJ_ECORRUPT;
    }
    memcpy(name, sj_read_bytes(reader, mark.name_bytes), mark.name_bytes);
    if (strlen(name) != mark.name_bytes) {
        return SJ_ECORRUPT;
    }
    if (is_trigger) {
        return reply_to_trigger(server, client, name);
    }
    if (server->options.mark == NULL) {
        return send_refusal(client, "this recording takes no marks");
    }
    if (server->options.mark(server->options.context, name, mark.end != 0) != SJ_OK) {
        return send_refusal(client, "the recording could not keep the mark");
    }
    return send_packet(client->fd, SJ_LINK_DONE, NULL, 0, NULL, 0);
}

static sj_status handle_stall(sj_link_server *server, const link_client *client, sj_reader *reader)
{
    sj_reported_stall stall;
    SJ_TRY(sj_link_read_stall(server->options.registry, client->process, reader, server->file,
                              &stall));
    if (server->options.stall != NULL) {
        server->options.stall(server->options.context, stall.name, stall.waited_ns);
    }
    return SJ_OK;
}

static sj_status reply_to_packet(sj_link_server *server, link_client *client)
{
    sj_reader reader = sj_reader_of(server->packet, server->packet_bytes);
    sj_link_packet head;
    const uint8_t *bytes = sj_read_bytes(&reader, sizeof(head));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&head, bytes, sizeof(head));
    if (head.version != SJ_LINK_VERSION) {
        static const char reason[] = "the agent speaks another version of the link";
        (void)send_packet(client->fd, SJ_LINK_REFUSED, NULL, 0, reason, sizeof(reason) - 1);
        return SJ_EVERSION;
    }
    if (head.payload_bytes != sj_reader_left(&reader)) {
        return SJ_ECORRUPT;
    }
    if (head.type == SJ_LINK_HELLO) {
        return reply_to_hello(server, client, &reader);
    }
    if (head.type == SJ_LINK_MARK || head.type == SJ_LINK_TRIGGER) {
        return reply_to_mark(server, client, &reader, head.type == SJ_LINK_TRIGGER);
    }
    if (head.type == SJ_LINK_POLICY) {
        return reply_to_policy(server, client, &reader);
    }
    if (head.type == SJ_LINK_POLICY_ASK) {
        return reply_to_policy_question(server, client);
    }
    if (client->process == 0) {
        return SJ_ECORRUPT;
    }
    switch (head.type) {
    case SJ_LINK_MODULE:
    case SJ_LINK_TRANSITION:
    case SJ_LINK_IMPORTS:
        return reply_to_module(server, client, &reader, (sj_link_type)head.type);
    case SJ_LINK_APPLIED:
        return reply_to_applied(server, client, &reader);
    case SJ_LINK_UNLOADED:
        return reply_to_unloaded(server, client, &reader);
    case SJ_LINK_METHODS:
        return reply_to_methods(server, client, &reader);
    case SJ_LINK_REPLACED_METHODS:
        return reply_to_replaced_methods(server, client, &reader);
    case SJ_LINK_CONTAINER:
        return sj_link_reply_container(server->options.registry, client->process, &reader,
                                       client->fd);
    case SJ_LINK_CLASS:
        return sj_link_reply_class(server->options.registry, client->process, &reader, server->file,
                                   client->fd);
    case SJ_LINK_CLASSES:
        return sj_link_reply_classes(server->options.registry, client->process, &reader,
                                     client->fd);
    case SJ_LINK_TRACER:
        return sj_link_reply_tracer(&reader, client->fd);
    case SJ_LINK_CODE:
        return reply_to_code(server, client, &reader);
    case SJ_LINK_STALL:
        return handle_stall(server, client, &reader);
    case SJ_LINK_JVM_STATE:
        return sj_link_read_jvm_state(server->options.registry, client->process, &reader);
    case SJ_LINK_LINES:
    case SJ_LINK_NO_LINES:
    case SJ_LINK_NO_METHODS:
        return sj_link_read_report(server->options.registry, client->process, head.type, &reader);
    case SJ_LINK_DONE:
        atomic_fetch_add(&server->ready, 1);
        return send_packet(client->fd, SJ_LINK_DONE, NULL, 0, NULL, 0);
    default:
        return SJ_ECORRUPT;
    }
}

/* Reports what is not recorded because the recorder could not serve the packet. Packets with
 * commands (marks, triggers, policies) are not reported here: their senders get the error. */
static void report_unserved(const sj_link_server *server, const link_client *client,
                            sj_status status)
{
    sj_link_packet head;
    sj_link_hello hello;
    if (status != SJ_ENOMEM && status != SJ_EIO) {
        return;
    }
    memcpy(&head, server->packet, sizeof(head));
    if (head.type == SJ_LINK_HELLO) {
        memcpy(&hello, server->packet + sizeof(head), sizeof(hello));
        translate_pids(client, &hello);
        sj_registry_note_unjoined(server->options.registry, (pid_t)hello.pid, status);
    } else if (client->process != 0) {
        sj_registry_note_unplanned(server->options.registry, "a request of the agent", status);
    }
}

/* Handles the packet of the server. Returns false if the connection must be closed. */
static bool serve_packet(sj_link_server *server, link_client *client)
{
    const sj_status status = reply_to_packet(server, client);
    report_unserved(server, client, status);
    if (server->file >= 0) {
        close(server->file);
    }
    if (status != SJ_OK && status != SJ_ECLOSED) {
        atomic_fetch_add(&server->bad_packets, 1);
    }
    return status == SJ_OK;
}

static bool serve_request(sj_link_server *server, link_client *client)
{
    memcpy(server->packet, client->request, client->request_bytes);
    server->packet_bytes = client->request_bytes;
    server->file = -1;
    return serve_packet(server, client);
}

/* Handles one packet. Returns false if the connection must be closed. */
static bool serve_client(sj_link_server *server, link_client *client)
{
    const ssize_t got =
        sj_link_receive_file(client->fd, server->packet, sizeof(server->packet), &server->file);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (got <= 0) {
        return false;
    }
    server->packet_bytes = (size_t)got;
    client->asked_ns = sj_clock_ns(CLOCK_MONOTONIC);
    client->asked_ticks = sj_clock_ticks();
    return serve_packet(server, client);
}

/* Reads who has connected. Returns false if it is another user. */
static bool is_same_user(int fd, struct ucred *peer)
{
    socklen_t size = sizeof(*peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0 &&
           (peer->uid == geteuid() || peer->uid == 0);
}

static void accept_client(sj_link_server *server)
{
    const int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    struct ucred peer;
    if (server->client_count == CLIENTS_MAX || !is_same_user(fd, &peer)) {
        close(fd);
        return;
    }
    server->clients[server->client_count++] = (link_client){.fd = fd, .pid = peer.pid};
    atomic_fetch_add(&server->connections, 1);
}

/* Serves a client after poll. Returns false if the connection must be closed. A client that waits
 * for a plan must not send anything: any event closes its connection. */
static bool serve_polled(sj_link_server *server, link_client *client, short events)
{
    if (client->request != NULL) {
        return events == 0 && serve_request(server, client);
    }
    return events == 0 || serve_client(server, client);
}

static void close_client(link_client *client)
{
    drop_request(client);
    close(client->fd);
}

/* Waits a moment after poll failed, for example for lack of memory. Returns false if the server was
 * woken. */
static bool wait_after_failure(const sj_link_server *server, int error)
{
    const struct timespec pause = {.tv_nsec = PLAN_POLL_MS * 1000000L};
    eventfd_t woken;
    if (error != EINTR) {
        (void)nanosleep(&pause, NULL);
    }
    return eventfd_read(server->wake, &woken) != 0;
}

/* Handles what arrives within `timeout_ms`. Returns false if the server was woken. */
static bool serve_waiting(sj_link_server *server, int timeout_ms)
{
    struct pollfd polled[2 + CLIENTS_MAX] = {{.fd = server->wake, .events = POLLIN},
                                             {.fd = server->listener, .events = POLLIN}};
    const size_t count = server->client_count;
    for (size_t i = 0; i < count; i++) {
        const link_client *client = &server->clients[i];
        const bool waits = client->request != NULL;
        polled[2 + i] = (struct pollfd){.fd = client->fd, .events = waits ? 0 : POLLIN};
        timeout_ms =
            waits && (timeout_ms < 0 || timeout_ms > PLAN_POLL_MS) ? PLAN_POLL_MS : timeout_ms;
    }
    if (poll(polled, 2 + count, timeout_ms) < 0) {
        return wait_after_failure(server, errno);
    }
    if (polled[0].revents != 0) {
        return false;
    }
    /* From the last to the first, because the last client replaces a closed one. */
    for (size_t i = count; i-- > 0;) {
        if (!serve_polled(server, &server->clients[i], polled[2 + i].revents)) {
            close_client(&server->clients[i]);
            server->clients[i] = server->clients[--server->client_count];
        }
    }
    if (polled[1].revents != 0) {
        accept_client(server);
    }
    return true;
}

static void *serve_clients(void *argument)
{
    sj_link_server *server = argument;
    while (serve_waiting(server, -1)) {
    }
    return NULL;
}

void sj_link_server_step(sj_link_server *server, int timeout_ms)
{
    (void)!serve_waiting(server, timeout_ms);
}

static sj_status listen_at(sj_link_server *server, sj_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/control", server->options.runtime_directory);
    if (strlen(path) >= sizeof(server->socket_file.path)) {
        return sj_fail(error, SJ_ELIMIT, "the path of the control socket %s is too long", path);
    }
    server->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener < 0 ||
        !sj_socket_file_bind(&server->socket_file, server->listener, path) ||
        chmod(path, 0600) != 0 || /* no connection is possible before listen */
        listen(server->listener, BACKLOG) != 0) {
        return sj_fail(error, SJ_EIO, "cannot listen at %s: %s", path, strerror(errno));
    }
    return SJ_OK;
}

sj_status sj_link_server_start(const sj_link_server_options *options, sj_link_server **server,
                               sj_error *error)
{
    sj_link_server *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->options = *options;
    made->listener = -1;
    made->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sj_status status = made->wake < 0
                           ? sj_fail(error, SJ_EIO, "cannot make an event: %s", strerror(errno))
                           : listen_at(made, error);
    if (status == SJ_OK && !options->threadless &&
        pthread_create(&made->thread, NULL, serve_clients, made) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot start the thread of the control socket");
    }
    if (status != SJ_OK) {
        sj_link_server_stop(made);
        return status;
    }
    made->thread_started = !options->threadless;
    *server = made;
    return SJ_OK;
}

void sj_link_server_get_counters(sj_link_server *server, sj_link_server_counters *counters)
{
    counters->connections = atomic_load(&server->connections);
    counters->joined = atomic_load(&server->joined);
    counters->ready = atomic_load(&server->ready);
    counters->bad_packets = atomic_load(&server->bad_packets);
}

void sj_link_server_stop(sj_link_server *server)
{
    if (server == NULL) {
        return;
    }
    if (server->thread_started) {
        (void)eventfd_write(server->wake, 1);
        pthread_join(server->thread, NULL);
    }
    for (size_t i = 0; i < server->client_count; i++) {
        close_client(&server->clients[i]);
    }
    sj_socket_file_remove(&server->socket_file);
    if (server->listener >= 0) {
        close(server->listener);
    }
    if (server->wake >= 0) {
        close(server->wake);
    }
    free(server);
}

/* Tests what devices with their own tokens, and peers without one, can send: frames that are
 * replayed, altered, or name another's device, token or session, and tokens guessed at speed. */
#include "collector-server/fleet/fleet.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_service.h"
#include "tests/collector-server/store/frame_maker.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    PATIENCE_S = 120,
    HEAD_BYTES = 1 + 8 + 4, /* bytes before a message of SP over ipc */
    REPLY_BYTES = 64 << 10,
    FRAMES = 8, /* frames of a kept session */
    GUESSES_MAX = 20000,
    HUNG_UP = -1
};

typedef struct device {
    frame_maker maker;
    char token[SJ_SECRET_TEXT_BYTES];
} device;

typedef struct fixture {
    lab_file lab;
    char socket_path[64];
    char url[96];
    sj_fleet *fleet;
    sj_fleet_service *service;
    sj_ingest *ingest;
    device owner, other;
    int peer; /* -1: no connection */
} fixture;

static fixture *test;

/* ---- one connection ---- */

static void leave(void)
{
    if (test->peer >= 0) {
        close(test->peer);
    }
    test->peer = -1;
}

static bool read_bytes(void *bytes, size_t size)
{
    return recv(test->peer, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

static void come(void)
{
    static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint8_t reply[8];
    leave();
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", test->socket_path);
    test->peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(test->peer, (struct sockaddr *)&address, sizeof(address)), 0);
    setsockopt(test->peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)!send(test->peer, greeting, sizeof(greeting), MSG_NOSIGNAL);
    assert_true(read_bytes(reply, sizeof(reply)));
}

/* Sends a frame and reads the answer's frame. Returns false if the collector has closed the
 * connection. */
static bool ask_for(sj_slice frame, sj_frame_view *reply)
{
    static uint8_t bytes[REPLY_BYTES];
    uint8_t head[HEAD_BYTES] = {1};
    for (int i = 0; i < 8; i++) {
        head[1 + i] = (uint8_t)((uint64_t)(frame.size + 4) >> (56 - 8 * i));
    }
    head[9] = 0x80;
    (void)!send(test->peer, head, sizeof(head), MSG_NOSIGNAL);
    (void)!send(test->peer, frame.data, frame.size, MSG_NOSIGNAL);
    if (!read_bytes(head, sizeof(head))) {
        return false;
    }
    const size_t size = ((size_t)head[7] << 8 | head[8]) - 4;
    assert_true(size <= sizeof(bytes) && read_bytes(bytes, size));
    assert_int_equal(sj_frame_read((sj_slice){.data = bytes, .size = size}, reply), SJ_OK);
    return true;
}

/* Returns the status of the ACK, or HUNG_UP. */
static int ask(sj_slice frame, bool *duplicate)
{
    sj_frame_view reply;
    *duplicate = false;
    if (!ask_for(frame, &reply)) {
        return HUNG_UP;
    }
    assert_int_equal(reply.type, SJ_FRAME_ACK);
    Sojourn__Ack *ack = sojourn__ack__unpack(NULL, reply.header.size, reply.header.data);
    assert_non_null(ack);
    const int status = (int)ack->status;
    *duplicate = ack->duplicate;
    sojourn__ack__free_unpacked(ack, NULL);
    return status;
}

static void expect(sj_slice frame, int wanted)
{
    bool duplicate;
    assert_int_equal(ask(frame, &duplicate), wanted);
}

/* ---- frames ---- */

static void name_device(const device *from, uint8_t id[16])
{
    memset(id, 0, 16);
    id[0] = 0xd0;
    id[1] = from->maker.session_tag;
}

/* Returns a frame of one message, in the frame maker's memory. */
static sj_slice frame_of(device *from, uint16_t type, const ProtobufCMessage *message)
{
    uint8_t header[1024];
    assert_true(protobuf_c_message_get_packed_size(message) <= sizeof(header));
    const sj_slice packed = {.data = header, .size = protobuf_c_message_pack(message, header)};
    return frame_maker_wrap(&from->maker, type, packed, (sj_slice){0});
}

static sj_slice hello_as(device *from, uint16_t type, const char *token)
{
    uint8_t id[16];
    Sojourn__Hello hello = SOJOURN__HELLO__INIT;
    name_device(from, id);
    hello.device_id = (ProtobufCBinaryData){.data = id, .len = 16};
    hello.device_name = (char *)(uintptr_t) "wire";
    hello.boot_id = (char *)(uintptr_t) "a-boot";
    hello.token = (char *)(uintptr_t)token;
    return frame_of(from, type, &hello.base);
}

static void come_as(device *from)
{
    come();
    expect(hello_as(from, SJ_FRAME_HELLO, from->token), SJ_OK);
}

/* A session whose frames outlive the maker's memory. */
typedef struct kept_session {
    sj_slice frames[FRAMES];
} kept_session;

static sj_slice keep(sj_slice frame)
{
    uint8_t *copy = malloc(frame.size);
    assert_non_null(copy);
    memcpy(copy, frame.data, frame.size);
    return (sj_slice){.data = copy, .size = frame.size};
}

static void make_session(device *from, kept_session *kept)
{
    frame_maker *maker = &from->maker;
    kept->frames[0] = keep(frame_maker_session(maker));
    kept->frames[1] = keep(frame_maker_module(maker));
    kept->frames[2] = keep(frame_maker_thread(maker));
    for (int i = 3; i < 6; i++) {
        kept->frames[i] = keep(frame_maker_block(maker, 300, 0));
    }
    kept->frames[6] = keep(frame_maker_mark(maker, 1));
    kept->frames[7] = keep(frame_maker_gap(maker, 1, 12));
}

static void free_session(kept_session *kept)
{
    for (int i = 0; i < FRAMES; i++) {
        free((void *)(uintptr_t)kept->frames[i].data);
    }
}

static void send_session(const kept_session *kept)
{
    for (int i = 0; i < FRAMES; i++) {
        expect(kept->frames[i], SJ_OK);
    }
}

/* Reads everything that the store has about sessions, for a comparison. */
static void read_state(char state[4096])
{
    char *found = lab_file_ask(
        &test->lab, "SELECT hex(uuid), name, state, lost_calls, stored_blocks, stored_calls,"
                    " (SELECT count(*) FROM marks), (SELECT sum(calls) FROM gaps),"
                    " (SELECT count(*) FROM threads), (SELECT count(*) FROM modules),"
                    " (SELECT count(*) FROM quarantined_blocks) FROM sessions ORDER BY 1");
    snprintf(state, 4096, "%s", found);
    sqlite3_free(found);
}

/* ---- the fixture ---- */

static void enrol(device *from, uint8_t tag)
{
    char invitation[SJ_SECRET_TEXT_BYTES];
    sj_error error = {0};
    sj_frame_view reply;
    frame_maker_init(&from->maker, tag);
    assert_int_equal(sj_fleet_invite(test->fleet, 1, 0, invitation, &error), SJ_OK);
    come();
    assert_true(ask_for(hello_as(from, SJ_FRAME_ENROL, invitation), &reply));
    assert_int_equal(reply.type, SJ_FRAME_ENROLLED);
    Sojourn__Enrolled *told = sojourn__enrolled__unpack(NULL, reply.header.size, reply.header.data);
    assert_non_null(told);
    assert_int_equal(told->status, SJ_OK);
    snprintf(from->token, sizeof(from->token), "%s", told->token);
    sojourn__enrolled__free_unpacked(told, NULL);
}

static void start_collector(void)
{
    const char *const urls[] = {test->url};
    const sj_fleet_service_options fleet = {.database = test->lab.path, .requires_tokens = true};
    sj_error error = {0};
    assert_int_equal(sj_fleet_service_start(&fleet, &test->service, &error), SJ_OK);
    const sj_ingest_options options = {
        .urls = urls, .url_count = 1, .gate = sj_fleet_service_gate(test->service)};
    assert_int_equal(sj_ingest_start(test->lab.store, &options, &test->ingest, &error), SJ_OK);
    assert_int_equal(sj_fleet_open(test->lab.path, &test->fleet, &error), SJ_OK);
}

static int set_up(void **state)
{
    test = calloc(1, sizeof(*test));
    test->peer = -1;
    snprintf(test->lab.path, sizeof(test->lab.path), "wire_test.%d.db", (int)getpid());
    snprintf(test->socket_path, sizeof(test->socket_path), "wire_test.%d.ipc", (int)getpid());
    snprintf(test->url, sizeof(test->url), "ipc://%s", test->socket_path);
    lab_file_remove(test->lab.path);
    lab_file_open(&test->lab, 0, 0);
    start_collector();
    enrol(&test->owner, 1);
    enrol(&test->other, 2);
    *state = test;
    return 0;
}

static int tear_down(void **state)
{
    leave();
    sj_fleet_close(test->fleet);
    sj_fleet_service_stop(test->service);
    sj_ingest_stop(test->ingest);
    sj_fleet_service_free(test->service);
    sj_store_close(test->lab.store);
    lab_file_remove(test->lab.path);
    frame_maker_deinit(&test->owner.maker);
    frame_maker_deinit(&test->other.maker);
    free(*state);
    return 0;
}

/* ---- what is tried ---- */

/* Replayed frames of the device itself were stored before. Frames of another device, with its own
 * token, are refused for good. Frames of no device only get "say hello". */
static void replayed_frames_change_nothing(void **state)
{
    (void)state;
    kept_session kept;
    char before[4096];
    char after[4096];
    sj_ingest_counters counters;
    make_session(&test->owner, &kept);
    come_as(&test->owner);
    send_session(&kept);
    read_state(before);
    for (int who = 0; who < 3; who++) {
        if (who < 2) {
            come_as(who == 0 ? &test->owner : &test->other);
        } else {
            come();
        }
        for (int i = 0; i < FRAMES; i++) {
            bool duplicate;
            assert_int_equal(ask(kept.frames[i], &duplicate), who == 0   ? SJ_OK
                                                              : who == 1 ? SJ_EINVAL
                                                                         : SJ_EAGAIN);
            assert_true(who == 0 ? duplicate || i < 3 || i > 5 : !duplicate);
        }
        read_state(after);
        assert_string_equal(after, before);
    }
    /* The SESSION frame names another device than its sender. This is refused first. */
    lab_file_expect(&test->lab, "SELECT sum(frames), hex(sender_uuid) FROM refused_frames",
                    "7|D0020000000000000000000000000000|\n");
    sj_ingest_get_counters(test->ingest, &counters);
    assert_int_equal(counters.foreign, FRAMES - 1);
    free_session(&kept);
}

/* One byte is changed, with the old checksum and with a matching one. */
static void altered_frames_are_refused_or_affect_only_their_sender(void **state)
{
    (void)state;
    kept_session kept;
    kept_session foreign;
    char before[4096];
    char after[4096];
    make_session(&test->other, &foreign);
    come_as(&test->other);
    send_session(&foreign);
    make_session(&test->owner, &kept);
    come_as(&test->owner);
    send_session(&kept);
    read_state(before);
    for (int i = 0; i < 4; i++) {
        uint8_t *bytes = (uint8_t *)(uintptr_t)kept.frames[i].data;
        for (size_t at = 0; at < kept.frames[i].size; at += 1 + at / 64) {
            bool duplicate;
            bytes[at] ^= 0x40;
            assert_int_not_equal(ask(kept.frames[i], &duplicate), SJ_OK);
            bytes[at] ^= 0x40;
            if (at % 16 == 0) { /* after a closed connection, or whatever length the frame had */
                come_as(&test->owner);
            }
        }
    }
    read_state(after);
    assert_string_equal(after, before);
    free_session(&kept);
    free_session(&foreign);
}

/* The sender computes a matching checksum. The effects stay within the sender's own data. */
static void frames_altered_with_a_good_checksum_affect_only_their_sender(void **state)
{
    (void)state;
    kept_session kept;
    kept_session foreign;
    make_session(&test->other, &foreign);
    come_as(&test->other);
    send_session(&foreign);
    static const char others[] =
        "SELECT name, state, lost_calls, stored_blocks, stored_calls FROM sessions"
        " WHERE hex(uuid) LIKE '0202%'";
    char *before = lab_file_ask(&test->lab, others);
    assert_true(before[0] != '\0');
    make_session(&test->owner, &kept);
    come_as(&test->owner);
    send_session(&kept);
    for (int i = 0; i < FRAMES; i++) {
        sj_frame_view view;
        assert_int_equal(sj_frame_read(kept.frames[i], &view), SJ_OK);
        uint8_t header[1024];
        assert_true(view.header.size <= sizeof(header));
        for (size_t at = 0; at < view.header.size; at++) {
            bool duplicate;
            memcpy(header, view.header.data, view.header.size);
            header[at] ^= 0x03;
            const sj_slice lie = frame_maker_wrap(
                &test->owner.maker, view.type, (sj_slice){.data = header, .size = view.header.size},
                view.payload);
            assert_int_not_equal(ask(lie, &duplicate), HUNG_UP);
        }
    }
    lab_file_expect(&test->lab, others, before);
    sqlite3_free(before);
    free_session(&kept);
    free_session(&foreign);
}

/* Returns a poll of one process of the device's daemon. Instance 0 is an older daemon. */
static sj_slice poll_of(device *from, const char *token, uint64_t instance, uint64_t last_command)
{
    uint8_t id[16];
    Sojourn__Poll poll = SOJOURN__POLL__INIT;
    name_device(from, id);
    poll.device_id = (ProtobufCBinaryData){.data = id, .len = 16};
    poll.token = (char *)(uintptr_t)token;
    poll.status = (char *)(uintptr_t) "{}";
    poll.instance = instance;
    poll.last_command = last_command;
    return frame_of(from, SJ_FRAME_POLL, &poll.base);
}

static sj_slice poll_as(device *from, const char *token)
{
    return poll_of(from, token, 0, 0);
}

static sj_slice claim_as(device *from, const char *token, uint64_t instance, uint64_t command)
{
    uint8_t id[16];
    Sojourn__Claim claim = SOJOURN__CLAIM__INIT;
    name_device(from, id);
    claim.device_id = (ProtobufCBinaryData){.data = id, .len = 16};
    claim.token = (char *)(uintptr_t)token;
    claim.command = command;
    claim.instance = instance;
    return frame_of(from, SJ_FRAME_CLAIM, &claim.base);
}

static sj_slice result_as(device *from, const char *token, uint64_t command)
{
    uint8_t id[16];
    Sojourn__CommandResult result = SOJOURN__COMMAND_RESULT__INIT;
    name_device(from, id);
    result.device_id = (ProtobufCBinaryData){.data = id, .len = 16};
    result.token = (char *)(uintptr_t)token;
    result.command = command;
    result.result = (char *)(uintptr_t) "{}";
    return frame_of(from, SJ_FRAME_RESULT, &result.base);
}

static sj_slice fetch_as(device *from, const char *token)
{
    uint8_t id[16];
    Sojourn__Fetch fetch = SOJOURN__FETCH__INIT;
    name_device(from, id);
    fetch.device_id = (ProtobufCBinaryData){.data = id, .len = 16};
    fetch.token = (char *)(uintptr_t)token;
    fetch.file = 1;
    return frame_of(from, SJ_FRAME_FETCH, &fetch.base);
}

static void an_id_with_anothers_token_opens_nothing(void **state)
{
    (void)state;
    const char *const tokens[] = {test->other.token, "", "x"};
    for (int i = 0; i < 3; i++) {
        come();
        expect(hello_as(&test->owner, SJ_FRAME_HELLO, tokens[i]), SJ_EPERM);
        expect(poll_as(&test->owner, tokens[i]), SJ_EPERM);
        expect(result_as(&test->owner, tokens[i], 1), SJ_EPERM);
        expect(fetch_as(&test->owner, tokens[i]), SJ_EPERM);
        expect(claim_as(&test->owner, tokens[i], 7, 1), SJ_EPERM);
        /* the sender must send HELLO first */
        expect(frame_maker_session(&test->owner.maker), SJ_EAGAIN);
    }
    /* Uses the connection of the other device, too, which keeps its identity. */
    come_as(&test->other);
    expect(poll_as(&test->owner, test->other.token), SJ_EPERM);
    expect(frame_maker_session(&test->owner.maker), SJ_EINVAL);
    expect(frame_maker_session(&test->other.maker), SJ_OK);
    lab_file_expect(&test->lab, "SELECT count(*) FROM sessions", "1|\n");
}

/* Queues a command for the first device. */
static uint64_t command_one(void)
{
    int64_t command = 0;
    int64_t owner = 0;
    sj_error error = {0};
    uint8_t id[16];
    name_device(&test->owner, id);
    const ProtobufCBinaryData uuid = {.data = id, .len = 16};
    assert_int_equal(sj_fleet_check(test->fleet, &uuid, test->owner.token, &owner, &error), SJ_OK);
    const sj_fleet_new_command order = {.device_id = owner,
                                        .kind = "list",
                                        .arguments = "{}",
                                        .requested_by = "a test",
                                        .timeout_ms = 600000};
    assert_int_equal(sj_fleet_command_add(test->fleet, &order, &command, &error), SJ_OK);
    return (uint64_t)command;
}

static void a_result_is_of_the_commands_own_device_only(void **state)
{
    (void)state;
    bool duplicate;
    sj_frame_view reply;
    const uint64_t command = command_one();
    static const char states[] = "SELECT state IN ('done', 'failed') FROM commands";
    come_as(&test->owner);
    assert_true(ask_for(poll_as(&test->owner, test->owner.token), &reply));
    assert_int_equal(reply.type, SJ_FRAME_COMMAND);
    come_as(&test->other);
    (void)ask(result_as(&test->other, test->other.token, command), &duplicate);
    lab_file_expect(&test->lab, states, "0|\n");
    come_as(&test->owner);
    (void)ask(result_as(&test->owner, test->owner.token, command), &duplicate);
    lab_file_expect(&test->lab, states, "1|\n");
}

enum { FIRST = 11, SECOND = 22, OLD = 0, NOTHING = 0 };

/* Polls as one process of the device's daemon. Returns the command, or NOTHING. */
static uint64_t poll_process(uint64_t instance, uint64_t last_command)
{
    sj_frame_view reply;
    uint64_t number = NOTHING;
    assert_true(ask_for(poll_of(&test->owner, test->owner.token, instance, last_command), &reply));
    if (reply.type == SJ_FRAME_COMMAND) {
        Sojourn__Command *command =
            sojourn__command__unpack(NULL, reply.header.size, reply.header.data);
        assert_non_null(command);
        assert_int_equal(command->claim, instance != OLD);
        number = command->command;
        sojourn__command__free_unpacked(command, NULL);
    }
    return number;
}

static void claim(uint64_t instance, uint64_t command, sj_status wanted)
{
    expect(claim_as(&test->owner, test->owner.token, instance, command), wanted);
}

/* Two machines have one identity. Both may get the command, and one of them gets the right to run
 * it. */
static void a_command_is_claimed_by_one_process_only(void **state)
{
    (void)state;
    const uint64_t command = command_one();
    come_as(&test->owner);
    claim(FIRST, command, SJ_ENOTFOUND); /* it was given to no process yet */
    assert_int_equal(poll_process(FIRST, 0), command);
    assert_int_equal(poll_process(SECOND, 0), command);
    claim(0, command, SJ_EINVAL);
    claim(SECOND, command, SJ_OK);
    claim(SECOND, command, SJ_OK); /* its answer was lost */
    claim(FIRST, command, SJ_EEXIST);
    assert_int_equal(poll_process(FIRST, 0), NOTHING);
    assert_int_equal(poll_process(SECOND, 0), command);
    assert_int_equal(poll_process(OLD, 0), NOTHING);
    /* The other process runs the next command meanwhile, and cannot end a command of this one. */
    const uint64_t next = command_one();
    assert_int_equal(poll_process(FIRST, 0), next);
    claim(FIRST, next, SJ_OK);
    expect(result_as(&test->owner, test->owner.token, next), SJ_OK);
    assert_int_equal(poll_process(FIRST, next), NOTHING);
    static const char states[] = "SELECT state, claimed_by FROM commands ORDER BY command_id";
    lab_file_expect(&test->lab, states, "sent|22|\ndone|11|\n");
    come_as(&test->other);
    expect(claim_as(&test->other, test->other.token, SECOND, command), SJ_ENOTFOUND);
    come_as(&test->owner);
    expect(result_as(&test->owner, test->owner.token, command), SJ_OK);
    claim(SECOND, command, SJ_ENOTFOUND);
    lab_file_expect(&test->lab, states, "done|22|\ndone|11|\n");
}

/* An older daemon claims nothing. It gets the command with the answer, as before. */
static void an_older_daemon_gets_a_command_with_the_reply(void **state)
{
    (void)state;
    const uint64_t command = command_one();
    come_as(&test->owner);
    assert_int_equal(poll_process(OLD, 0), command);
    assert_int_equal(poll_process(OLD, 0), command);
    assert_int_equal(poll_process(FIRST, 0), NOTHING);
    claim(FIRST, command, SJ_EEXIST);
    /* Its successor is a newer daemon, and has the number of the command from the file. */
    assert_int_equal(poll_process(SECOND, command), NOTHING);
    lab_file_expect(&test->lab, "SELECT state, result LIKE '%restarted%' FROM commands",
                    "failed|1|\n");
}

static void two_processes_that_poll_in_turn_are_reported_as_a_copy(void **state)
{
    (void)state;
    static const char copies[] = "SELECT device_id FROM copied_devices";
    const uint64_t command = command_one();
    come_as(&test->owner);
    /* After a restart, the claim of the former process is void. One late poll of it proves
     * nothing. */
    assert_int_equal(poll_process(FIRST, 0), command);
    claim(FIRST, command, SJ_OK);
    (void)poll_process(SECOND, command);
    lab_file_expect(&test->lab, "SELECT state FROM commands", "failed|\n");
    (void)poll_process(FIRST, command);
    (void)poll_process(SECOND, command);
    (void)poll_process(SECOND, command);
    for (int i = 0; i < 4; i++) { /* an update of the daemon, and its undoing */
        (void)poll_process(OLD, command);
        lab_file_expect(&test->lab, copies, "");
    }
    (void)poll_process(FIRST, command);
    lab_file_expect(&test->lab, copies, "1|\n");
}

/* Guesses get a limited number of answers. Further guesses cost their connection. A device with a
 * valid token connects meanwhile, from the same address. */
static void guesses_of_tokens_are_limited_and_keep_no_device_out(void **state)
{
    (void)state;
    char guess[SJ_SECRET_TEXT_BYTES];
    unsigned answered = 0;
    bool is_hung_up = false;
    memcpy(guess, test->owner.token, sizeof(guess));
    come();
    for (unsigned i = 0; i < GUESSES_MAX && !is_hung_up; i++) {
        bool duplicate;
        snprintf(guess + 56, sizeof(guess) - 56, "%08x", i);
        if (strcmp(guess, test->owner.token) == 0) {
            continue;
        }
        const int status = ask(hello_as(&test->owner, SJ_FRAME_HELLO, guess), &duplicate);
        is_hung_up = status == HUNG_UP;
        answered += status == SJ_EPERM;
        assert_true(is_hung_up || status == SJ_EPERM);
    }
    assert_true(is_hung_up);
    assert_true(answered >= SJ_REFUSALS_A_SECOND);
    come_as(&test->owner);
    expect(frame_maker_session(&test->owner.maker), SJ_OK);
}

static int try_to_enrol(const char *invitation)
{
    sj_frame_view reply;
    assert_true(ask_for(hello_as(&test->owner, SJ_FRAME_ENROL, invitation), &reply));
    if (reply.type == SJ_FRAME_ACK) {
        Sojourn__Ack *ack = sojourn__ack__unpack(NULL, reply.header.size, reply.header.data);
        const int status = ack != NULL ? (int)ack->status : HUNG_UP;
        sojourn__ack__free_unpacked(ack, NULL);
        return status;
    }
    Sojourn__Enrolled *told = sojourn__enrolled__unpack(NULL, reply.header.size, reply.header.data);
    const int status = told != NULL ? (int)told->status : HUNG_UP;
    sojourn__enrolled__free_unpacked(told, NULL);
    return status;
}

/* Beyond the limit in a second, no invitation is checked. Devices are served as before. */
static void guesses_of_invitations_are_limited(void **state)
{
    (void)state;
    unsigned examined = 0;
    int status = SJ_EPERM;
    for (unsigned i = 0; i < GUESSES_MAX && status == SJ_EPERM; i++) {
        come();
        status = try_to_enrol("0123456789abcdef");
        examined += status == SJ_EPERM;
    }
    assert_int_equal(status, SJ_EAGAIN);
    assert_true(examined >= SJ_ENROLMENTS_AT_ONCE / 2);
    come_as(&test->owner);
    expect(frame_maker_session(&test->owner.maker), SJ_OK);
    lab_file_expect(&test->lab, "SELECT count(*) FROM devices", "2|\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(replayed_frames_change_nothing),
        CASE(altered_frames_are_refused_or_affect_only_their_sender),
        CASE(frames_altered_with_a_good_checksum_affect_only_their_sender),
        CASE(an_id_with_anothers_token_opens_nothing),
        CASE(a_result_is_of_the_commands_own_device_only),
        CASE(a_command_is_claimed_by_one_process_only),
        CASE(an_older_daemon_gets_a_command_with_the_reply),
        CASE(two_processes_that_poll_in_turn_are_reported_as_a_copy),
        CASE(guesses_of_tokens_are_limited_and_keep_no_device_out),
        CASE(guesses_of_invitations_are_limited),
    };
    return cmocka_run_group_tests_name("fleet.wire", tests, NULL, NULL);
}

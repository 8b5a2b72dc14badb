/* Tests what happens to each frame of a stranger, of an enrolled device, and of the collector's own
 * programs. A list replaces the edge's account of connections. */
#include "collector-server/ingest/admission.h"
#include "proto/base/ids.h"
#include "tests/support/check.h"

#include <string.h>

enum { GRANT = 7, FRAME_BYTES = 128, HELLO_TOKEN = 3, FLEET_TOKEN = 2, MOST_FRAMES = 100000 };

static int64_t bound_grant; /* grant of the last sender that was bound; -1: none was */
static unsigned unbound;
static bool is_revoked;

sj_status __wrap_sj_edge_bind(sj_edge *edge, uint64_t connection, const sj_sender *sender);
sj_status __wrap_sj_edge_bind(sj_edge *edge, uint64_t connection, const sj_sender *sender)
{
    (void)edge;
    (void)connection;
    assert_true(sender->is_peer && sender->has_token == (sender->grant != 0));
    bound_grant = sender->grant;
    return SJ_OK;
}

void __wrap_sj_edge_unbind(sj_edge *edge, uint64_t connection);
void __wrap_sj_edge_unbind(sj_edge *edge, uint64_t connection)
{
    (void)edge;
    (void)connection;
    unbound++;
}

static sj_status judge(void *context, const sj_credentials *shown, int64_t *grant, sj_error *error)
{
    (void)context;
    if (shown->token.size != 4 || memcmp(shown->token.data, "good", 4) != 0) {
        return sj_fail(error, SJ_EPERM, "a wrong token");
    }
    *grant = GRANT;
    return SJ_OK;
}

static bool has_grant(void *context, int64_t grant)
{
    (void)context;
    return grant == GRANT && !is_revoked;
}

static sj_status queue_fleet(void *context, sj_edge *edge, const sj_edge_message *message)
{
    (void)context;
    (void)edge;
    (void)message;
    return SJ_OK;
}

static sj_admission *new_admission(bool requires_tokens)
{
    static sj_admission made;
    made = (sj_admission){.gate = {.requires_tokens = requires_tokens,
                                   .judge = judge,
                                   .has_grant = has_grant,
                                   .fleet = queue_fleet}};
    bound_grant = -1;
    unbound = 0;
    is_revoked = false;
    return &made;
}

/* Makes a frame with a device's id and the token, followed by `payload` bytes. */
static sj_frame_view make_frame(uint16_t type, const char *token, size_t payload)
{
    static uint8_t bytes[FRAME_BYTES];
    const bool is_hello = type == SJ_FRAME_HELLO || type == SJ_FRAME_ENROL;
    size_t size = 0;
    bytes[size++] = 1 << 3 | 2; /* device_id, bytes */
    bytes[size++] = SJ_DEVICE_ID_BYTES;
    memset(bytes + size, 'd', SJ_DEVICE_ID_BYTES);
    size += SJ_DEVICE_ID_BYTES;
    bytes[size++] = (uint8_t)((is_hello ? HELLO_TOKEN : FLEET_TOKEN) << 3 | 2);
    bytes[size++] = (uint8_t)strlen(token);
    memcpy(bytes + size, token, strlen(token));
    size += strlen(token);
    return (sj_frame_view){.type = type, .header = {bytes, size}, .payload = {bytes, payload}};
}

static sj_edge_message stranger(void)
{
    return (sj_edge_message){.sender = {.is_peer = true}, .is_stranger = true};
}

static sj_edge_message device(int64_t grant)
{
    return (sj_edge_message){.sender = {.is_peer = true, .grant = grant}};
}

static void expect(sj_admission *admission, sj_edge_message message, uint16_t type,
                   const char *token, size_t payload, sj_admission_verdict verdict,
                   sj_status status)
{
    const sj_frame_view frame = make_frame(type, token, payload);
    sj_status found = SJ_OK;
    sj_error error = {0};
    const sj_admission_verdict given =
        sj_admission_judge(admission, NULL, &message, &frame, &found, &error);
    if (given != verdict || found != status) {
        fail_msg("frame %u, token \"%s\", payload %zu: verdict %d, status %d", type, token, payload,
                 (int)given, (int)found);
    }
}

static void strangers_show_a_token_and_send_nothing_else(void **state)
{
    (void)state;
    sj_admission *all = new_admission(true);
    expect(all, stranger(), SJ_FRAME_PING, "", 0, SJ_ADMIT_REPLY, SJ_OK);
    expect(all, stranger(), SJ_FRAME_BLOCK, "good", 0, SJ_ADMIT_REFUSE, SJ_EAGAIN);
    static const uint16_t shown[] = {SJ_FRAME_HELLO,  SJ_FRAME_ENROL, SJ_FRAME_POLL,
                                     SJ_FRAME_RESULT, SJ_FRAME_FETCH, SJ_FRAME_CLAIM};
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        const bool is_hello = shown[i] == SJ_FRAME_HELLO;
        expect(all, stranger(), shown[i], "good", 1, SJ_ADMIT_REFUSE, SJ_ECORRUPT);
        assert_int_equal(bound_grant, -1);
        expect(all, stranger(), shown[i], "good", 0,
               is_hello ? SJ_ADMIT_TO_STORE : SJ_ADMIT_TO_FLEET, SJ_OK);
        assert_int_equal(bound_grant, shown[i] == SJ_FRAME_ENROL ? -1 : GRANT);
        bound_grant = -1;
        if (shown[i] != SJ_FRAME_ENROL) { /* the fleet judges an enrolment's token */
            expect(all, stranger(), shown[i], "bad", 0, SJ_ADMIT_REFUSE, SJ_EPERM);
            expect(all, stranger(), shown[i], "", 0, SJ_ADMIT_REFUSE, SJ_EPERM);
        }
    }
    expect(all, stranger(), SJ_FRAME_COMMAND, "good", 0, SJ_ADMIT_REFUSE, SJ_EUNSUPPORTED);
    assert_int_equal(bound_grant, -1);
}

static void devices_send_as_long_as_their_grant_is_valid(void **state)
{
    (void)state;
    sj_admission *all = new_admission(true);
    expect(all, device(GRANT), SJ_FRAME_BLOCK, "", 9, SJ_ADMIT_TO_STORE, SJ_OK);
    expect(all, device(GRANT), SJ_FRAME_RESULT, "good", 9, SJ_ADMIT_TO_FLEET, SJ_OK);
    assert_int_equal(bound_grant, -1); /* the connection is bound already */
    expect(all, device(GRANT + 1), SJ_FRAME_POLL, "good", 0, SJ_ADMIT_TO_FLEET, SJ_OK);
    assert_int_equal(bound_grant, GRANT);
    expect(all, device(0), SJ_FRAME_BLOCK, "", 9, SJ_ADMIT_REFUSE, SJ_EAGAIN);
    assert_int_equal(unbound, 0);
    is_revoked = true;
    expect(all, device(GRANT), SJ_FRAME_BLOCK, "", 9, SJ_ADMIT_REFUSE, SJ_EPERM);
    assert_int_equal(unbound, 1);
}

static void a_collector_without_tokens_accepts_all_devices(void **state)
{
    (void)state;
    sj_admission *all = new_admission(false);
    expect(all, stranger(), SJ_FRAME_HELLO, "", 0, SJ_ADMIT_TO_STORE, SJ_OK);
    assert_int_equal(bound_grant, 0);
    expect(all, stranger(), SJ_FRAME_HELLO, "bad", 0, SJ_ADMIT_TO_STORE, SJ_OK);
    assert_int_equal(bound_grant, 0);
    expect(all, stranger(), SJ_FRAME_HELLO, "good", 0, SJ_ADMIT_TO_STORE, SJ_OK);
    assert_int_equal(bound_grant, GRANT);
    expect(all, stranger(), SJ_FRAME_BLOCK, "", 0, SJ_ADMIT_REFUSE, SJ_EAGAIN);
    expect(all, device(0), SJ_FRAME_BLOCK, "", 9, SJ_ADMIT_TO_STORE, SJ_OK);
    expect(all, stranger(), SJ_FRAME_POLL, "bad", 0, SJ_ADMIT_REFUSE, SJ_EPERM);
}

static void programs_of_the_collector_itself_need_no_token(void **state)
{
    (void)state;
    sj_admission *all = new_admission(true);
    expect(all, (sj_edge_message){0}, SJ_FRAME_BLOCK, "", 9, SJ_ADMIT_TO_STORE, SJ_OK);
    expect(all, (sj_edge_message){0}, SJ_FRAME_REPORT, "", 9, SJ_ADMIT_TO_STORE, SJ_OK);
    expect(all, (sj_edge_message){0}, SJ_FRAME_ENROL, "good", 0, SJ_ADMIT_REPLY, SJ_EUNSUPPORTED);
}

static void a_collector_without_a_fleet_refuses_enrolment(void **state)
{
    (void)state;
    sj_admission *all = new_admission(true);
    all->gate.fleet = NULL;
    expect(all, stranger(), SJ_FRAME_ENROL, "good", 0, SJ_ADMIT_REPLY, SJ_EUNSUPPORTED);
    expect(all, stranger(), SJ_FRAME_HELLO, "good", 0, SJ_ADMIT_TO_STORE, SJ_OK);
    all->gate.judge = NULL;
    expect(all, stranger(), SJ_FRAME_HELLO, "good", 0, SJ_ADMIT_REFUSE, SJ_EPERM);
}

/* Sends frames of `type` until one gets `status`. Returns the number of frames before it. */
static unsigned count_until(sj_admission *admission, sj_edge_message message, uint16_t type,
                            sj_status status)
{
    for (unsigned count = 0; count < MOST_FRAMES; count++) {
        const sj_frame_view frame = make_frame(type, "bad", 0);
        sj_status found = SJ_OK;
        sj_error error = {0};
        if (sj_admission_judge(admission, NULL, &message, &frame, &found, &error) ==
                SJ_ADMIT_REFUSE &&
            found == status) {
            return count;
        }
    }
    return MOST_FRAMES;
}

/* Time passes meanwhile, so that more frames may come in, but not without limit. */
static void an_address_that_shows_too_many_tokens_harms_itself_only(void **state)
{
    (void)state;
    sj_admission *all = new_admission(true);
    sj_edge_message other = stranger();
    other.bucket = 1;
    assert_in_range(count_until(all, stranger(), SJ_FRAME_HELLO, SJ_ECLOSED), SJ_REFUSALS_A_SECOND,
                    MOST_FRAMES - 1);
    expect(all, stranger(), SJ_FRAME_HELLO, "good", 0, SJ_ADMIT_TO_STORE, SJ_OK);
    expect(all, other, SJ_FRAME_HELLO, "bad", 0, SJ_ADMIT_REFUSE, SJ_EPERM);
    assert_in_range(count_until(all, stranger(), SJ_FRAME_ENROL, SJ_EAGAIN), SJ_ENROLMENTS_AT_ONCE,
                    MOST_FRAMES - 1);
    expect(all, other, SJ_FRAME_ENROL, "good", 0, SJ_ADMIT_TO_FLEET, SJ_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_show_a_token_and_send_nothing_else),
        cmocka_unit_test(devices_send_as_long_as_their_grant_is_valid),
        cmocka_unit_test(a_collector_without_tokens_accepts_all_devices),
        cmocka_unit_test(programs_of_the_collector_itself_need_no_token),
        cmocka_unit_test(a_collector_without_a_fleet_refuses_enrolment),
        cmocka_unit_test(an_address_that_shows_too_many_tokens_harms_itself_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

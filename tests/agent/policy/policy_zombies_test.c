/* Tests the percentage of sessions that watch freed memory. */
#include "agent/policy/policy.h"

#include "tests/support/check.h"

#include <math.h>

enum { SESSIONS = 20000, KINDS = 3 };

static void write_number(uint8_t *bytes, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(number >> 8 * (7 - i));
    }
}

/* Makes session ids like real ones: random (0), consecutive (1), or from a time and a device
 * (2). */
static sj_session_id session_of(uint32_t kind, uint64_t number)
{
    sj_session_id session = {0};
    uint64_t state = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (kind == 1) {
        write_number(session.bytes + sizeof(session.bytes) - 8, number);
        return session;
    }
    for (size_t i = 0; i < sizeof(session.bytes); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        session.bytes[i] = kind == 0 ? (uint8_t)(state >> 32) : 0x5a;
    }
    if (kind == 2) {
        write_number(session.bytes, UINT64_C(1764000000000) + number * 1009);
    }
    return session;
}

static bool does_watch(uint32_t percent, const sj_session_id *session)
{
    static sj_policy policy;
    policy.zombies.one_in = 7;
    policy.zombies.objects.is_on = 1;
    policy.zombie_sessions_percent = percent;
    const sj_zombie_settings settings = sj_policy_zombies_of(&policy, session);
    assert_true((settings.one_in == 7) == (settings.objects.is_on == 1));
    return settings.one_in == 7;
}

/* The share lies in the binomial 99 % interval for each kind of identity. A session that watches at
 * a small share also watches at a larger one. */
static void the_share_of_sessions_equals_that_of_the_policy(void **state)
{
    (void)state;
    static const uint32_t percents[] = {0, 1, 30, 70, 100};
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
            uint32_t watching = 0;
            for (uint64_t number = 0; number < SESSIONS; number++) {
                const sj_session_id session = session_of(kind, number);
                const bool watches = does_watch(percents[i], &session);
                assert_true(watches == does_watch(percents[i], &session));
                assert_true(!watches || does_watch(percents[i] / 2 + 50, &session));
                watching += watches ? 1 : 0;
            }
            const double share = percents[i] / 100.0;
            const double band = 2.58 * sqrt(SESSIONS * share * (1 - share));
            if (fabs(watching - SESSIONS * share) > band) {
                fail_msg("kind %u: %u of %d watch, not %u %%", kind, watching, SESSIONS,
                         percents[i]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_of_sessions_equals_that_of_the_policy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

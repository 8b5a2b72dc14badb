/* Tests fingerprints of functions without names. They do not depend on the address of the code.
 * They differ if the code does something else, or, if it is short, calls something else. Programs
 * are built twice, with their functions in another order (moved.c). FILE has symbols, which say
 * where functions are; FILE.stripped has none. */
#include "agent/planner/planner.h"

#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static const char *const moved[] = {"count_up", "count_down", "weigh",   "word_of",  "choose",
                                    "twin_a",   "twin_b",     "call_up", "call_down"};
enum { MOVED = sizeof(moved) / sizeof(moved[0]), TWIN_A = 5, TWIN_B = 6 };

static sj_plan plan_of(const char *build, const char *ending)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/moved-%s%s", PLANNER_SAMPLE_DIR, build, ending);
    const sj_planner_options options = {.module_path = path, .debug_root = "/nowhere"};
    sj_plan plan;
    sj_error error = {0};
    if (sj_plan_make(&options, &plan, &error) != SJ_OK) {
        fail_msg("%s: %s", path, error.text);
    }
    return plan;
}

static uint64_t offset_of(const sj_plan *plan, const char *name)
{
    const sj_plan_function *functions = sj_plan_functions(plan->header);
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        if (strcmp(sj_plan_string(plan->header, functions[i].name), name) == 0) {
            assert_true(functions[i].fingerprint == 0); /* a function with a name needs none */
            return functions[i].offset;
        }
    }
    fail_msg("no function is named %s", name);
    return 0;
}

/* Reads the fingerprints of the functions of moved.c, in the order of `moved`. */
static void read_fingerprints(const char *build, uint64_t fingerprints[MOVED])
{
    sj_plan named = plan_of(build, "");
    sj_plan stripped = plan_of(build, ".stripped");
    const sj_plan_function *functions = sj_plan_functions(stripped.header);
    for (int i = 0; i < MOVED; i++) {
        const uint64_t offset = offset_of(&named, moved[i]);
        fingerprints[i] = 0;
        for (uint32_t k = 0; k < stripped.header->function_count; k++) {
            fingerprints[i] =
                functions[k].offset == offset ? functions[k].fingerprint : fingerprints[i];
        }
        assert_true(fingerprints[i] != 0);
    }
    sj_plan_free(&named);
    sj_plan_free(&stripped);
}

static void code_is_known_again_elsewhere(void **state)
{
    static const char *const builds[] = {"gcc", "gcc-fixed", "clang", "aarch64"};
    (void)state;
    for (size_t b = 0; b < sizeof(builds) / sizeof(builds[0]); b++) {
        uint64_t here[MOVED];
        uint64_t there[MOVED];
        char reversed[64];
        snprintf(reversed, sizeof(reversed), "%s-reversed", builds[b]);
        read_fingerprints(builds[b], here);
        read_fingerprints(reversed, there);
        for (int i = 0; i < MOVED; i++) {
            if (here[i] != there[i]) {
                fail_msg("%s: %s differs", builds[b], moved[i]);
            }
            for (int k = 0; k < i; k++) {
                if ((here[i] == here[k]) != (i == TWIN_B && k == TWIN_A)) {
                    fail_msg("%s: %s and %s", builds[b], moved[i], moved[k]);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_known_again_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

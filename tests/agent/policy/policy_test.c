#include "agent/policy/draft.h"
#include "agent/policy/json_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct refused {
    const char *text;
    const char *message;
} refused;

static void test_mistakes_are_named_with_their_place(void **state)
{
    static const refused cases[] = {
        {"{", "t:1:1: "},
        {"[]", "t:1:1: an object"},
        {"{}", "t:1:1: add \"policy\": 1, the version of the format; \"sojourn policy show "
               "default\" prints a whole policy"},
        {"{\"policy\": 2}", "t:1:12: this Sojourn reads policies of format 1"},
        {"{\"policy\": 1,\n  \"budgte\": \"3%\"}",
         "t:2:3: unknown key \"budgte\"; did you mean \"budget\"?"},
        {"{\"policy\": 1,\n  \"zzzzzzzzz\": 1}",
         "t:2:3: unknown key \"zzzzzzzzz\"; known here: policy"},
        {"{\"policy\": 1, \"budget\": \"0%\"}", "t:1:25: a budget from \"0.1%\""},
        {"{\"policy\": 1, \"budget\": 0}", "t:1:25: a budget"},
        {"{\"policy\": 1, \"budget\": \"3\"}", "t:1:25: a budget"},
        {"{\"policy\": 1, \"budget\": \"nan%\"}", "t:1:25: a budget"},
        {"{\"policy\": 1, \"mode\": \"trce\"}", "did you mean \"trace\"?"},
        {"{\"policy\": 1, \"objc\": {\"technique\": \"swizzle\"}}",
         "one of \"methods\", \"dispatch\""},
        {"{\"policy\": 1, \"objc\": {\"subclass_of\": []}}", "did you mean \"subclasses_of\"?"},
        {"{\"policy\": 1, \"budget\": \"3%\", \"objc\": {\"receivers\": true}}",
         "not recorded under a budget"},
        {"{\"policy\": 1, \"budget\": \"3%\", \"java\": {\"engine\": \"runtime\"}}",
         "\"runtime\" keeps no budget"},
        {"{\"policy\": 1, \"objc\": {\"system\": 0}}", "t:1:34: true or false"},
        {"{\"policy\": 1, \"functions\": {\"include\": [\"a\",\n \"/(/\"]}}",
         "t:2:2: \"/(/\" is not a regular expression"},
        {"{\"policy\": 1, \"functions\": {\"include\": [\"/a{9999}{9999}/\"]}}",
         "counted repetition"},
        {"{\"policy\": 1, \"functions\": {\"include\": [\"/(a)\\\\1/\"]}}", "back-references"},
        {"{\"policy\": 1, \"functions\": {\"exclude\": [\"\"]}}", "t:1:41: a pattern is empty"},
        {"{\"policy\": 1, \"calls\": {\"depth\": 0}}", "a whole number from 1"},
        {"{\"policy\": 1, \"calls\": {\"depth\": -3}}", "a whole number from 1"},
        {"{\"policy\": 1, \"calls\": {\"minimum\": \"5 parsecs\"}}", "a time such as"},
        {"{\"policy\": 1, \"calls\": {\"resolution\": \"exactly\"}}", "\"exact\" or a time"},
        {"{\"policy\": 1, \"calls\": {\"resolution\": \"2ms\"}}", "\"exact\" or a time"},
        {"{\"policy\": 1, \"calls\": {\"one_in\": [{\"function\": \"f\"}]}}",
         "both \"function\" and \"n\""},
        {"{\"policy\": 1, \"triggers\": [{\"do\": [\"mark\"]}]}", "t:1:28: a trigger needs \"on\""},
        {"{\"policy\": 1, \"triggers\": [{\"on\": \"rate\", \"do\": [\"mark\"]}]}",
         "needs \"function\""},
        {"{\"policy\": 1, \"triggers\": [{\"on\": \"crash\", \"do\": [\"dump\"]}]}",
         "needs \"mode\": \"flight\""},
        {"{\"policy\": 1, \"values\": [{\"function\": \"f\",\n\"signature\": \"(a:ints)\"}]}",
         "t:2:14: \"ints\" is not a type"},
        {"{\"policy\": 1, \"values\": [{\"function\": \"Account:Put\", \"signature\": "
         "\"(long)\"}]}",
         "or one value, as \"Account:Put(1:long)\""},
        {"{\"policy\": 1, \"values\": [{\"function\": \"Account:Put\", \"cpu\": true,"
         " \"memory\": true}]}",
         "the Mono method Account:Put can have \"cpu\" only"},
        {"{\"policy\": 1, \"values\": [{\"function\": \"f\", \"signature\": 3}]}",
         "a text such as"},
        {"{\"policy\": 1, \"values\": [{\"signature\": \"(a:int)\"}]}", "needs a \"function\""},
        {"{\"policy\": 1, \"values\": [{\"function\": \"f\", \"signature\": \"(a:int)\","
         " \"as\": \"int\"}]}",
         "goes without \"as\""},
        {"{\"policy\": 1, \"policy\": 1}", "t:1:"},
        {"{\"policy\": 1, \"base\": \"defualt\"}", "did you mean \"default\"?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sj_policy policy;
        sj_error error = {0};
        assert_int_equal(
            sj_policy_parse(cases[i].text, strlen(cases[i].text), "t", &policy, &error), SJ_EINVAL);
        if (strstr(error.text, cases[i].message) == NULL) {
            fail_msg("%s\nsays: %s\nnot:  %s", cases[i].text, error.text, cases[i].message);
        }
    }
}

static void test_all_keys_of_a_document_are_parsed(void **state)
{
    static const char text[] =
        "{\"policy\": 1, \"name\": \"n\", \"version\": 7, \"mode\": \"flight\", \"budget\": 2.5,"
        " \"modules\": {\"include\": [\"lib*\"], \"exclude\": [\"libz*\"], \"system\": true},"
        " \"functions\": {\"include\": [\"std::*\"], \"exclude\": [\"/_lock$/\"]},"
        " \"calls\": {\"depth\": 12, \"minimum\": \"1.5us\","
        " \"resolution\": \"100ns\", \"threads\": [\"worker*\"],"
        "  \"one_in\": [{\"function\": \"hot\", \"n\": 100}]},"
        " \"flight\": {\"before\": \"2s\", \"after\": \"500ms\", \"memory\": \"8M\"},"
        " \"triggers\": [{\"on\": \"slow_call\", \"function\": \"draw\", \"longer_than\": \"16ms\","
        "  \"pause\": \"3s\", \"most\": 5, \"do\": [\"dump\", \"mark\"]}],"
        " \"buffer\": {\"chunks\": 4, \"when_full\": \"drop\", \"block_ms\": 7}}";
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    assert_string_equal(policy.name, "n");
    assert_int_equal(policy.version, 7);
    assert_int_equal(policy.mode, SJ_POLICY_FLIGHT);
    assert_true(policy.budget_percent == 2.5);
    assert_true(sj_selection_wants_module(&policy.selection, "/usr/lib/libx.so", false));
    assert_false(sj_selection_wants_module(&policy.selection, "/usr/lib/libz.so.1", false));
    assert_true(
        sj_selection_wants_function(&policy.selection, "_ZNSt6vectorIiSaIiEE9push_backEOi", 0, 1));
    assert_false(sj_selection_wants_function(&policy.selection, "_Z4drawv", 0, 1));
    assert_int_equal(policy.max_depth, 12);
    assert_int_equal(policy.minimum_ns, 1500);
    assert_int_equal(policy.resolution_ns, 100);
    assert_int_equal(policy.sampled[0].n, 100);
    assert_int_equal(policy.flight_after_ns, 500000000);
    assert_int_equal(policy.flight_bytes, 8 << 20);
    assert_int_equal(policy.triggers[0].actions, SJ_ACTION_DUMP | SJ_ACTION_MARK);
    assert_int_equal(policy.triggers[0].limit_ns, 16000000);
    assert_int_equal(policy.triggers[0].most, 5);
    assert_true(policy.drop_when_full);
    sj_policy_free(&policy);
}

static void test_presets_are_sound_and_can_be_bases(void **state)
{
    static const char text[] = "{\"policy\": 1, \"base\": \"jank\", \"budget\": \"5%\"}";
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    for (size_t i = 0; sj_policy_presets[i] != NULL; i++) {
        const char *preset = sj_policy_preset(sj_policy_presets[i]);
        assert_int_equal(sj_policy_parse(preset, strlen(preset), "p", &policy, &error), SJ_OK);
        assert_string_equal(policy.name, sj_policy_presets[i]);
        sj_policy_free(&policy);
    }
    assert_null(sj_policy_preset("nothing"));
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    assert_int_equal(policy.mode, SJ_POLICY_FLIGHT);
    assert_int_equal(policy.trigger_count, 4);
    assert_true(policy.budget_percent == 5);
    sj_policy_free(&policy);
}

static void test_minitrace_counts_org_packages_as_system_code(void **state)
{
    static const char text[] = "{\"policy\": 1, \"base\": \"minitrace\"}";
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    const sj_selection *selection = &policy.selection;
    assert_false(sj_selection_wants_class(selection, SJ_LINK_LANGUAGE_JVM, "org.acme.Main", false));
    assert_false(
        sj_selection_wants_class(selection, SJ_LINK_LANGUAGE_JVM, "android.view.View", false));
    assert_true(sj_selection_wants_class(selection, SJ_LINK_LANGUAGE_JVM, "com.acme.Main", false));
    sj_policy_free(&policy);
}

static void test_counted_calls_exclude_settings_that_need_whole_records(void **state)
{
    static const refused cases[] = {
        {"\"java\": {\"classes\": [\"a.*\"]}", "methods of java"},
        {"\"java\": {\"loaders\": [\"app\"]}", "methods of java"},
        {"\"mono\": {\"subclasses_of\": [\"A\"]}", "methods of mono"},
        {"\"objc\": {\"technique\": \"dispatch\"}", "methods of objc"},
        {"\"functions\": {\"include\": [\"A:Run()\"]}", "methods of mono"},
        {"\"functions\": {\"include\": [\"a.B.run(I)V\"]}", "methods of java"},
        {"\"values\": [{\"function\": \"a.B.*(I)V\", \"argument\": 1, \"as\": \"int\"}]",
         "methods of java"},
        {"\"zombies\": {\"heap\": {\"one_in\": 100}}", "freed memory"},
        {"\"modules\": {\"library_calls\": true}", "calls into libraries"},
        {"\"java\": {\"system\": [\"a.*\"]}", NULL},
        {"\"objc\": {\"classes\": [\"A\"]}", NULL},
        {"\"functions\": {\"include\": [\"-[A b]\", \"f.part.0\", \"n::f(int, ...)\", \"a:*\", "
         "\"main.(*Server).Serve\"]}",
         NULL},
        {"\"base\": \"default\"", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        sj_policy policy;
        sj_error error = {0};
        const int bytes =
            snprintf(text, sizeof(text),
                     "{\"policy\": 1, \"calls\": {\"clock\": \"adaptive\"}, %s}", cases[i].text);
        const sj_status status = sj_policy_parse(text, (size_t)bytes, "t", &policy, &error);
        assert_int_equal(status, cases[i].message != NULL ? SJ_EINVAL : SJ_OK);
        if (status == SJ_OK) {
            sj_policy_free(&policy);
        } else {
            assert_non_null(strstr(error.text, cases[i].message));
        }
    }
}

static void test_timed_functions_are_chosen_where_calls_are_counted(void **state)
{
    static const struct {
        const char *clock;
        bool is_refused;
    } cases[] = {
        {"", true}, {"\"clock\": \"exact\", ", false}, {"\"clock\": \"adaptive\", ", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[128];
        sj_policy policy;
        sj_error error = {0};
        const int bytes =
            snprintf(text, sizeof(text), "{\"policy\": 1, \"calls\": {%s\"timed\": [\"f*\"]}}",
                     cases[i].clock);
        const sj_status status = sj_policy_parse(text, (size_t)bytes, "t", &policy, &error);
        assert_int_equal(status, cases[i].is_refused ? SJ_EINVAL : SJ_OK);
        if (status == SJ_OK) {
            assert_int_equal(policy.timed_count, 1);
            sj_policy_free(&policy);
        } else {
            assert_non_null(strstr(error.text, "--clock adaptive"));
        }
    }
}

static void test_settings_that_a_process_does_not_get_are_named(void **state)
{
    static const char text[] = "{\"policy\": 1, \"modules\": {\"library_calls\": true}}";
    const char *texts[SJ_POLICY_MISSED];
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, sizeof(text) - 1, "t", &policy, &error), SJ_OK);
    assert_int_equal(sj_policy_missed(&policy, false, texts), 0);
    assert_int_equal(sj_policy_missed(&policy, true, texts), 1);
    assert_string_equal(texts[0], SJ_POLICY_LIBRARIES_UNBOUND);
    sj_policy_free(&policy);
}

static void test_options_give_the_same_policy_as_a_document(void **state)
{
    sj_policy_draft *draft = NULL;
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_draft_new(&draft, &error), SJ_OK);
    assert_int_equal(sj_policy_draft_load(draft, "default", &error), SJ_OK);
    assert_int_equal(sj_policy_draft_text(draft, "mode", "trace"), SJ_OK);
    assert_int_equal(sj_policy_draft_append(draft, "functions.exclude", "a*"), SJ_OK);
    assert_int_equal(sj_policy_draft_append(draft, "functions.exclude", "b*"), SJ_OK);
    assert_int_equal(sj_policy_draft_number(draft, "calls.depth", 3), SJ_OK);
    assert_int_equal(sj_policy_draft_true(draft, "modules.system"), SJ_OK);
    assert_int_equal(sj_policy_draft_true(draft, "modules.library_calls"), SJ_OK);
    assert_int_equal(sj_policy_draft_finish(draft, &policy, &error), SJ_OK);
    assert_int_equal(policy.mode, SJ_POLICY_TRACE);
    assert_true(policy.budget_percent == 3);
    assert_int_equal(policy.selection.excluded_count, 2);
    assert_int_equal(policy.max_depth, 3);
    assert_true(policy.selection.all_libraries);
    assert_true(policy.selection.library_calls);
    assert_non_null(strstr(policy.document, "\"b*\""));
    sj_policy_free(&policy);
    assert_int_equal(sj_policy_draft_text(draft, "budget", "lots"), SJ_OK);
    assert_int_equal(sj_policy_draft_finish(draft, &policy, &error), SJ_EINVAL);
    assert_int_equal(sj_policy_draft_load(draft, "no-such-policy", &error), SJ_ENOTFOUND);
    sj_policy_draft_free(draft);
}

/* An error about two options names the options, not the first bracket of the generated document. */
static void test_errors_about_options_name_no_bracket(void **state)
{
    sj_policy_draft *draft = NULL;
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_draft_new(&draft, &error), SJ_OK);
    assert_int_equal(sj_policy_draft_text(draft, "calls.clock", "adaptive"), SJ_OK);
    assert_int_equal(sj_policy_draft_true(draft, "modules.library_calls"), SJ_OK);
    assert_int_equal(sj_policy_draft_finish(draft, &policy, &error), SJ_EINVAL);
    assert_string_equal(error.text, "calls into libraries are all timed: remove --library-calls "
                                    "(\"library_calls\") or --clock adaptive (\"clock\")");
    sj_policy_draft_free(draft);
}

static void test_all_settings_of_objective_c_are_parsed(void **state)
{
    static const char text[] =
        "{\"policy\": 1, \"objc\": {\"technique\": \"dispatch\", \"classes\": [\"A*\"],"
        "\"exclude\": [\"AB\"], \"subclasses_of\": [\"V\", \"W\"], \"selectors\": [\"s:\"],"
        "\"system\": false}}";
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    const sj_class_filter *objc = &policy.selection.runtimes[0].classes;
    assert_true(policy.selection.runtimes[0].dispatch && objc->without_system);
    assert_int_equal(objc->class_count, 1);
    assert_int_equal(objc->excluded_count, 1);
    assert_int_equal(objc->ancestor_count, 2);
    assert_string_equal(objc->selectors[0].text, "s:");
    sj_policy_free(&policy);
}

/* Returns the bits of the rules that keep a value with this descriptor. */
static uint32_t kept_by(const sj_value_rules *rules, sj_block_value value)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < rules->count; i++) {
        kept |= sj_value_rule_holds(&rules->items[i], &value) ? 1U << i : 0;
    }
    return kept;
}

static void test_value_rules_are_parsed(void **state)
{
    static const char text[] =
        "{\"policy\": 1, \"values\": ["
        "{\"function\": \"f*\", \"argument\": 1, \"as\": \"int\"},"
        "{\"when\": {\"op\": \"<\", \"value\": -3}, \"function\": \"f\", \"argument\": 1,"
        " \"as\": \"int\"},"
        "{\"function\": \"-[A b:]\", \"result\": true, \"as\": \"ulong\","
        " \"when\": {\"op\": \">=\", \"value\": \"0xffffffffffffffff\"}},"
        "{\"name\": \"nan\", \"function\": \"f\", \"argument\": 8, \"as\": \"double\","
        " \"when\": {\"op\": \"!=\", \"value\": 1.5}},"
        "{\"function\": \"f\", \"argument\": 2, \"as\": \"string\","
        " \"when\": {\"op\": \"==\", \"value\": \"a*\"}}]}";
    uint8_t listed[SJ_VALUES_PER_FUNCTION];
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    sj_value_rules *rules = sj_value_rules_share(policy.selection.values);
    sj_policy_free(&policy);
    assert_int_equal(rules->count, 5);
    assert_string_equal(rules->names[2], "-[A b:]");
    const sj_rule_set of_f = sj_value_rules_match(rules, "f");
    assert_true(of_f.words[0] == 0x1b && of_f.words[1] == 0);
    assert_true(sj_value_rules_match(rules, "-[A b:]").words[0] == 0x4);
    assert_true(sj_value_rules_match(rules, "A").words[0] == 0);
    assert_true(sj_value_rules_match(rules, "libf.so!f").words[0] == 0);
    const uint8_t first = sj_value_descriptor(1, SJ_VALUE_INT);
    sj_value_rules_list(rules, &of_f, listed, 0, SJ_VALUES_PER_FUNCTION);
    assert_true(listed[0] == first && listed[1] == sj_value_descriptor(8, SJ_VALUE_DOUBLE) &&
                listed[2] == sj_value_descriptor(2, SJ_VALUE_STRING) && listed[3] == 0);
    sj_block_value value = {.descriptor = first, .bits = (uint64_t)-4};
    assert_int_equal(kept_by(rules, value), 0x3);
    value.bits = (uint64_t)-3;
    assert_int_equal(kept_by(rules, value), 0x1);
    value =
        (sj_block_value){.descriptor = sj_value_descriptor(0, SJ_VALUE_ULONG), .bits = UINT64_MAX};
    assert_int_equal(kept_by(rules, value), 0x4);
    value = (sj_block_value){.descriptor = sj_value_descriptor(8, SJ_VALUE_DOUBLE),
                             .bits = UINT64_C(0x7ff8000000000000)};
    assert_int_equal(kept_by(rules, value), 0x8); /* not a number */
    value = (sj_block_value){
        .descriptor = sj_value_descriptor(2, SJ_VALUE_STRING), .text_bytes = 2, .text = "ab"};
    assert_int_equal(kept_by(rules, value), 0x10);
    value.note = SJ_VALUE_NULL;
    assert_int_equal(kept_by(rules, value), 0);
    assert_true(sj_value_rules_same(rules, rules) && !sj_value_rules_same(rules, NULL));
    sj_value_rules_free(rules);
}

static void test_signatures_become_rules(void **state)
{
    static const char text[] =
        "{\"policy\": 1, \"values\": ["
        "{\"function\": \"f\", \"signature\": \"(x:double, n:int, _:long, m:int) -> int\"},"
        "{\"function\": \"g\", \"argument\": 1, \"as\": \"int\"}]}";
    uint8_t listed[SJ_VALUES_PER_FUNCTION];
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    const sj_value_rules *rules = policy.selection.values;
    assert_int_equal(rules->count, 5);
    const sj_rule_set of_f = sj_value_rules_match(rules, "f");
    const sj_rule_set all = {{0x1f}};
    assert_true(of_f.words[0] == 0xf);
    assert_true(sj_value_rules_of_managed(rules, &all).words[0] == 0x10);
    assert_int_equal(rules->items[3].row, 0);
    assert_int_equal(rules->items[4].row, 1);
    sj_value_rules_list(rules, &of_f, listed, 0, SJ_VALUES_PER_FUNCTION);
    assert_true(listed[0] == sj_value_descriptor(1, SJ_VALUE_DOUBLE) &&
                listed[1] == sj_value_descriptor(1, SJ_VALUE_INT) &&
                listed[2] == sj_value_descriptor(3, SJ_VALUE_INT) &&
                listed[3] == sj_value_descriptor(SJ_VALUE_RESULT, SJ_VALUE_INT));
    assert_int_equal(rules->items[1].stored, sj_value_descriptor(2, SJ_VALUE_INT));
    assert_int_equal(rules->items[2].stored, sj_value_descriptor(4, SJ_VALUE_INT));
    assert_int_equal(rules->items[4].stored, rules->items[4].descriptor);
    sj_policy_free(&policy);
}

/* A rule that only names methods records all positions that no other rule records. */
static void test_methods_have_own_positions(void **state)
{
    static const char text[] =
        "{\"policy\": 1, \"values\": ["
        "{\"function\": \"Account:*\"},"
        "{\"function\": \"Account:Put\", \"argument\": 2, \"as\": \"hex\"},"
        "{\"name\": \"big\", \"function\": \"Account:Put\", \"argument\": 3, \"as\": \"int\","
        " \"when\": {\"op\": \">\", \"value\": 9}},"
        "{\"function\": \"Account.take\", \"signature\": \"(of:int) -> int\"},"
        "{\"function\": \"Account.*\"}]}";
    enum { ALL_BUT_SECOND = 0xfffb };
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    sj_value_rules *rules = policy.selection.values;
    sj_rule_set matched = sj_value_rules_match(rules, "Account:Put");
    assert_int_equal(sj_value_rules_own_positions(rules, &matched), ALL_BUT_SECOND);
    assert_int_equal(sj_value_rules_set_own(rules, 1, ALL_BUT_SECOND), SJ_OK);
    assert_int_equal(sj_value_rules_typed(rules, 1)->own_positions, ALL_BUT_SECOND);
    sj_value_rules_count_managed(rules, &matched);
    assert_int_equal(rules->found[0], 1);
    matched = sj_value_rules_match(rules, "Account.take"); /* a signature counts otherwise */
    assert_int_equal(sj_value_rules_own_positions(rules, &matched), 0);
    sj_value_rules_count_managed(rules, &matched);
    assert_int_equal(rules->settled[5], 1);
    matched = sj_value_rules_match(rules, "Account.put");
    assert_int_equal(sj_value_rules_own_positions(rules, &matched), UINT16_MAX);
    sj_policy_free(&policy);
}

/* Sixteen is the limit for everything that uses a place of a function's probe: values, conditions,
 * costs and lengths. */
static void test_all_places_of_a_function_are_counted(void **state)
{
    enum { VALUES = 14, LATER = 5 };
    static const char *const kinds[] = {"int", "uint", "long", "ulong", "hex"};
    char text[8192];
    sj_policy policy;
    sj_error error = {0};
    size_t used = 0;
    (void)state;
    used += (size_t)snprintf(text, sizeof(text), "{\"policy\": 1, \"values\": [");
    for (size_t i = 0; i < VALUES; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "{\"function\": \"f\", \"argument\": %zu, \"as\": \"%s\"},",
                                 1 + i / 5, kinds[i % 5]);
    }
    const size_t end = used;
    for (size_t i = 0; i < LATER; i++) { /* each condition needs a value of its own */
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used,
                             "{\"function\": \"f\", \"argument\": 1, \"as\": \"int\", \"when\":"
                             " [{\"argument\": 7, \"as\": \"%s\", \"op\": \">\", \"value\": 1}]},",
                             kinds[i]);
    }
    snprintf(text + used, sizeof(text) - used, "{\"function\": \"f\", \"cpu\": true}]}");
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    sj_policy_free(&policy);
    snprintf(text + used, sizeof(text) - used,
             "{\"function\": \"f\", \"cpu\": true, \"memory\": true}]}");
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_EINVAL);
    assert_non_null(strstr(error.text, "at most 16 values"));
    memmove(text + end, text + used, strlen(text + used) + 1);
    assert_int_equal(sj_policy_parse(text, strlen(text), "t", &policy, &error), SJ_OK);
    sj_policy_free(&policy);
}

static void test_method_globs_match_the_bracketed_name(void **state)
{
    sj_pattern pattern = {0};
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_pattern_make("-[Foo* set*:]", &pattern, &error), SJ_OK);
    assert_true(sj_pattern_matches(&pattern, "-[Foo setBar:]"));
    assert_true(sj_pattern_matches(&pattern, "-[Foo(More) set:]"));
    assert_false(sj_pattern_matches(&pattern, "+[Foo setBar:]"));
    assert_false(sj_pattern_matches(&pattern, "-F"));
    assert_false(sj_pattern_matches(&pattern, ""));
    sj_pattern_free(&pattern);
}

static void test_lines_and_columns_in_nested_json_are_found(void **state)
{
    static const char text[] = "{ \"a\\\"]\": [1, {\"b\": \"}\"}],\n\n \"c\": [[2], [3, 44]] }";
    const sj_json_step steps[] = {{.key = "c"}, {.index = 1}, {.index = 1}};
    (void)state;
    const sj_json_place value = sj_json_find(text, sizeof(text) - 1, steps, 3, false);
    assert_int_equal(value.line, 3);
    assert_int_equal(value.column, 17);
    const sj_json_place key = sj_json_find(text, sizeof(text) - 1, steps, 1, true);
    assert_int_equal(key.line, 3);
    assert_int_equal(key.column, 2);
}

/* Mono methods can have costs. Blocks of Objective-C have colons in their names and are native. */
static void test_native_names_may_have_colons(void **state)
{
    static const char text[] =
        "{\"policy\": 1, \"values\": [{\"function\": \"Costs:Burn*\", \"cpu\": true},"
        "{\"function\": \"__44-[Foo bar:baz:]_block_invoke\", \"signature\": \"(a:int)\"},"
        "{\"function\": \"main.Foo.bar(a: Swift.Int) -> ()\", \"signature\": \"(a:int)\"}]}";
    sj_policy policy;
    sj_error error = {0};
    (void)state;
    const sj_status status = sj_policy_parse(text, strlen(text), "t", &policy, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, SJ_OK);
    assert_true(policy.selection.values->items[0].is_cpu);
    sj_policy_free(&policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes_are_named_with_their_place),
        cmocka_unit_test(test_all_keys_of_a_document_are_parsed),
        cmocka_unit_test(test_counted_calls_exclude_settings_that_need_whole_records),
        cmocka_unit_test(test_timed_functions_are_chosen_where_calls_are_counted),
        cmocka_unit_test(test_settings_that_a_process_does_not_get_are_named),
        cmocka_unit_test(test_presets_are_sound_and_can_be_bases),
        cmocka_unit_test(test_minitrace_counts_org_packages_as_system_code),
        cmocka_unit_test(test_options_give_the_same_policy_as_a_document),
        cmocka_unit_test(test_errors_about_options_name_no_bracket),
        cmocka_unit_test(test_all_settings_of_objective_c_are_parsed),
        cmocka_unit_test(test_value_rules_are_parsed),
        cmocka_unit_test(test_signatures_become_rules),
        cmocka_unit_test(test_methods_have_own_positions),
        cmocka_unit_test(test_native_names_may_have_colons),
        cmocka_unit_test(test_all_places_of_a_function_are_counted),
        cmocka_unit_test(test_method_globs_match_the_bracketed_name),
        cmocka_unit_test(test_lines_and_columns_in_nested_json_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Parses arbitrary conditions as the "when" of a rule that records, and of a rule that changes
 * calls. They are read, or refused with their position. Conditions that were read must be about
 * values that the rule can have, and must be safe to evaluate for any call. */
#include "agent/policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 2048 };

static const char recording[] =
    "{\"policy\": 1, \"values\": [{\"function\": \"f\", \"argument\": 1, \"as\": \"int\", "
    "\"when\": ";
static const char changing[] =
    "{\"policy\": 1, \"values\": [{\"function\": \"f\", \"argument\": 1, \"as\": \"int\", "
    "\"change\": {\"set\": 1}, \"when\": ";
static const char in_source_order[] =
    "{\"policy\": 1, \"values\": [{\"function\": \"f\", \"signature\": "
    "\"(a:int, b:str, c:double) -> long\", \"when\": ";

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void judge(sj_value_rules *rules)
{
    static const sj_rule_set nobody;
    static const sj_block_value values[] = {
        {.descriptor = 0x11, .bits = 3},
        {.descriptor = 0xb2, .text = "text", .text_bytes = 4},
        {.descriptor = 0xb2, .note = SJ_VALUE_NULL},
        {.descriptor = 0xa1, .bits = UINT64_C(0x7ff8000000000000)},
        {.descriptor = 0xf0, .bits = 2}};
    const sj_call_facts facts = {.values = values,
                                 .value_count = sizeof(values) / sizeof(values[0]),
                                 .duration_ns = 1000,
                                 .has_ended = true,
                                 .thread = "main",
                                 .called_from = &nobody};
    for (uint32_t i = 0; i < rules->count; i++) {
        const sj_value_rule *rule = &rules->items[i];
        must(rule->condition_count <= SJ_VALUE_CONDITIONS);
        for (size_t j = 0; j < rule->condition_count; j++) {
            const sj_value_condition *condition = &rule->conditions[j];
            must(condition->subject != SJ_CONDITION_VALUE ||
                 sj_value_is_sound(condition->descriptor));
        }
        (void)sj_value_rules_meet(rules, i, &facts);
        (void)sj_value_rule_is_late(rule);
    }
}

static void try_document(const char *head, const uint8_t *data, size_t size)
{
    char text[MOST_BYTES + 256];
    sj_policy policy;
    sj_error error = {0};
    const int bytes =
        snprintf(text, sizeof(text), "%s%.*s}]}", head, (int)size, (const char *)data);
    const sj_status status = sj_policy_parse(text, (size_t)bytes, "fuzz", &policy, &error);
    if (status == SJ_OK) {
        must(sj_value_rules_same(policy.selection.values, policy.selection.values));
        judge(policy.selection.values);
        sj_policy_free(&policy);
    } else {
        must(strncmp(error.text, "fuzz:", 5) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > MOST_BYTES || memchr(data, '\0', size) != NULL) {
        return 0;
    }
    try_document(recording, data, size);
    try_document(changing, data, size);
    try_document(in_source_order, data, size);
    return 0;
}

#include "agent/policy/redaction.h"

#include <stdio.h>
#include <string.h>

unsigned sj_redaction_bits(const sj_redaction *redaction)
{
    return (redaction->paths ? SJ_REDACT_PATHS | SJ_REDACT_COMMAND_LINES : 0U) |
           (redaction->command_lines ? (unsigned)SJ_REDACT_COMMAND_LINES : 0U);
}

bool sj_redaction_same(const sj_redaction *left, const sj_redaction *right)
{
    return sj_redaction_bits(left) == sj_redaction_bits(right) &&
           sj_pattern_same(left->values, left->value_count, right->values, right->value_count);
}

void sj_redaction_describe(const sj_redaction *redaction, char text[SJ_REDACTION_TEXT_BYTES])
{
    const unsigned bits = sj_redaction_bits(redaction);
    const char *const words[] = {redaction->value_count != 0 ? ",values" : "",
                                 (bits & SJ_REDACT_PATHS) != 0 ? ",paths" : "",
                                 (bits & SJ_REDACT_COMMAND_LINES) != 0 ? ",command_lines" : ""};
    char list[SJ_REDACTION_TEXT_BYTES];
    snprintf(list, sizeof(list), "%s%s%s", words[0], words[1], words[2]);
    snprintf(text, SJ_REDACTION_TEXT_BYTES, "%s", list[0] == ',' ? list + 1 : list);
}

bool sj_redaction_names(const sj_pattern *patterns, size_t count, const char *symbol)
{
    const char *import = strchr(symbol, '!');
    for (size_t i = 0; i < count; i++) {
        if (sj_pattern_matches_symbol(&patterns[i], symbol) ||
            (import != NULL && sj_pattern_matches_symbol(&patterns[i], import + 1))) {
            return true;
        }
    }
    return false;
}

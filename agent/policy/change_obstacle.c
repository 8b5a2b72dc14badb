#include "agent/policy/change_obstacle.h"

const char *const sj_change_obstacle_texts[SJ_CHANGE_OBSTACLES] = {
    [SJ_CHANGE_POSSIBLE] = "",
    [SJ_CHANGE_SETS_ERRNO] =
        "errno is not set for methods of Mono and Java; without \"errno\" the rest is done",
    [SJ_CHANGE_AT_TEXT] = ("a text or an object does not make a call of a Mono or Java method "
                           "change; a number among its "
                           "arguments does"),
    [SJ_CHANGE_THROWS] = "only Java methods can throw an exception instead of their call",
    [SJ_CHANGE_OF_REGISTERS] =
        ("calls of Mono and Java methods are changed under a condition on one "
         "value, from whatever function, and no bytes are written; native functions' are"),
    [SJ_CHANGE_CAME_LATE] =
        "methods of Mono and Java obey the rules that were there at the beginning; record anew"};

sj_change_obstacle sj_change_obstacle_find(const sj_value_rule *rule, sj_link_language language)
{
    const sj_value_change *change = &rule->change;
    if (rule->changes && change->action == SJ_CHANGE_THROW && language != SJ_LINK_LANGUAGE_JVM) {
        return SJ_CHANGE_THROWS;
    }
    if (!rule->changes || language == SJ_LINK_LANGUAGE_OBJC) {
        return SJ_CHANGE_POSSIBLE; /* methods of Objective-C are native functions */
    }
    if (rule->came_late) {
        return SJ_CHANGE_CAME_LATE;
    }
    if (change->error != 0) {
        return SJ_CHANGE_SETS_ERRNO;
    }
    for (size_t i = 0; i < rule->condition_count; i++) {
        if (rule->conditions[i].subject == SJ_CONDITION_VALUE ||
            rule->conditions[i].subject == SJ_CONDITION_CALLER) {
            return SJ_CHANGE_OF_REGISTERS;
        }
    }
    if (change->action == SJ_CHANGE_WRITE) {
        return SJ_CHANGE_OF_REGISTERS;
    }
    return sj_value_is_text(sj_value_kind_of(rule->descriptor)) ? SJ_CHANGE_AT_TEXT
                                                                : SJ_CHANGE_POSSIBLE;
}

#include "agent/policy/change_obstacle.h"

const char *const sj_change_obstacle_texts[SJ_CHANGE_OBSTACLES] = {
    [SJ_CHANGE_POSSIBLE] = "",
    [SJ_CHANGE_SETS_ERRNO] =
        "errno is not set for Mono methods; without \"errno\" the rest is done",
    [SJ_CHANGE_AT_TEXT] =
        ("a text or an object does not make a Mono method's call change; a number among its "
         "arguments does"),
    [SJ_CHANGE_OF_JAVA] = "calls of Java methods cannot be changed"};

sj_change_obstacle sj_change_obstacle_find(const sj_value_rule *rule, sj_link_language language)
{
    const sj_value_change *change = &rule->change;
    if (!rule->changes || language == SJ_LINK_LANGUAGE_OBJC) {
        return SJ_CHANGE_POSSIBLE; /* methods of Objective-C are native functions */
    }
    if (language == SJ_LINK_LANGUAGE_JVM) {
        return SJ_CHANGE_OF_JAVA;
    }
    if (change->error != 0) {
        return SJ_CHANGE_SETS_ERRNO;
    }
    return sj_value_is_text(sj_value_kind_of(rule->descriptor)) ? SJ_CHANGE_AT_TEXT
                                                                : SJ_CHANGE_POSSIBLE;
}

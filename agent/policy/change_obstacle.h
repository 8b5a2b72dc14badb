/* Reasons why a rule cannot change calls of methods of managed runtimes. */
#ifndef SJ_AGENT_POLICY_CHANGE_OBSTACLE_H
#define SJ_AGENT_POLICY_CHANGE_OBSTACLE_H

#include "agent/abi/link.h"
#include "agent/policy/value_rules.h"

typedef enum sj_change_obstacle {
    SJ_CHANGE_POSSIBLE = 0, /* also for rules that change nothing */
    SJ_CHANGE_SETS_ERRNO = 1,
    SJ_CHANGE_AT_TEXT = 2, /* the rule is about a text or an object */
    SJ_CHANGE_THROWS = 3,
    /* it has a condition on another value or on the caller, or it writes bytes */
    SJ_CHANGE_OF_REGISTERS = 4,
    SJ_CHANGE_CAME_LATE = 5, /* it was added while recording */
    SJ_CHANGE_OBSTACLES = 6
} sj_change_obstacle;

/* Returns the first reason why `rule` cannot change calls of methods of `language`. */
sj_change_obstacle sj_change_obstacle_find(const sj_value_rule *rule, sj_link_language language);

/* Texts for the user: what is impossible, and what is possible instead. */
extern const char *const sj_change_obstacle_texts[SJ_CHANGE_OBSTACLES];

#endif
